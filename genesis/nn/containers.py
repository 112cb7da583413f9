"""Containers of modules or parameters, by position or by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import count, groupby, takewhile
from typing import Any, Generic, Self, TypeVar

from genesis.nn.members import pairs_of
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

Held = TypeVar("Held")


class _Positional(Module):
    """Modules named "0", "1", .. in their order."""

    def __init__(self, modules: Iterable[Module | None]) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module | None) -> Self:
        """Add `module`, or None instead of one, at the end. Raises TypeError for anything else."""
        self.add_module(str(len(self)), self._admitted(module))
        return self

    def _admitted(self, module: Module | None) -> Module | None:
        if not isinstance(module, Module | None):
            raise TypeError(f"{type(self).__name__}: wants modules, got {type(module).__name__}")
        return module

    def extend(self, modules: Iterable[Module | None]) -> Self:
        """Add `modules` at the end."""
        for module in [*modules]:
            self.append(module)
        return self

    def insert(self, index: int, module: Module | None) -> Self:
        """Add `module` before the one at `index`."""
        values = [*self]
        values.insert(index, self._admitted(module))
        return self._hold(values)

    def pop(self, key: int = -1) -> Any:
        """Remove and return the module at the position `key`."""
        module = self[key]
        del self[key]
        return module

    def _hold(self, modules: list[Any]) -> Self:
        """Replace the content by these modules, named by their positions."""
        self._modules.clear()
        return self.extend(modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter([module for _, module in pairs_of(self, "_modules")])

    def __getitem__(self, index: int | slice) -> Any: return self._sliced(index) if isinstance(index, slice) else [*self][index]
    def _sliced(self, index: slice) -> Module: return self._of([*self][index])
    def __setitem__(self, index: int, module: Module) -> None: setattr(self, [*self._modules][index], module)

    def __delitem__(self, index: int | slice) -> None:
        names = [*self._modules]
        chosen = names[index] if isinstance(index, slice) else [names[index]]
        kept = {name: module for name, module in self._modules.items() if name not in chosen}
        self._modules.clear()
        renumbered = all(name.isdecimal() for name in names)
        for index, (name, module) in enumerate(kept.items()):
            self.add_module(str(index) if renumbered else name, module)

    def __add__(self, other: Iterable[Any]) -> Any: return self._of([*self, *other])
    def __iadd__(self, other: Iterable[Any]) -> Self: return self.extend(other)

    def _of(self, modules: list[Module]) -> Module:
        raise NotImplementedError(f"{type(self).__name__} has no _of(modules), one like it that holds a slice's modules")


class Sequential(_Positional):
    """Modules called one after the other.

    >>> from genesis import nn
    >>> nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Module | dict[str, Module]) -> None:
        super().__init__(())
        for module in modules:
            if isinstance(module, dict):
                for name, named in module.items():
                    self.add_module(name, named)
            else:
                self.append(module)

    def insert(self, index: int, module: Module | None) -> Self:
        """Add `module` before the one at `index`. Raises IndexError for a position out of range."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"insert: position {index} is out of range for {len(self)} modules")
        return super().insert(index, module)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*[*self] * _times(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self.extend([*self] * (_times(times) - 1))

    def forward(self, input: Any) -> Tensor:
        """The last module's result."""
        for module in self:
            input = module(input)
        return input  # type: ignore[no-any-return]

    def _of(self, modules: list[Module]) -> Module:
        return Sequential(*modules)

    def _sliced(self, index: slice) -> Module:
        """The modules keep their names."""
        return type(self)(dict([*self._modules.items()][index]))


def _times(times: object) -> int:
    """The number of repetitions."""
    if not isinstance(times, int):
        raise TypeError(f"Sequential: is repeated an int of times, got {type(times).__name__} {times!r:.40}")
    if times < 1:
        raise ValueError(f"Sequential: is repeated once or more, got {times}")
    return times


class ModuleList(_Positional):
    """A list whose modules belong to the module that holds it.

    >>> from genesis import nn
    >>> len(nn.ModuleList(nn.Linear(2, 2) for _ in range(3)))
    3
    """

    def __repr__(self) -> str:
        lines, first = [], 0
        for text, equal in groupby(map(repr, self)):
            times = len([*equal])
            lines.append(f"({first}): {text}" if times == 1 else f"({first}-{first + times - 1}): {times} x {text}")
            first += times
        inner = "\n".join(lines).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {inner}\n)" if lines else f"{type(self).__name__}()"

    def __init__(self, modules: Iterable[Module | None] | None = None) -> None: super().__init__(modules or ())
    def _of(self, modules: list[Module]) -> Module: return ModuleList(modules)


class ParameterList(Module):
    """A list whose parameters belong to the module that holds it; tensors become parameters, other values do not change.

    >>> list(genesis.nn.ParameterList([genesis.zeros(2), genesis.ones(1)]).state_dict())
    ['0', '1']
    """

    def __init__(self, values: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.extend(values)

    def append(self, value: Tensor) -> Self:
        """Add a parameter at the end."""
        setattr(self, str(len(self)), _as_parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> Self:
        """Add parameters at the end. Raises TypeError for a single one."""
        if isinstance(values, Tensor):
            raise TypeError("ParameterList: is extended by an iterable of parameters, got one; want append(parameter)")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Tensor]) -> Self: return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join([f"  ({index}): {_described(value)}" for index, value in enumerate(self)])

    def __len__(self) -> int: return sum(1 for _ in self)
    def __iter__(self) -> Iterator[Any]: return map(self.__dict__.get, takewhile(self.__dict__.__contains__, map(str, count())))

    def __getitem__(self, index: int | slice) -> Any:
        return ParameterList([*self][index]) if isinstance(index, slice) else [*self][index]

    def __setitem__(self, index: int, value: Tensor) -> None:
        setattr(self, str(range(len(self))[index]), _as_parameter(value))


def _as_parameter(value: Any) -> Any:
    """A tensor as a parameter; other values unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(value: Any, by_type: bool = False) -> str:
    """A parameter's dtype, or PyTorch's old tensor class for it, and size; the class of anything else."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    where, kind = "" if value.device.type == "cpu" else f" ({value.device})", value.type() if by_type else repr(value.dtype)
    return f"{type(value).__name__} containing: [{kind} of size {'x'.join(map(str, value.shape))}{where}]"


class _Named(Module, Generic[Held]):
    """Modules or parameters by name, in the order of insertion."""

    _what = ""

    def __setitem__(self, name: str, value: Any) -> None:
        value = self._admitted(value)
        if not name or hasattr(type(self), name) or "." in name:
            raise KeyError(f"{type(self).__name__}: {name!r} cannot name a {self._what}; want no attribute's name, and no dot")
        setattr(self, name, value)

    def _admitted(self, value: Any) -> Any:
        """What is held of what is given."""
        return _as_parameter(value)

    def __getitem__(self, name: str) -> Held: return self._held()[name]

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        Module.__delattr__(self, name)

    def __contains__(self, name: object) -> bool: return name in self._held()
    def __len__(self) -> int: return len(self.keys())
    def __iter__(self) -> Iterator[str]: return iter(self.keys())
    def _held(self) -> dict[str, Held]: return self._modules.copy()

    def keys(self) -> KeysView[str]:
        """The names, in order."""
        return self._held().keys()

    def values(self) -> ValuesView[Held]:
        """The values, in order."""
        return self._held().values()

    def items(self) -> ItemsView[str, Held]:
        """(name, value) pairs, in order."""
        return self._held().items()

    def clear(self) -> None:
        """Remove all."""
        for name in self.keys():
            del self[name]

    def pop(self, key: str) -> Held:
        """Remove and return the value of the name `key`. Raises KeyError if there is none."""
        value = self[key]
        del self[key]
        return value


class ModuleDict(_Named[Module]):
    """A dict whose modules belong to the module that holds it.

    >>> from genesis import nn
    >>> layers = nn.ModuleDict({"first": nn.Linear(2, 3), "second": nn.ReLU()})
    >>> list(layers), layers["first"]
    (['first', 'second'], Linear(in_features=2, out_features=3, bias=True))
    """

    _what = "module"

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:  # a subclass's update may use attributes that its constructor sets later
            self.update(modules)

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules; they replace those of the same names."""
        for name, module in dict(modules).items():
            self[name] = module

    def _admitted(self, value: Any) -> Any:
        if not isinstance(value, Module):
            raise TypeError(f"ModuleDict: wants modules, got {type(value).__name__}")
        return value


class ParameterDict(_Named[Parameter]):
    """A dictionary, in the order of insertion, whose parameters belong to the module that holds it; tensors become parameters.
    Other values, such as None, do not change.

    >>> weights = genesis.nn.ParameterDict({"a": genesis.zeros(2), "b": genesis.ones(1)})
    >>> list(weights.state_dict()), weights["b"].requires_grad
    (['a', 'b'], True)
    """

    _what = "parameter"
    _plain: frozenset[str] = frozenset()  # the names of values that are not parameters

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]] | None = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def update(self, parameters: ParameterDict | Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> None:
        """Add parameters; they replace those of the same names. Those of a plain mapping are added in the order of names."""
        pairs, is_plain = dict(parameters).items(), isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for name, value in sorted(pairs) if is_plain else pairs:
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        plain = self._plain - {name} if isinstance(value, Tensor) else self._plain | {name}
        if plain != self._plain:
            self._plain = plain

    def extra_repr(self) -> str:
        return "\n".join([f"  ({name}): {_described(value, by_type=True)}" for name, value in self.items()])

    def _held(self) -> dict[str, Any]:
        names = self._parameters.names.keys() | self._plain
        return {name: value for name, value in self.__dict__.items() if name in names}

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of this name; `default` if there is none."""
        return self._held().get(key, default)

    def setdefault(self, key: str, default: Any = None) -> Parameter:
        """The parameter of this name, made from `default` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Parameter]:
        """Remove and return the last (name, parameter). Raises KeyError if there is none."""
        if not len(self):
            raise KeyError("ParameterDict: it is empty")
        name = [*self.keys()][-1]
        return name, self.pop(name)

    def copy(self) -> ParameterDict:
        """A copy with the same parameters."""
        return ParameterDict([*self.items()])

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another with these names, each of them a parameter of `default`'s value."""
        return ParameterDict([(name, default) for name in keys])

    def __reversed__(self) -> Iterator[str]: return reversed([*self])
    def __or__(self, other: ParameterDict) -> ParameterDict: return self.copy().__ior__(other)

    def __ior__(self, other: ParameterDict | Mapping[str, Tensor]) -> Self:
        self.update(other)
        return self
