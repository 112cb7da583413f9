"""Running batch on what was recorded: the computation of one example, in the open trace, becomes that of many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.ir.graph import Graph
from genesis.ops.batch import batch
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tracing.state import current_trace
from genesis.tracing.trace import LOCK

__all__ = ["batched"]


def batched(
    results: Sequence[Tensor], examples: Sequence[tuple[Tensor, Tensor]], grad: bool = True
) -> list[Tensor] | None:
    """The results for many examples at once, along a new first axis, where they were recorded for one.

    `examples` has pairs (one example, all of them). None if the open trace does not hold the recording, for some value was
    looked at. With `grad` off, results are not differentiable.
    """
    with LOCK:
        if not results:
            return []
        arrays = [array_of(x) for x in (*results, *[x for pair in examples for x in pair])]
        trace = current_trace(arrays[-1].device)
        if any([array.trace is not trace for array in arrays]):
            return None
        places = [array.index for array in arrays]
        ends, pairs = tuple(places[: len(results)]), tuple(places[len(results) :])
        extent = examples[0][1].shape[0]
        key = ("batch", extent, pairs, ends, grad)

        def build(graph: Graph) -> Any:
            given = {one: graph.value(many) for one, many in zip(pairs[::2], pairs[1::2], strict=True)}
            return batch(graph, given, ends, extent)

        handles = [trace.handle(position) for position in trace.record(key, build, grad=grad).result]
        return [tensor_of(array, array.node.differentiable) for array in handles]
