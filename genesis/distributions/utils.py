"""Functions shared by distributions: broadcast parameters, odds and probabilities, triangles as vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from types import FunctionType
from typing import Any, Generic, TypeVar

from genesis.functions.comparison import broadcast_shapes, finfo as limits_of
from genesis.functions.creation import full, zeros
from genesis.functions.ranges import tril_indices
from genesis.functions.selection import where
from genesis.functions.splitting import broadcast_tensors
from genesis.ir.dtypes import DType, bfloat16, float16, float32, float64, get_default_dtype
from genesis.random import rand, randn
from genesis.runtime.devices import CPU, Device
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode

Number = bool | int | float
Operand = Tensor | Number
T = TypeVar("T")

euler_constant = 0.57721566490153286060
# Made now: NumPy notes that of a dtype at the first call, which a recorded call would not repeat.
_LIMITS = {dtype: limits_of(dtype) for dtype in (bfloat16, float16, float32, float64)}


class derived(Generic[T]):
    """A property that an instance attribute overrides: `probs` computed from `logits`."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        return self.compute(instance) if instance is not None else self  # type: ignore[return-value]


class lazy_property(derived[T]):
    """A property that is computed once, with its derivation, and kept as an attribute of the object."""

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        if instance is None:
            return self  # type: ignore[return-value]
        with grad_mode(True):
            value = self.compute(instance)
        setattr(instance, self.compute.__name__, value)
        return value


class Formula(property):
    """A property by a formula, which takes the property's name, and so the docstring that a base has for it."""

    def __set_name__(self, owner: type, name: str) -> None:
        compute: Any = self.fget
        if not isinstance(compute, FunctionType) or compute.__code__.co_name != "<lambda>":
            return  # it has a name of its own
        if compute.__name__ != "<lambda>":  # as in `mean = mode = formula(..)`
            if type(self) is not Formula:
                return  # what else it has would be lost
            compute = FunctionType(compute.__code__, compute.__globals__, name, compute.__defaults__, compute.__closure__)
            setattr(owner, name, Formula(compute))
        compute.__name__, compute.__qualname__ = name, f"{owner.__qualname__}.{name}"


def formula(compute: Callable[[Any], T]) -> T:
    """A property by a formula."""
    return Formula(compute)  # type: ignore[return-value]


def finfo(dtype: DType) -> limits_of:
    """The limits of a floating dtype."""
    return _LIMITS[dtype]


def as_tensors(*values: Operand) -> list[Tensor]:
    """Numbers among them become 0-d tensors, of the dtype and on the device of the first tensor."""
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype, device = (get_default_dtype(), CPU) if first is None else (first.dtype, first.device)
    for value in values:
        if not isinstance(value, Tensor | bool | int | float):
            raise TypeError(f"broadcast_all: parameters must be tensors or numbers, got {type(value).__name__} {value!r:.40}")
    return [v if isinstance(v, Tensor) else full((), v, dtype=dtype, device=device) for v in values]


def broadcast_all(*values: Operand) -> tuple[Tensor, ...]:
    """Tensors of one shape; numbers take the dtype and device of the first tensor. Raises TypeError for anything else."""
    return tuple(broadcast_tensors(*as_tensors(*values)))


def sum_rightmost(value: Operand, count: int) -> Any:
    """The sum over the last `count` axes."""
    return value if count == 0 or not isinstance(value, Tensor) else value.sum(tuple(range(-count, 0)))


def all_rightmost(value: Tensor, count: int) -> Tensor:
    """Whether all hold along the last `count` axes."""
    return value if count == 0 else value.reshape(*value.shape[: value.ndim - count], -1).all(-1)


def uniform_inside(shape: Sequence[int], dtype: DType, device: Device = CPU) -> Tensor:
    """Numbers in (0, 1): neither end, where quantiles are infinite."""
    return rand(tuple(shape), dtype=dtype, device=device).clamp(min=finfo(dtype).tiny)


def _standard_normal(shape: Sequence[int], dtype: DType, device: Device = CPU) -> Tensor:
    return randn(tuple(shape), dtype=dtype, device=device)


_sum_rightmost = sum_rightmost


def parts_along(value: Tensor, dim: int, lengths: Sequence[int]) -> list[Tensor]:
    """The parts along `dim` that have these extents."""
    return [value.narrow(dim, begin, length) for begin, length in zip(accumulate(lengths, initial=0), lengths, strict=False)]


def above(x: Tensor, least: float, of: Callable[[Tensor], Tensor], otherwise: float | Tensor) -> Tensor:
    """`of` of x where x exceeds `least`, `otherwise` elsewhere; `of` is asked for `least` + 1 there, which has a derivative."""
    is_above = x > least
    return where(is_above, of(where(is_above, x, least + 1)), otherwise)


# ---- probabilities and their logarithms ----
def inside(y: Tensor) -> Tensor:
    """Numbers kept from 0 and 1 by the least steps."""
    limits = finfo(y.dtype)
    return y.clamp(limits.tiny, 1 - limits.eps)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept from 0 and 1 by the machine precision."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The sigmoid of log odds, or the softmax of logarithms along the last axis."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds, or logarithms; of probabilities that `clamp_probs` keeps finite."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


# ---- triangles ----
def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The entries on and below the diagonal `diag` of matrices (.., n, n), row by row. Raises ValueError outside -n..n-1."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag {diag} is none of {n} x {n} matrices; want {-n} to {n - 1}")
    rows, columns = tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`. Raises ValueError for a length that no triangle has."""
    length = vec.shape[-1]
    n = round((-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    rows, columns = tril_indices(n, n, diag)
    if rows.shape[0] != length:
        raise ValueError(f"vec_to_tril_matrix: {length} numbers are not a triangle below the diagonal {diag}")
    empty = zeros(*vec.shape[:-1], n * n, dtype=vec.dtype, device=vec.device)
    indices = (rows * n + columns).expand(vec.shape)
    return empty.scatter(-1, indices, vec).reshape(*vec.shape[:-1], n, n)


def joint_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    return tuple(broadcast_shapes(*[tuple(shape) for shape in shapes]))
