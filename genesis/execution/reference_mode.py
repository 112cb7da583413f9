"""Runs a trace by the NumPy references of its nodes, one by one, instead of a plan: in eager mode, and on the device "meta"."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from genesis.ops.reference import RefusedError, evaluate_all
from genesis.ops.registry import PRIMITIVES
from genesis.runtime.devices import META
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Array, Trace


class Interpretation(NamedTuple):
    """Values computed without a plan, with the attributes that the end of a flush reads from a plan.

    `number_of` has the number of each value by its position. If an index was out of range, `failure` is (the node's position,
    the message), and there are no values.
    """

    keeps: bool
    number_of: Mapping[int, int]
    memories: list[Memory]
    saved: Sequence[int] = ()
    read_collectives: Collection[int] = ()
    failure: tuple[int, Exception] | None = None


def interpreted(trace: Trace, handles: Sequence[Array]) -> Interpretation:
    """The values of `handles` by the references; if backward may follow, also all values that they depend on."""
    keeps, outputs, wanted = _wanted(trace, handles)
    given = {index: array.memory.numpy(array.node.dtype) for index, array in trace.input_at.items()}  # type: ignore[union-attr]
    try:
        values = evaluate_all(trace.nodes, wanted, given, trace.scalars)
    except RefusedError as refused:
        return Interpretation(keeps, {}, [], failure=(refused.position, refused.error))
    saved = [index for index in values if index not in outputs and index not in given] if keeps else []
    collectives = {index for index, node in enumerate(trace.nodes) if PRIMITIVES[node.op].kind == "collective"}
    return Interpretation(keeps, _numbered([*outputs, *saved]), [
        *[_stored(values[index], trace, index) for index in outputs],
        *[_shared(trace, index) or _stored(values[index], trace, index) for index in saved],
    ], saved, collectives)


def without_values(trace: Trace, handles: Sequence[Array]) -> Interpretation:
    """The values of `handles` on the device "meta": memory of their shapes without data, and the values that backward reads."""
    keeps, outputs, waiting = _wanted(trace, handles)
    reached = set(outputs)
    while waiting and keeps:
        found = set(trace.nodes[waiting.pop()].inputs) - reached
        reached |= found
        waiting += found
    saved = sorted(reached - outputs.keys() - trace.input_at.keys())
    values = [*outputs, *saved]
    return Interpretation(
        keeps, _numbered(values),
        [Memory.unwritten(trace.nodes[index].shape, trace.nodes[index].dtype, META) for index in values], saved)


def _numbered(values: Sequence[int]) -> dict[int, int]:
    return {index: k for k, index in enumerate(values)}


def _wanted(trace: Trace, handles: Sequence[Array]) -> tuple[bool, dict[int, None], list[int]]:
    """(whether backward may follow, the positions of `handles`, those and what custom Functions may read in backward)."""
    keeps = any([array.node.differentiable for array in handles])
    outputs = dict.fromkeys([array.index for array in handles])
    return keeps, outputs, [*outputs, *(trace.backward.custom_calls if keeps else ())]


def _shared(trace: Trace, index: int) -> Memory | None:
    """The memory of a value that is an input, so that backward detects writes to it."""
    while (node := trace.nodes[index]).op in ("detach", "variable"):
        index = node.inputs[0]
    array = trace.input_at.get(index)
    return None if array is None else array.memory


def _stored(value: np.ndarray, trace: Trace, index: int) -> Memory:
    """A value in its own memory."""
    node = trace.nodes[index]
    whole = value if value.shape == node.shape else np.broadcast_to(value, node.shape)
    return Memory.of(whole, node.dtype, trace.device)
