"""Parameter: a tensor that a module learns. Buffer: a tensor that it keeps as state. Both may get their shape later."""

from __future__ import annotations

from typing import Any, NoReturn, Self, SupportsIndex

from genesis.functions.creation import empty
from genesis.ir.dtypes import DType, get_default_dtype
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.runtime.devices import Device, DeviceLike, device_of
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor, attributes_of, plain_classes
from genesis.tensor.users_attributes import users_attributes
from genesis.tensor.views import move_storage, share_data


class ParameterClass(type):
    """The class of Parameter, so that `as_torch` can count tensors of users' classes among its instances."""


class Parameter(Tensor, metaclass=ParameterClass):
    """A leaf that requires a gradient and that modules collect.

    Args:
        data: a tensor of any shape, which shares its memory with the parameter. It must be floating unless `requires_grad`
            is False. By default there are no elements.
        requires_grad: whether `backward` accumulates a gradient into it.

    Raises TypeError unless `data` is a tensor, and if a gradient is wanted for a dtype without gradients.

    >>> genesis.nn.Parameter(genesis.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        data = empty(0) if data is None else data
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: wants a tensor, got {type(data).__name__} {data!r:.40}")
        if requires_grad and data.dtype.category < 2:
            raise ArgumentTypeError(f"Parameter: a {data.dtype.name} tensor has no gradient; want requires_grad=False")
        if isinstance(data, CompositeTensor):
            made = data.as_parameter(requires_grad)
            self.__class__ = made.__class__
            attributes_of(self).update(attributes_of(made))
            return
        share_data(self, data)
        self._requires_grad = False
        if requires_grad:
            self.requires_grad = True

    def __repr__(self) -> str:
        text = super().__repr__()
        return f"Parameter containing:\n{text if text.startswith('tensor(') else f'Parameter({text})'}"

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        """A parameter with copies of the elements and the user's attributes; as in PyTorch without the gradient."""
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        vars(made).update(users_attributes(self))
        made._array, made._requires_grad = from_data(self)._array, self.requires_grad
        return made


plain_classes.add(Parameter)


class Buffer(Tensor):
    """A tensor that becomes a module's buffer when assigned to an attribute, as by `register_buffer`.

    Args:
        data: a tensor, which shares its memory with the buffer. By default there are no elements.
        persistent: whether it is in the state dict.

    >>> class Scale(genesis.nn.Module):
    ...     def __init__(self):
    ...         self.factor = genesis.nn.Buffer(genesis.tensor(2.0))
    >>> dict(Scale().state_dict())
    {'factor': tensor(2.)}
    """

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        data = empty(0) if data is None else data
        if not isinstance(data, Tensor):
            raise TypeError(f"Buffer: wants a tensor, got {type(data).__name__} {data!r:.40}")
        share_data(self, data)
        self._requires_grad = False
        self.persistent = persistent


class UninitializedTensorMixin(Tensor):
    """The base of parameters and buffers without a shape: they have a dtype and device, and get a shape later.

    Access to elements raises ValueError; conversions such as `to`, `half` and `cpu`, copies and pickles work.
    """

    cls_to_become: type[Tensor]
    _kept: tuple[Device, DType]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        return object.__new__(cls)

    def _keep(self, device: DeviceLike, dtype: DType | None, requires_grad: bool) -> None:
        self._kept = device_of(device), get_default_dtype() if dtype is None else dtype
        self._requires_grad = requires_grad

    @property
    def _array(self) -> NoReturn:  # type: ignore[override]
        raise ArgumentError(
            "Attempted to use an uninitialized parameter. This happens with a lazy module, or a "
            f"{type(self).__name__}, that has met no input yet; want a call of the module, or materialize(shape), before")

    @property
    def shape(self) -> NoReturn:  # type: ignore[override]
        raise ArgumentError(
            f"Can't access the shape of an uninitialized parameter or buffer: {type(self).__name__} wants materialize(shape) "
            "before, or its module a call")

    device = property(lambda self: self._kept[0])
    dtype = property(lambda self: self._kept[1])
    is_leaf = property(lambda self: True)
    grad = property(lambda self: self._grad, Tensor.grad.fset)  # type: ignore[attr-defined]

    def materialize(self, shape: int | tuple[int, ...], device: DeviceLike = None, dtype: DType | None = None) -> None:
        """Become a parameter or buffer of this shape, with uninitialized elements."""
        own_device, own_dtype = self._kept
        self._hold(empty(
            shape, dtype=own_dtype if dtype is None else dtype, device=own_device if device is None else device_of(device)))

    def _hold(self, value: Tensor) -> None:
        """Become a normal parameter or buffer with the content of `value`."""
        del self._kept
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        move_storage(self, value)

    def share_memory_(self) -> NoReturn:  # type: ignore[override]
        """Raises RuntimeError: there is no memory yet."""
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer: call the module before")

    def __copy__(self) -> Tensor:
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, object]) -> Tensor:
        make, arguments = self.__reduce_ex__(2)
        made: Tensor = make(*arguments)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:  # type: ignore[override]
        device, dtype = self._kept
        return type(self), (self._requires_grad, str(device), dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _converts(name: str) -> None:
    def convert(self: UninitializedTensorMixin, *args: Any, **kwargs: Any) -> Tensor:
        device, dtype = self._kept
        like = getattr(empty(0, device=device, dtype=dtype), name)(*args, **kwargs)
        if (like.device, like.dtype) == self._kept:
            return self
        made: Tensor = type(self)(self._requires_grad, like.device, like.dtype)  # type: ignore[call-arg, arg-type]
        return made

    convert.__name__, convert.__doc__ = name, getattr(Tensor, name).__doc__
    setattr(UninitializedTensorMixin, name, convert)


for _name in ("bfloat16", "cpu", "cuda", "double", "float", "half", "to"):
    _converts(_name)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet: `materialize` makes it a normal one.

    Args:
        requires_grad: whether it will require a gradient.
        device, dtype: those of its elements.

    >>> weight = genesis.nn.UninitializedParameter()
    >>> weight.half().dtype
    genesis.float16
    >>> weight.materialize((2, 3))
    >>> weight.shape
    (2, 3)
    """

    cls_to_become = Parameter

    def __init__(self, requires_grad: bool = True, device: DeviceLike = None, dtype: DType | None = None) -> None:
        self._keep(device, dtype, requires_grad)


class UninitializedBuffer(UninitializedTensorMixin):
    """A buffer whose shape is not known yet: `materialize` makes it a normal one. Arguments as in `UninitializedParameter`.

    >>> mean = genesis.nn.UninitializedBuffer()
    >>> mean.materialize(3)
    >>> mean.shape
    (3,)
    """

    cls_to_become = Tensor

    def __init__(
        self, requires_grad: bool = False, device: DeviceLike = None, dtype: DType | None = None, persistent: bool = True
    ) -> None:
        self._keep(device, dtype, requires_grad)
        self.persistent = persistent


def is_lazy(param: object) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


NOT_REPLAYABLE = ("materialize",)
