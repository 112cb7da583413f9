"""PyTorch's tensor constructor, `torch.Tensor(2, 3)`, and the behaviour of classes derived from it."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.as_torch.stand_ins.overrides import _disabled_torch_function_impl
from genesis.as_torch.stand_ins.tensor_types import legacy_tensor
from genesis.ir.annotations import AnyFunction, Arguments, Attributes
from genesis.ir.dtypes import get_default_dtype
from genesis.nn.parameter import Parameter, ParameterClass
from genesis.pytree import map_tree
from genesis.tensor.call_modes import FunctionMode, add_overriding_class, ignoring_classes
from genesis.tensor.handle import INTERNAL, Tensor, attributes_of, note_result_class
from genesis.tensor.size import Size
from genesis.tensor.views import detach

_CONTENT = int | float | np.number | list | tuple | range | np.ndarray | None


def take_sizes() -> None:
    """Give Tensor PyTorch's constructor: numbers are sizes, data becomes the default float, a tensor's storage is shared."""
    plain, plain_parameter = Tensor.__init__, Parameter.__init__

    def construct(self: Tensor, content: Arguments, options: Attributes) -> None:
        first = content[0] if content else None
        if isinstance(first, Tensor):
            shared = detach(first)
            attributes_of(self).update({name: value for name, value in attributes_of(shared).items() if name in INTERNAL})
            self._requires_grad = bool(options.get("requires_grad"))
        elif options.keys() - {"device"} or not isinstance(first, _CONTENT):
            plain(self, *content, **options)  # arguments of `genesis.Tensor` that PyTorch's lacks
        else:
            result = legacy_tensor(get_default_dtype(), *content, **options)
            self._array, self._requires_grad = result._array, False

    def new(cls: type[Tensor], *content: Any, **options: Any) -> Tensor:
        """A tensor from sizes, from data in the default float, or sharing another tensor's storage."""
        data = content[0] if content else options.get("data")
        if issubclass(cls, Parameter) and isinstance(data, Tensor) and type(data)._result_class is not Tensor:
            return _parameter(data, *content[1:], **{name: value for name, value in options.items() if name != "data"})
        self = object.__new__(cls)
        if content and not issubclass(cls, Parameter):
            construct(self, content, options)
        elif content and cls.__new__ is not new:  # the class's own `__new__` determines the content
            plain_parameter(self, *content, **options)  # type: ignore[arg-type]
        return self

    def made(self: Tensor, *content: Any, **options: Any) -> None:
        """Initializes a tensor whose `__new__` got no arguments."""
        if "_array" not in attributes_of(self):
            construct(self, content, options)

    def made_parameter(self: Parameter, *content: Any, **options: Any) -> None:
        """Initializes a Parameter whose derived class has its own `__new__`."""
        if "_array" not in attributes_of(self):
            plain_parameter(self, *content, **options)

    Parameter.__init__ = made_parameter  # type: ignore[method-assign]
    Tensor.__new__ = staticmethod(new)  # type: ignore[assignment, method-assign]
    Tensor.__init__ = made  # type: ignore[method-assign, assignment]


def _parameter(data: Tensor, requires_grad: bool = True) -> Tensor:
    """A parameter of a user's class: a detached tensor of that, which `isinstance` tells from other ones by `_is_param`."""
    made = data.detach().requires_grad_(requires_grad)
    if type(made) is not type(data):
        raise RuntimeError(f"Parameter: detach() of a {type(data).__name__} gave a {type(made).__name__}; want the same class")
    made._is_param = True  # type: ignore[attr-defined]
    return made


def _is_instance(cls: type, x: object) -> bool:
    """`isinstance` of Parameter and the classes derived from it: `_is_param` makes any tensor a Parameter."""
    return cls in x.__class__.__mro__ or (
        cls is Parameter and isinstance(x, Tensor) and bool(attributes_of(x).get("_is_param")))


class _MixedClass(ParameterClass):
    """The metaclass of classes derived from Tensor and others: their instances' `__dict__` is a tensor's."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: Attributes, **options: Any) -> _MixedClass:
        return super().__new__(cls, name, bases, {"__dict__": vars(Tensor)["__dict__"], **namespace}, **options)


def _is_mixed(bases: Sequence[object]) -> bool:
    """Whether a class with these bases is a tensor class but would inherit another class's `__dict__`."""
    plain = [base for base in bases if isinstance(base, type) and type(base) in (type, ParameterClass)]
    if len(plain) < len(bases) or not any(issubclass(base, Tensor) for base in plain):
        return False
    others = {kind for base in plain for kind in base.__mro__ if not issubclass(Tensor, kind)}
    return any("__dict__" in vars(kind) and not issubclass(kind, Tensor) for kind in others)


def watch_classes() -> None:
    """Make non-tensor classes override calls too, if they define `__torch_function__`."""
    plain = builtins.__build_class__

    def build(*arguments: Any, **options: Any) -> Any:
        if len(arguments) > 3 and "metaclass" not in options and _is_mixed(arguments[2:]):
            options["metaclass"] = _MixedClass
        cls = plain(*arguments, **options)
        if "__torch_function__" in getattr(cls, "__dict__", ()) and not issubclass(cls, Tensor | FunctionMode):
            add_overriding_class(cls)
        return cls

    builtins.__build_class__ = build


def derive_classes() -> None:
    """Make classes derived from Tensor the class of results, and let them override calls by `__torch_function__`."""
    asked_plainly = _plain_function

    def derived(cls: type[Tensor], **options: Any) -> None:
        own = vars(cls).get("__torch_function__")
        if own is _disabled_torch_function_impl:
            cls._result_class = Tensor
            return
        if own is not None and getattr(own, "__func__", own) is not asked_plainly.__func__:
            add_overriding_class(cls)
        if issubclass(cls, Parameter):
            return
        cls._result_class = cls
        note_result_class(cls)

    ParameterClass.__instancecheck__ = _is_instance  # type: ignore[method-assign]
    Tensor.__init_subclass__ = classmethod(derived)  # type: ignore[assignment]
    Tensor.__torch_function__ = _plain_function  # type: ignore[attr-defined]


def _call_plainly(
    cls: type[Tensor], func: AnyFunction, types: Sequence[type], args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """The call without overrides; its results are of this class. NotImplemented if an argument's class is no base of it."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with ignoring_classes():
        result = func(*args, **(kwargs or {}))
    if isinstance(result, Size):
        return result
    return map_tree(lambda leaf: leaf.as_subclass(cls) if type(leaf) is Tensor else leaf, result)


_plain_function = classmethod(_call_plainly)
