"""Reductions, running sums and softmax over the elements where a mask is true, under the names of `torch.masked`.

`mask` holds bools and broadcasts to the input; None is a mask that is true everywhere. With `dtype` the input is converted
first. Masked elements count as the operation's identity and get no gradient; fully masked results are the identity: 0 for sums,
infinities for extremes, NaN for means. Sums, products, extremes and means of sparse tensors are sparse; all but sums require a
mask there.

>>> x, mask = genesis.tensor([[1.0, 2.0, 3.0]]), genesis.tensor([True, False, True])
>>> genesis.masked.mean(x, 1, mask=mask), genesis.masked.softmax(x * 0, 1, mask=mask)
(tensor([2.]), tensor([[0.5000, 0.0000, 0.5000]]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.functions.comparison import iinfo
from genesis.ir.dtypes import DType, bool_, float32
from genesis.ir.errors import ArgumentError
from genesis.ir.named_layouts import SparseLayout
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]
__dir__ = __all__.copy

Axes = int | Sequence[int] | None
Identity = Callable[[DType], float | bool]


# ---- masks ----
def _filled(name: str, input: Tensor, mask: Tensor | None, value: float | bool, dtype: DType | None = None) -> Tensor:
    """`input`, in `dtype`, with `value` where the mask is false."""
    x = input if dtype is None else input.to(dtype)
    if mask is None:
        return x
    if mask.dtype is not bool_ or mask.ndim > x.ndim:
        raise ArgumentError(f"{name}: mask {mask.dtype.name} {mask.shape} of input {x.shape}; want bools that broadcast to it")
    return x.masked_fill(~mask, value)


def _counted(input: Tensor, mask: Tensor | None, dim: Axes, keepdim: bool) -> Tensor:
    """The number of unmasked elements over `dim`."""
    whole = input.new_ones((), dtype=bool_) if mask is None else mask
    return whole.expand(input.shape).sum(dim, keepdim)


def _of_sparse(name: str, input: Tensor, dim: Axes, keepdim: bool, dtype: DType | None, mask: Tensor | None) -> Tensor:
    """The rule for sparse tensors."""
    assert isinstance(input, CompositeTensor)
    settings = {"keepdim": keepdim, "dtype": dtype, "mask": mask}
    return input.computed(f"masked.{name}", (input, dim), settings)  # type: ignore[no-any-return]


def _zero(dtype: DType) -> float:
    return 0


def _one(dtype: DType) -> float:
    return 1


def _least(dtype: DType) -> float | bool:
    return False if dtype is bool_ else -float("inf") if dtype.category >= 2 else iinfo(dtype).min


def _greatest(dtype: DType) -> float | bool:
    return True if dtype is bool_ else float("inf") if dtype.is_floating_point else iinfo(dtype).max


IDENTITIES: dict[str, Identity] = {"sum": _zero, "prod": _one, "amax": _least, "amin": _greatest, "mean": _zero}


# ---- reductions with masked elements replaced by the identity ----
def _reduction(name: str, identity: Identity, doc: str) -> Callable[..., Tensor]:
    def reduce(
        input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
    ) -> Tensor:
        if isinstance(input.layout, SparseLayout):
            return _of_sparse(name, input, dim, keepdim, dtype, mask)
        x = _filled(name, input, mask, identity(dtype or input.dtype), dtype)
        axes = tuple(range(x.ndim)) if dim is None and name == "logsumexp" else dim
        found = call(OPERATIONS[name], (x, axes, keepdim))
        return found.to(x.dtype) if name.startswith(("arg", "log")) else found

    return _named(reduce, name, doc)


def _along(name: str, identity: Identity, doc: str) -> Callable[..., Tensor]:
    def along(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
        x = _filled(name, input, mask, identity(dtype or input.dtype), dtype)
        found = call(OPERATIONS[name], (x, dim))
        return found.to(x.dtype) if name.startswith("cum") else found

    return _named(along, name, doc)


def _named(function: Callable[..., Tensor], name: str, doc: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + "\n\nRaises ValueError for a mask that is not of bools, or has more axes than the input."
    return function


sum = _reduction("sum", _zero, "The sum over `dim` (all axes, if None) of the elements where `mask` is true.")
prod = _reduction("prod", _one, "The product over `dim` (all axes, if None) of the elements where `mask` is true.")
amax = _reduction("amax", _least, "The greatest over `dim` (all axes, if None) of the elements where `mask` is true.")
amin = _reduction("amin", _greatest, "The least over `dim` (all axes, if None) of the elements where `mask` is true.")
argmax = _reduction(
    "argmax", _least, "The index (in the input's dtype) of the greatest element along `dim` where `mask` is true.")
argmin = _reduction(
    "argmin", _greatest, "The index (in the input's dtype) of the least element along `dim` where `mask` is true.")
logsumexp = _reduction("logsumexp", _least, "log(sum(exp(x))) over `dim` (all axes, if None) where `mask` is true.")

cumsum = _along("cumsum", _zero, "The running sums along `dim` of the elements where `mask` is true.")
cumprod = _along("cumprod", _one, "The running products along `dim` of the elements where `mask` is true.")
softmax = _along("softmax", _least, "`softmax` along `dim` of the elements where `mask` is true; 0 elsewhere.")
log_softmax = _along("log_softmax", _least, "`log_softmax` along `dim` of the elements where `mask` is true; -inf elsewhere.")
softmin = _along("softmin", _greatest, "`softmin` along `dim` of the elements where `mask` is true; 0 elsewhere.")


# ---- reductions that count elements ----
def mean(
    input: Tensor, dim: Axes = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The mean over `dim` (all axes, if None) of the elements where `mask` is true; NaN if there are none.

    Raises ValueError for integers, without a floating `dtype`.
    """
    if isinstance(input.layout, SparseLayout):
        return _of_sparse("mean", input, dim, keepdim, dtype, mask)
    if (dtype or input.dtype).category < 2:
        raise ArgumentError(f"mean: wants a floating tensor or dtype, got {(dtype or input.dtype).name}")
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / _counted(input, mask, dim, keepdim)


def var(
    input: Tensor, dim: Axes = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:
    """The variance over `dim` (all axes, if None) of the elements where `mask` is true.

    The sum of squares is divided by the count minus `correction`, by default 1; `unbiased` True means 1, False 0.
    Raises ValueError for both.
    """
    if unbiased is not None and correction is not None:
        raise ArgumentError(f"var: got unbiased {unbiased} and correction {correction}; want one of them")
    less = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    x = input.to(dtype or (input.dtype if input.dtype.category >= 2 else float32))
    d = x - mean(x, dim, keepdim=True, mask=mask)
    return sum(d * d.conj(), dim, keepdim=keepdim, mask=mask) / (_counted(x, mask, dim, keepdim) - less).clamp(min=0)


def std(
    input: Tensor, dim: Axes = None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:
    """The square root of `var`."""
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median along `dim` of the elements where `mask` is true; NaN if there are none, 0 for integers."""
    wide = input if input.dtype.category >= 2 else input.to(float32)
    found = call(OPERATIONS["nanmedian"], (_filled("median", wide, mask, float("nan")), dim, keepdim)).values
    return found if wide is input else found.nan_to_num().to(dtype or input.dtype)


def norm(
    input: Tensor, ord: float | None = 2.0, dim: Axes = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The `ord`-norm, as `linalg.vector_norm`, over `dim` (all axes, if None) of the elements where `mask` is true."""
    order = 2.0 if ord is None else ord
    x = _filled("norm", input, mask, float("inf") if order == -float("inf") else 0.0, dtype)
    return call(OPERATIONS["vector_norm"], (x, order, dim, keepdim))


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The elements divided by max(their `norm` along `dim`, `eps`); 0 where `mask` is false."""
    sizes = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("normalize", input, mask, 0.0) / sizes.clamp(min=eps)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(`input`) + exp(`other`)), each with its own mask; -inf where both are masked.

    >>> x = genesis.tensor([1.0, 1.0])
    >>> genesis.masked.logaddexp(x, x, other_mask=genesis.tensor([True, False]))
    tensor([1.6931, 1.0000])
    """
    first = _filled("logaddexp", input, input_mask, -float("inf"), dtype)
    return call(OPERATIONS["logaddexp"], (first, _filled("logaddexp", other, other_mask, -float("inf"), dtype)))
