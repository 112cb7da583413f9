"""`torch.masked.MaskedTensor`: a tensor with a mask of its valid elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import genesis
from genesis import masked
from genesis.ir.annotations import AnyFunction
from genesis.tensor.call_modes import add_overriding_class, ignoring_classes
from genesis.tensor.handle import Tensor

REDUCTIONS = {"sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "var", "std"}
REARRANGED = {
    "reshape", "view", "permute", "transpose", "t", "unsqueeze", "squeeze", "flatten", "expand", "broadcast_to", "narrow",
    "select", "flip", "roll", "movedim", "swapaxes", "unfold", "repeat", "tile", "clone", "contiguous",
}
REFUSED = {"matmul", "mm", "bmm", "cat", "stack", "sort", "topk", "median", "cumsum", "linear", "softmax", "index_select"}


class MaskedTensor(Tensor):
    """A tensor whose elements are valid where its mask is true. Elementwise functions keep the mask, which must be equal for
    all operands; reductions use valid elements; views rearrange both. Anything else raises TypeError.

    >>> x = masked_tensor(genesis.tensor([1.0, 2.0, 3.0]), genesis.tensor([True, False, True]))
    >>> (x * 2).sum()
    MaskedTensor(  8.0000, True)
    """

    _mask: Tensor

    def get_data(self) -> Tensor:
        """All elements, masked ones included."""
        return _plain(self)

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._mask

    def to_tensor(self, value: float) -> Tensor:
        """A plain tensor, with `value` for masked elements."""
        with ignoring_classes():
            return _plain(self).masked_fill(~self._mask, value)

    def is_sparse_coo(self) -> bool:
        """No."""
        return False

    is_sparse_csr = is_sparse_coo  # type: ignore[assignment]

    @property  # type: ignore[misc]
    def grad(self) -> Any:
        """The gradient, with the mask; or None."""
        found = self._grad
        return None if found is None else _masked(found, self._mask)

    def __getitem__(self, index: Any) -> MaskedTensor:
        return _masked(_plain(self)[index], self._mask[index])

    def __iter__(self) -> Iterator[MaskedTensor]:
        return iter([self[index] for index in range(self.shape[0])])

    def __repr__(self, *, tensor_contents: object = None) -> str:
        values, mask = _plain(self).detach().cpu().numpy(), self._mask.cpu().numpy()
        text = "{:8.4f}" if self.dtype.is_floating_point else "{}"
        shown = np.vectorize(lambda v, m: text.format(v) if m else "      --",
                             otypes=[object])(values, mask) if values.size else np.empty(values.shape, object)
        if not values.shape:
            return f"MaskedTensor({shown.item()}, {bool(mask)})"
        return f"MaskedTensor(\n{_lines(shown, 1)}\n)"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return repr(self)

    @classmethod
    def __torch_function__(
        cls, func: AnyFunction, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The override of functions of masked tensors."""
        name, kwargs = func.__name__, kwargs or {}
        with ignoring_classes():
            first = args[0] if args and isinstance(args[0], MaskedTensor) else None
            if name in REDUCTIONS and first is not None:
                return _reduced(name, first, *args[1:], **kwargs)
            if name in REARRANGED and first is not None:
                return _masked(func(_plain(first), *args[1:], **kwargs), func(first._mask, *args[1:], **kwargs))
            masks = [a._mask for a in args if isinstance(a, MaskedTensor)]
            if name in REFUSED or not masks:
                raise TypeError(f"MaskedTensor: {name} is not for tensors with masks; use get_data() or to_tensor()")
            if any(not genesis.equal(mask, masks[0]) for mask in masks[1:]):
                raise ValueError("MaskedTensor: input masks must match; use get_data() or to_tensor()")
            result = func(*[_plain(a) if isinstance(a, MaskedTensor) else a for a in args], **kwargs)
            if not isinstance(result, Tensor) or result.shape != masks[0].shape:
                raise TypeError(f"MaskedTensor: {name} is not for tensors with masks; use get_data() or to_tensor()")
            return _masked(result, masks[0])


def _plain(x: MaskedTensor) -> Tensor:
    with ignoring_classes():
        return x.as_subclass(Tensor)


def _masked(data: Tensor, mask: Tensor) -> MaskedTensor:
    with ignoring_classes():
        made = data.as_subclass(MaskedTensor)
    made._mask = mask  # type: ignore[attr-defined]
    return made  # type: ignore[return-value]


def _reduced(name: str, x: MaskedTensor, dim: Any = None, keepdim: bool = False, **options: Any) -> MaskedTensor:
    function: Callable[..., Tensor] = getattr(masked, name)
    mask = x._mask.any() if dim is None else _any(x._mask, dim, keepdim)
    return _masked(function(_plain(x), dim, keepdim=keepdim, mask=x._mask, **options), mask)


def _any(mask: Tensor, dim: int | Sequence[int], keepdim: bool) -> Tensor:
    """`any` along several axes, from the last."""
    axes = [dim] if isinstance(dim, int) else sorted((d % mask.ndim for d in dim), reverse=True)
    for axis in axes:
        mask = mask.any(axis, keepdim)
    return mask


def _lines(values: np.ndarray, depth: int) -> str:
    space = "  " * depth
    if values.ndim == 1:
        return f"{space}[{', '.join(values)}]"
    return f"{space}[\n" + ",\n".join(_lines(row, depth + 1) for row in values) + f"\n{space}]"


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A tensor with a mask: bools of the same shape. Raises ValueError for another shape, TypeError for another dtype.

    It is a leaf of its own, which `requires_grad` or not. What `genesis.compile` made of a function that meets one is called
    each time.
    """
    if data.ndim != mask.ndim:
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    if mask.dtype is not genesis.bool:
        raise TypeError(f"mask must be a tensor of bools, got {mask.dtype.name}")
    add_overriding_class(MaskedTensor)  # from the first one on, calls look at the classes of their arguments
    made = _masked(data.detach().clone(), mask.detach().clone())
    made.requires_grad_(requires_grad)
    return made


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """`data` itself with a mask: gradients flow through it."""
    made = masked_tensor(data, mask)
    return _masked(data, made._mask)


def is_masked_tensor(obj: object, /) -> bool:
    """Whether it is a tensor with a mask."""
    return isinstance(obj, MaskedTensor)
