"""Conversion of a module's tensors, in place, to another dtype or device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from genesis.functions.creation import empty
from genesis.ir.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from genesis.nn.members import members_of, pairs_of
from genesis.nn.parameter import Parameter, UninitializedTensorMixin
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach, move_storage
from genesis.tracing.state import grad_mode


class Convertible:
    """The base of objects with `parameters()` and `buffers()`."""

    if TYPE_CHECKING:  # a Module's

        def parameters(self, recurse: bool = True) -> Iterator[Parameter]: ...

        def buffers(self, recurse: bool = True) -> Iterator[Tensor]: ...

        def children(self) -> Iterator[Convertible]: ...

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating and complex parameters and buffers (see `Tensor.to`): `to(genesis.float64)`, `to("cpu")`.

        Raises TypeError for another dtype.
        """
        args = tuple([part for a in args for part in ((a.device, a.dtype) if isinstance(a, Tensor) else (a,))])
        for dtype in (*args, *kwargs.values()):
            if isinstance(dtype, DType) and not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(f"to: a module's parameters stay floating or complex; {dtype.name} is neither")
        others = [a for a in args if not isinstance(a, DType)]
        options = {name: value for name, value in kwargs.items() if not isinstance(value, DType)}

        def convert(tensor: Tensor) -> Tensor:
            if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
                return tensor.to(*args, **kwargs)
            return tensor.to(*others, **options) if others or options else tensor

        return self._apply(convert)

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Move all parameters and buffers to `device` without copying values: their elements are uninitialized.

        Without `recurse`, those of this module alone.

        >>> with genesis.device("meta"):
        ...     layer = genesis.nn.Linear(2, 1)
        >>> layer.to_empty(device="cpu").weight.device
        device(type='cpu')
        """
        return self._apply(lambda tensor: empty(*tensor.shape, dtype=tensor.dtype, device=device), recurse)

    def share_memory(self) -> Self:
        """Move parameters and buffers to shared memory, for processes to which `multiprocessing` sends the module. Returns
        it."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the content of each parameter and buffer by `fn` of it; children use their own `_apply`.

        All conversions call this, so that a class can override it to convert other tensors too.
        """
        for child in self.children() if recurse else ():
            child._apply(fn)
        with grad_mode(False):
            for tensor in self.parameters(False):
                if isinstance(tensor, UninitializedTensorMixin):
                    tensor._kept = fn(tensor)._kept  # type: ignore[attr-defined]
                    continue
                given = detach(tensor)
                made = fn(given)
                if made is not given:
                    move_storage(tensor, made)
                if tensor.grad is not None:
                    tensor.grad = fn(tensor.grad)
        buffers = members_of(self, "_buffers")
        for name, buffer in pairs_of(self, "_buffers"):
            buffers[name] = None if buffer is None else fn(buffer)
        return self

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self.to("cpu")

    def cuda(self, device: DeviceLike = None) -> Self:
        """Move all parameters and buffers to a GPU, a device or its number, the first by default."""
        return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")

    def type(self, dst_type: DType) -> Self:
        """Convert floating parameters and buffers to a floating dtype."""
        return self.to(as_dtype("type", dst_type))

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self.to(float32)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64.

        >>> genesis.nn.Linear(2, 1).double().weight.dtype
        genesis.float64
        """
        return self.to(float64)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """Convert floating parameters and buffers to bfloat16."""
        return self.to(bfloat16)
