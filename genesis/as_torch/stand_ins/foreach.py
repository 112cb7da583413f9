"""`torch._foreach_*`: one operation on each tensor of a list. Neighbouring calls fuse here, so a loop is all there is to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import genesis
from genesis.ir.annotations import AnyFunction
from genesis.tensor.handle import Tensor

EACH = (
    "abs", "acos", "add", "asin", "atan", "ceil", "clamp_max", "clamp_min", "cos", "cosh", "div", "erf", "erfc", "exp", "expm1",
    "floor", "frac", "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul", "neg", "pow", "reciprocal",
    "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc",
)
RENAMED = {"maximum": "clamp_min", "minimum": "clamp_max"}  # the methods that take numbers too


def _each(name: str, argument: Any, count: int) -> Any:
    """An argument for each tensor: the elements of a list, or the same one."""
    if not isinstance(argument, (list, tuple)):
        return repeat(argument, count)
    if len(argument) != count:
        raise RuntimeError(f"{name}: a list of {len(argument)} beside one of {count} tensors; want as many")
    return argument


def _foreach(name: str, in_place: bool) -> AnyFunction:
    method = RENAMED.get(name, name) + "_" * in_place
    full = f"_foreach_{name}" + "_" * in_place

    def call(self: Sequence[Tensor], *others: Any, alpha: Any = None, **named: Any) -> Any:
        if not self:
            raise RuntimeError(f"{full}: no tensors; want one at least")
        columns = [_each(full, other, len(self)) for other in (*others, *named.values())]
        options = {} if alpha is None else {"alpha": alpha}
        made = [getattr(tensor, method)(*row, **options) for tensor, *row in zip(self, *columns, strict=False)]
        return self if in_place else tuple(made)

    call.__name__ = call.__qualname__ = full
    call.__doc__ = f"`{method}` of each tensor, beside it a number, one tensor, or an element of a list."
    return call


def _scaled(name: str, in_place: bool) -> AnyFunction:
    method = name + "_" * in_place
    full = f"_foreach_{method}"

    def call(self: Sequence[Tensor], tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        scales = value if scalars is None else scalars
        scales = _each(full, scales.tolist() if isinstance(scales, Tensor) else scales, len(self))
        rows = zip(self, _each(full, tensor1, len(self)), _each(full, tensor2, len(self)), scales, strict=False)
        made = [getattr(tensor, method)(first, second, value=scale) for tensor, first, second, scale in rows]
        return self if in_place else tuple(made)

    call.__name__ = call.__qualname__ = full
    call.__doc__ = f"`{method}` of each tensor, with one factor or one for each."
    return call


FOREACH = {
    f"_foreach_{name}" + "_" * in_place: make(name, in_place)
    for make, names in ((_foreach, EACH), (_scaled, ("addcdiv", "addcmul"))) for name in names for in_place in (False, True)
}
_pow = FOREACH["_foreach_pow"]


def _foreach_pow(self: Any, exponent: Any) -> tuple[Tensor, ...]:
    """Each tensor, or a number, to the power `exponent`: a number or a list."""
    if isinstance(self, (list, tuple)):
        return _pow(self, exponent)  # type: ignore[no-any-return]
    return tuple(genesis.pow(self, each) for each in exponent)


def _foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor's elements."""
    return tuple(genesis.linalg.vector_norm(tensor, ord, dtype=dtype) for tensor in self)


def _foreach_powsum(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of each tensor's elements' sizes to the power `ord`."""
    return tuple((tensor.abs() ** ord).sum(dtype=dtype) for tensor in self)


def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The largest element of each."""
    return tuple(tensor.max() for tensor in self)


def _foreach_mm(self: Sequence[Tensor], mat2: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The product of each with one of the other list."""
    return tuple(a @ b for a, b in zip(self, _each("_foreach_mm", mat2, len(self)), strict=False))


def _foreach_clone(self: Sequence[Tensor], *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of each."""
    return tuple(tensor.clone() for tensor in self)


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> Sequence[Tensor]:
    """Write those of `src` to those of `self`."""
    for tensor, source in zip(self, _each("_foreach_copy_", src, len(self)), strict=False):
        tensor.copy_(source)
    return self


def _foreach_zero_(self: Sequence[Tensor]) -> Sequence[Tensor]:
    """Write zeros to all."""
    for tensor in self:
        tensor.zero_()
    return self


FOREACH |= {f.__name__: f for f in (
    _foreach_pow, _foreach_norm, _foreach_powsum, _foreach_max, _foreach_mm, _foreach_clone, _foreach_copy_, _foreach_zero_)}
