"""Numbers as integers and as bits: common divisors and multiples, neighbours, mantissas. The host computes them, by NumPy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genesis.ir.dtypes import int32
from genesis.ir.graph import Value
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import exp2
from genesis.ops.registry import Operation, broadcast, cast, composite, primitive, promoted, widened

__all__ = ["frexp", "gcd", "lcm", "nextafter"]


# ---- integers ----


def _integers(name: str, ref: np.ufunc, doc: str) -> Operation:
    """A row of two integers."""
    primitive(name, "host", reference=lambda node, x, y: ref(x, y))

    @composite(name, 2, ref=ref, doc=doc, in_place=True)
    def define(input: Value, other: Value) -> Value:
        x, y = promoted(input, other)
        if x.dtype.category != 1:
            raise TypeError(f"{name}: wants integer tensors, got {x.dtype.name}")
        x, y = broadcast(name, x, y)
        return x.graph.add(name, (x, y), x.shape, x.dtype)

    return define


gcd = _integers("gcd", np.gcd, "The greatest number that divides both; 0 of 0 and 0.")
lcm = _integers("lcm", np.lcm, "The least number, not negative, that both divide.")


# ---- floating numbers ----

primitive("nextafter", "host", reference=lambda node, x, y: np.nextafter(x, y))


@composite("nextafter", 2, ref=np.nextafter, in_place=True)
def nextafter(input: Value, other: Value) -> Value:
    """The next number of the dtype after `input` in the direction of `other`.

    >>> import genesis
    >>> genesis.nextafter(genesis.tensor(1.0), genesis.tensor(2.0)).item() - 1 == genesis.finfo(genesis.float32).eps
    True
    """
    x, y = promoted(input, other)
    if not x.dtype.is_floating_point:
        raise TypeError(f"nextafter: wants floating tensors, got {x.dtype.name}; integers have no neighbours between them")
    x, y = broadcast("nextafter", stop_gradient(x), stop_gradient(y))  # as in PyTorch, it has none
    return x.graph.add("nextafter", (x, y), x.shape, x.dtype)


class Parts(NamedTuple):
    """What `frexp` gives."""

    mantissa: Any
    exponent: Any


def _exponent(x: Value) -> Value:
    return x.graph.add("frexp_exponent", (x,), x.shape, int32)


primitive("frexp_exponent", "host", reference=lambda node, x: np.frexp(x)[1])
primitive(
    "frexp", "host", reference=lambda node, x: np.frexp(x)[0], grad=lambda g, y, x: g / exp2(cast(_exponent(x), x.dtype))
)


@composite("frexp")
def frexp(input: Value) -> Any:
    """(mantissa, exponent), int32, of numbers mantissa * 2^exponent, with mantissas in [0.5, 1) or 0, and their sign.

    >>> import genesis
    >>> genesis.frexp(genesis.tensor([6.0, -0.5])).mantissa
    tensor([ 0.7500, -0.5000])
    """
    if not input.dtype.is_floating_point:
        raise TypeError(f"frexp: wants a floating tensor, got {input.dtype.name}; convert with .to(genesis.float32)")
    x = widened(input)
    return Parts(cast(x.graph.add("frexp", (x,), x.shape, x.dtype), input.dtype), _exponent(x))
