"""Autocast: casts an operation's arguments by the policy in its row.

Under `genesis.autocast(dtype)` a row's policy is applied where its call is first recorded:

- "low": float16, bfloat16 and float32 become `dtype`: products, whose sums are float32 whatever their operands are;
- "float32": float16 and bfloat16 become float32: exponentials, sums, norms and losses, which need its range or digits;
- "widest": the arguments take the widest dtype among them.

Rows without a policy keep their arguments' dtypes. The lists are PyTorch's (ATen/autocast_mode.h). float64 is left alone. The
casts are nodes of the graph: their gradients cast back, so a float32 parameter gets a float32 gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from genesis.ir.dtypes import DType, float32, float64, promote
from genesis.ir.graph import Value
from genesis.ops.registry import Operation, cast


def recast(
    operation: Operation, low: DType, arguments: Sequence[object], attributes: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    """The arguments of a call under autocast to `low`."""
    met = [v.dtype for a in (*arguments, *attributes.values()) for v in _recastable(a)]
    wanted = low if operation.autocast == "low" else float32
    if operation.autocast == "widest" and met:
        wanted = reduce(promote, met)

    def converted(argument: object) -> object:
        if not any(True for _ in _recastable(argument)):
            return argument
        if isinstance(argument, tuple):
            return tuple(map(converted, argument))
        return cast(argument, wanted)  # type: ignore[arg-type]

    return [converted(a) for a in arguments], {k: converted(a) for k, a in attributes.items()}


def _recastable(argument: object) -> Iterator[Value]:
    """The tensors of an argument that autocast may convert."""
    for value in argument if isinstance(argument, tuple) else (argument,):
        if isinstance(value, Value) and not value.is_scalar and value.dtype.category == 2 and value.dtype is not float64:
            yield value
