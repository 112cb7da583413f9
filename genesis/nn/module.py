"""Module: a function with parameters, made of smaller ones.

A module is a plain object. The Parameters, Modules and buffers that are assigned to its attributes are registered as its
members, in the order of assignment (`members.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

from genesis.ir.annotations import Attributes
from genesis.nn.conversion import Convertible
from genesis.nn.getattr_bases import base_for
from genesis.nn.hooks import Hooked
from genesis.nn.members import (
    TABLES, Members, NonPersistent, check_kind, forget_member, is_set_by_class, make_member, make_tables, members_of,
    pairs_of, register, table_of,
)
from genesis.nn.other_states import is_torch_state, take_older_state, take_torch_state
from genesis.nn.parameter import Buffer, Parameter
from genesis.nn.state import Stateful
from genesis.tensor.handle import Tensor

Kind = TypeVar("Kind")


def _table(table: str) -> Any:
    """A property: the members of one kind, as a dict by name, which assignment replaces."""

    def members(self: Module) -> Members:
        return Members(members_of(self, table).names, lambda: self)

    def replace(self: Module, members: Mapping[str, Any]) -> None:
        members_of(self, table).become(members)

    return property(members, replace)


class Module(Hooked, Convertible, Stateful):
    """The base of layers and networks. Subclasses compute a call's result in `forward`.

    >>> class Scale(genesis.nn.Module):
    ...     def __init__(self):
    ...         self.factor = genesis.nn.Parameter(genesis.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(genesis.tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    training: bool = True
    _printed: ClassVar[tuple[str, ...] | None] = None  # attributes that `repr` shows; "*name" by its value alone

    call_super_init: bool = False  # whether `Module.__init__` passes its arguments on to the next class's `__init__`

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        base = base_for(cls)
        if base is not None:
            cls.__bases__ = (*[b for b in cls.__bases__ if not issubclass(base, b)], base)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.call_super_init:
            super().__init__(*args, **kwargs)
        elif args or kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() takes no arguments, got {[*args, *kwargs]!r:.60}; want a class "
                            "that writes __init__, or call_super_init = True")
        make_tables(self)

    # ---- attributes ----
    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            if name in members_of(self, "_parameters").names:
                check_kind("_parameters", name, value)
            make_member(self, "_modules", name, value)
        elif isinstance(value, Tensor) and isinstance(value, Parameter) and not is_set_by_class(type(self), name):
            if type(self).register_parameter is _plain_registration:
                make_member(self, "_parameters", name, value)
            else:  # a class, or a replaced method, handles parameters itself
                if name not in members_of(self, "_parameters").names:
                    self.__dict__.pop(name, None)
                self.register_parameter(name, value)
        elif type(value) is Buffer:
            self.register_buffer(name, value, value.persistent)
        else:
            old = self.__dict__.get(name, name)
            if value is not None and (
                old is None or isinstance(old, Module)
                or (isinstance(old, Tensor) and (isinstance(old, Parameter) or not isinstance(value, Tensor)))
            ):
                check_kind(table_of(self, name), name, value)
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        forget_member(self, name)

    def __setstate__(self, state: Attributes) -> None:
        """Restore a pickle's attributes, also those of PyTorch's modules and of older versions."""
        if is_torch_state(state):
            take_torch_state(self, state)
        elif not state.keys() & TABLES:
            take_older_state(self, state, Parameter, Module)
        else:
            self.__dict__.update(state)
            for table in TABLES:
                members_of(self, table)

    _modules, _parameters, _buffers = _table("_modules"), _table("_parameters"), _table("_buffers")

    @property
    def _non_persistent_buffers_set(self) -> NonPersistent:
        return NonPersistent(members_of(self, "_buffers").names)

    @_non_persistent_buffers_set.setter
    def _non_persistent_buffers_set(self, hidden: Collection[str]) -> None:
        names = members_of(self, "_buffers").names
        names.update({name: name not in hidden for name in names})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register `param` as the attribute `name`; None reserves the name."""
        register(self, "_parameters", name, param, Parameter)

    def _hold_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Assign a layer's parameter; None reserves the name."""
        if parameter is None:
            make_member(self, "_parameters", name, None)
        else:
            setattr(self, name, parameter)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register `tensor` as the attribute `name`: state that is not learned. It is in the state dict if `persistent`."""
        register(self, "_buffers", name, tensor, Tensor)
        members_of(self, "_buffers").names[name] = persistent

    def add_module(self, name: str, module: Module | None) -> None:
        """Register `module` as the attribute `name`; None reserves the name."""
        register(self, "_modules", name, module, Module)

    register_module = add_module

    def get_submodule(self, target: str) -> Module:
        """The module at a path of `named_modules`. Raises AttributeError if there is none.

        >>> genesis.nn.Sequential(genesis.nn.ReLU(), genesis.nn.Tanh()).get_submodule("1")
        Tanh()
        """
        module = self
        for name in target.split(".") if target else ():
            module = _attribute(module, name, Module, "module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at a path; with `strict`, a module must be there already.

        Raises ValueError for an empty path, AttributeError if a module on the path, or the one to replace, is missing.

        >>> net = genesis.nn.Sequential(genesis.nn.ReLU())
        >>> net.set_submodule("0", genesis.nn.Tanh())
        >>> net[0]
        Tanh()
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("set_submodule: wants the path of a module, got an empty one")
        parent = self.get_submodule(path)
        if strict:
            _attribute(parent, name, Module, "module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path of `named_parameters`. Raises AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        return _attribute(self.get_submodule(path), name, Parameter, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path of `named_buffers`. Raises AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in members_of(module, "_buffers"):
            raise AttributeError(f"{type(module).__name__} has no buffer {name!r}")
        return _attribute(module, name, Tensor, "buffer")

    # ---- walking ----
    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) for each direct child, each once."""
        seen: set[int] = set()
        for name, module in self._children():
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def _children(self) -> list[tuple[str, Module]]:
        """(name, module) for every name of a direct child."""
        return [(name, module) for name, module in pairs_of(self, "_modules") if isinstance(module, Module)]

    def children(self) -> Iterator[Module]:
        """The direct children."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(path, module) for this module and all below it, each once unless told otherwise, parents first.

        >>> [path for path, _ in genesis.nn.Sequential(genesis.nn.ReLU(), genesis.nn.Tanh()).named_modules()]
        ['', '0', '1']
        """
        seen: set[int] = {id(module) for module in memo or ()}
        for path, module in self._paths(prefix):
            if id(module) not in seen or not remove_duplicate:
                seen.add(id(module))
                yield path, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once unless told otherwise."""
        return (module for _, module in self.named_modules(remove_duplicate=remove_duplicate))

    def _paths(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """(path, module) for every way to reach a module. A module is not below itself, though some refer to their owner."""
        waiting: list[tuple[str, Module, frozenset[int]]] = [(prefix, self, frozenset())]
        while waiting:
            path, module, above = waiting.pop()
            yield path, module
            above |= {id(module)}
            below = [(_join(path, name), child, above) for name, child in module._children() if id(child) not in above]
            waiting.extend(reversed(below))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(path, parameter) for every parameter, each once unless told otherwise.

        >>> [(path, p.shape) for path, p in genesis.nn.Linear(3, 2).named_parameters()]
        [('weight', (2, 3)), ('bias', (2,))]
        """
        return self._named_members(lambda module: pairs_of(module, "_parameters"), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Every parameter, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def _named_members(
        self, get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]], prefix: str = "", recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """(path, member) for the members that `get_members_fn` lists for each module."""
        seen: set[int] = set()
        for path, module in self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]:
            for name, value in get_members_fn(module):
                if value is not None and (id(value) not in seen or not remove_duplicate):
                    seen.add(id(value))
                    yield _join(path, name), value

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer) for every registered buffer."""
        return self._named_members(lambda module: pairs_of(module, "_buffers"), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Every registered buffer."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    # ---- changing all submodules ----
    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module below, children first and in order, and on this one."""
        for _, child in self.named_children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set `training`, which Dropout and others read, here and, by the children's own `train`, below.

        Raises ValueError unless `mode` is a bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode is {mode!r}; want a bool: training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Self:
        """`train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether gradients are accumulated, for every parameter."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop every parameter's gradient, or set it to zeros."""
        for parameter in self.parameters():
            parameter.zero_grad(set_to_none)

    # ---- printing ----
    def extra_repr(self) -> str:
        """The text between the brackets when the module is printed."""
        return ", ".join([self._setting_text(name) for name in self._printed or ()])

    def _setting_text(self, name: str) -> str:
        value = getattr(self, name.removeprefix("*"))
        text = repr(value) if isinstance(value, str) else str(value is not None if name == "bias" else value)
        return text if name.startswith("*") else f"{name}={text}"

    def _get_name(self) -> str:
        """The name that `repr` shows."""
        return type(self).__name__

    def __repr__(self) -> str:
        lines = [_indented(f"({name}): {child!r}") for name, child in self._children()]
        name, extra = self._get_name(), self.extra_repr()
        if not lines and "\n" not in extra:
            return f"{name}({extra})"
        return "\n".join([f"{name}(", *([_indented(extra)] if extra else []), *lines, ")"])


_plain_registration = Module.register_parameter


def _attribute(module: Module, name: str, kind: type[Kind], what: str) -> Kind:
    """An attribute of the module itself, not of its class."""
    value = module.__dict__.get(name)
    if not isinstance(value, kind):
        raise AttributeError(f"{type(module).__name__} has no {what} {name!r}")
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


NOT_REPLAYABLE = ("register_parameter", "register_buffer", "__delattr__")
