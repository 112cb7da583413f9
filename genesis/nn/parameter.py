"""Parameter: a tensor that a module learns. Buffer: one that it keeps. Both may come without a shape, which they get later."""

from __future__ import annotations

from typing import NoReturn

from genesis.functions.creation import empty
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentTypeError
from genesis.ir.replayable import replayable_module
from genesis.runtime.devices import DeviceLike, device_of
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import move_storage
from genesis.tensor.views import share_data


class Parameter(Tensor):
    """A leaf that requires a gradient and that modules collect.

    Args:
        data: what it holds, of any shape and in the same memory: writes to one are seen in the other. Of a floating dtype
            unless `requires_grad` is False; without one, no elements.
        requires_grad: whether `backward` accumulates a gradient into it.

    Raises TypeError for what is no tensor, and when a gradient is wanted of a dtype that has none.

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
        share_data(self, data)
        self._requires_grad = False
        if requires_grad:
            self.requires_grad = True

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


class Buffer(Tensor):
    """A tensor that becomes a module's buffer where it is assigned to an attribute; as `register_buffer` makes them.

    Args:
        data: what it holds, in the same memory; without one, no elements.
        persistent: whether the state dict has it.

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


class _Uninitialized(Tensor):
    """What parameters and buffers without a shape share: they know dtype and device, and can be given a shape."""

    _initialized: type[Tensor]

    @property
    def shape(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError(f"{type(self).__name__}: it has no shape yet; want materialize(shape) before")

    def materialize(
        self, shape: int | tuple[int, ...], device: DeviceLike = None, dtype: DType | None = None
    ) -> None:
        """Become a parameter, or a buffer, of that shape, with elements of no particular value."""
        node = self._array.node
        kept = node.dtype if dtype is None else dtype
        made = empty(shape, dtype=kept, device=self._array.device if device is None else device_of(device))
        self.__class__ = self._initialized  # type: ignore[assignment]
        move_storage(self, made)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape is not known yet: `materialize` makes it one like others.

    Args:
        requires_grad: whether it will require a gradient.
        device, dtype: those of its elements.

    >>> weight = genesis.nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape
    (2, 3)
    """

    _initialized = Parameter

    def __init__(self, requires_grad: bool = True, device: DeviceLike = None, dtype: DType | None = None) -> None:
        super().__init__(empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(_Uninitialized):
    """A buffer whose shape is not known yet: `materialize` makes it one like others. Arguments as `UninitializedParameter`'s.

    >>> mean = genesis.nn.UninitializedBuffer()
    >>> mean.materialize(3)
    >>> mean.shape
    (3,)
    """

    _initialized = Tensor

    def __init__(
        self, requires_grad: bool = False, device: DeviceLike = None, dtype: DType | None = None, persistent: bool = True
    ) -> None:
        self._array = array_of(empty(0, device=device, dtype=dtype))
        self._requires_grad = requires_grad
        self.persistent = persistent


def is_lazy(param: object) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, _Uninitialized)


replayable_module(__name__, but=("materialize",))
