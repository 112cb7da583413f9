"""`torch._foreach_*`: one operation on each tensor of a list. Neighbouring calls fuse here, so a loop is all there is to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import genesis
from genesis.ir.annotations import AnyFunction
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import refuse_leaf

EACH = (
    "abs", "acos", "add", "asin", "atan", "ceil", "clamp_max", "clamp_min", "cos", "cosh", "div", "erf", "erfc", "exp", "expm1",
    "floor", "frac", "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul", "neg", "pow", "reciprocal",
    "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc",
)
SCALED = "addcdiv", "addcmul"  # their third argument is a factor
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

    def call(self: Sequence[Tensor], *others: Any, scalars: Any = None, **named: Any) -> Any:
        if not self:
            raise RuntimeError(f"{full}: no tensors; want one at least")
        any(map(refuse_leaf, self if in_place else ()))  # before any is written to
        if name in SCALED and len(others) > 2:
            *others, scalars = others  # type: ignore[assignment]
        if scalars is not None:
            named["value"] = scalars.tolist() if isinstance(scalars, Tensor) else scalars
        named = {key: _each(full, value, len(self)) for key, value in named.items() if value is not None}
        rows = zip(self, *[_each(full, other, len(self)) for other in others], strict=False)
        options = zip(*named.values(), strict=False) if named else repeat(())
        made = [getattr(tensor, method)(*row, **dict(zip(named, values, strict=True)))
                for (tensor, *row), values in zip(rows, options, strict=False)]
        return self if in_place else tuple(made)

    call.__name__ = call.__qualname__ = full
    call.__doc__ = f"`{method}` of each tensor, beside it a number, one tensor, or an element of a list."
    return call


FOREACH = {
    f"_foreach_{name}" + "_" * in_place: _foreach(name, in_place) for name in (*EACH, *SCALED) for in_place in (False, True)}
FOREACH |= {f"_foreach_{name}": _foreach(name, False) for name in ("clone", "max", "mm")}
FOREACH |= {f"_foreach_{name}_": _foreach(name, True) for name in ("copy", "zero")}
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


FOREACH |= {f.__name__: f for f in (_foreach_pow, _foreach_norm, _foreach_powsum)}
