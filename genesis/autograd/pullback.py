"""The parts of functional transforms: points to differentiate at, pullbacks of cotangents, and batching.

A point is a new result. So whatever the caller's tensor is (a leaf, a result, the point of an outer transform), its `.grad`,
flags and values do not change, and each transform differentiates only by its own points.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from genesis.autograd.derivation import derivation
from genesis.autograd.gradients import gradients_of
from genesis.autograd.hooks import Gradients
from genesis.execution.eager import deferring
from genesis.ir.annotations import Key
from genesis.ir.graph import Graph
from genesis.ir.shapes import Shape
from genesis.ops.batch import NotBatchedError, batch
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.from_python import filled, from_data
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.state import grad_mode, recorded
from genesis.tracing.trace import LOCK, Array, Trace


def enter(x: Tensor, follow: bool) -> Tensor:
    """A point with the value of `x`; with `follow`, recorded gradients flow on to `x`."""
    with grad_mode(True):
        source = x if follow and x.requires_grad else tensor_of(array_of(constant(x)), True)
        return call(OPERATIONS["clone"], (source,))


def handle(point: Tensor, given: Tensor) -> Tensor:
    """A tensor with the value of a point for the function, which may overwrite it without changing the point.

    It is row-major with its own storage; code that depends on the storage of `given` uses `lies_as`.
    """
    result = tensor_of(array_of(point), True)
    result._lay_as = lies_as(given)
    return result


def lies_as(x: Tensor) -> Layout:
    """The layout of `x` in its storage or, for a copy, the layout of its original."""
    copied = (x if x._base is None else x._base)._lay_as
    at = x._layout or contiguous_layout(x.shape)
    if copied is None:
        return at
    return at._replace(offset=at.offset + copied.offset) if copied.is_contiguous else copied


def constant(x: Tensor) -> Tensor:
    """`x` without gradient."""
    return call(OPERATIONS["stop_gradient"], (x,)) if array_of(x).node.differentiable else tensor_of(array_of(x))


def full(number: float, shape: Shape, like: Tensor) -> Tensor:
    """A tensor filled with a number, with the dtype and device of `like`."""
    return filled(number, shape, like.dtype, array_of(like).device)


def pull(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor], points: Sequence[Tensor], create_graph: bool, adjoint: bool = False
) -> list[Tensor | None]:
    """The cotangents of the points; None for points on which no output depends. `adjoint`: see `BackwardPass`."""
    pairs = [(y, c) for y, c in zip(outputs, cotangents, strict=True) if y.requires_grad]
    if not pairs or not points:
        return [None] * len(points)
    ys, given = zip(*pairs, strict=True)
    with grad_mode(True):
        seeds = [_recorded(c) for c in given]
        return gradients_of(ys, points, seeds, True, create_graph, adjoint)


def _recorded(cotangent: Tensor) -> Tensor:
    """A result instead of a leaf, so that the cotangent's contribution is recorded too."""
    return call(OPERATIONS["clone"], (cotangent,)) if cotangent.requires_grad else cotangent


def pull_linear(outputs: Sequence[Tensor], points: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor | None]]:
    """(cotangents that are points themselves, their pullbacks): a linear function, to be pulled back again.

    The derivative of v -> v J is J, so two pullbacks push tangents forward.
    """
    seeds = [enter(full(0, y.shape, y), False) for y in outputs]
    return seeds, pull(outputs, seeds, points, True, adjoint=True)


def jacobian_of(
    output: Tensor, points: Sequence[Tensor], create_graph: bool, vectorize: bool = False, chunk_size: int | None = None
) -> list[Tensor | None]:
    """For each point the derivatives (*output.shape, *point.shape), or None; one program computes all rows.

    With `vectorize`, one pullback is recorded and batched over all rows, or over `chunk_size` rows at a time; if it reads a
    value, rows are pulled back one by one.
    """
    size = output.numel() if output.requires_grad else 0
    basis = from_data(np.eye(size), output.dtype, device=array_of(output).device).reshape(size, *output.shape)
    rows = _rows_in_chunks(output, basis, points, create_graph, chunk_size or size) if vectorize and size else None
    if rows is None:
        each = [pull([output], [basis[row]], points, create_graph) for row in range(size)]
        rows = [None if column[0] is None else call(OPERATIONS["stack"], (column,)) for column in zip(*each, strict=True)]
    return [
        None if row is None else row.reshape(*output.shape, *point.shape)
        for row, point in zip(rows or [None] * len(points), points, strict=True)
    ]


def _rows_in_chunks(
    output: Tensor, basis: Tensor, points: Sequence[Tensor], create_graph: bool, chunk_size: int
) -> list[Tensor | None] | None:
    chunks = []
    for part in basis.split(chunk_size):
        with deferring():
            rows = _rows_at_once(output, part, points, create_graph)
        if rows is None:
            return None
        chunks.append(rows)
    if len(chunks) == 1:
        return chunks[0]
    return [None if column[0] is None else call(OPERATIONS["cat"], (column,)) for column in zip(*chunks, strict=True)]


def _rows_at_once(output: Tensor, basis: Tensor, points: Sequence[Tensor], create_graph: bool) -> list[Tensor | None] | None:
    examples = call(OPERATIONS["clone"], (basis,))
    example = call(OPERATIONS["clone"], (basis[0],))
    row = pull([output], [example], points, create_graph)
    with suppress(NotBatchedError):  # falls back to row by row
        rows = batched([g for g in row if g is not None], [(example, examples)], create_graph)
        if rows is not None:
            given = iter(rows)
            return [None if g is None else next(given) for g in row]
    return None


def columns_of(
    outputs: Sequence[Tensor], points: Sequence[Tensor], create_graph: bool, vectorize: bool = False
) -> list[list[Tensor | None]]:
    """The blocks [output][point] of the Jacobian, from those of the transposed linear function v -> v J."""
    seeds, slopes = pull_linear(outputs, points)
    blocks = [[None] * len(seeds) if slope is None else jacobian_of(slope, seeds, create_graph, vectorize) for slope in slopes]
    return [
        [None if b is None else b.permute(*range(x.ndim, b.ndim), *range(x.ndim)) for b, x in zip(row, points, strict=True)]
        for row in zip(*blocks, strict=True)
    ]


def or_zeros(found: Gradients, like: Sequence[Tensor], lead: Shape = ()) -> list[Tensor]:
    """Derivatives of shape (*lead, *x.shape) for the x in `like`, zeros where there are none."""
    return [full(0, (*lead, *x.shape), x) if d is None else d for d, x in zip(found, like, strict=True)]


def depends_on_others(outputs: Sequence[Tensor], points: Sequence[Tensor]) -> bool:
    """Whether the outputs depend on something else than the points that requires a gradient."""
    if any([y.requires_grad and y.is_leaf for y in outputs]):
        return True
    own = {(array.trace, array.index) for array in map(array_of, points)}
    found = derivation(map(array_of, outputs), own)
    return any([not reached.isdisjoint(trace.variables) for trace, reached in found.items()])


def batched(
    results: Sequence[Tensor], examples: Sequence[tuple[Tensor, Tensor]], grad: bool = True, draws_differ: bool = False
) -> list[Tensor] | None:
    """The results for many examples, along a new first axis, from a recording of one example.

    `examples` has pairs (one example, all of them). None if the open trace does not have the recording, because a value was
    read. With `grad` off, results are not differentiable. For `draws_differ` see `batch`.
    """
    with LOCK:
        if not results:
            return []
        arrays = [array_of(x) for x in (*results, *[x for pair in examples for x in pair])]
        positions = [array.index for array in arrays]
        ends, pairs = tuple(positions[: len(results)]), tuple(positions[len(results) :])
        extent = examples[0][1].shape[0]
        key = ("batch", extent, pairs, ends, grad, draws_differ)

        def build(graph: Graph, key: Key) -> Any:
            given = {one: graph.value(many) for one, many in zip(pairs[::2], pairs[1::2], strict=True)}
            return batch(graph, given, ends, extent, draws_differ)

        def record(trace: Trace) -> list[Array] | None:
            if any([array.trace is not trace for array in arrays]):
                return None
            return [trace.handle(position) for position in trace.record(key, build, grad=grad).result]

        handles = recorded(arrays[-1].device, record)
        return None if handles is None else [tensor_of(array, array.node.differentiable) for array in handles]
