"""Evaluates a graph with NumPy, node by node. This defines every operation and is the oracle of the compiler's tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from genesis.ir.dtypes import complex32
from genesis.ir.errors import ArgumentError
from genesis.ir.graph import Node
from genesis.ops.registry import PRIMITIVES


def widened_arrays(arrays: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Arrays as references take them: complex32, which NumPy lacks, becomes complex64."""
    return [a.astype(np.complex64) if a.dtype == complex32.numpy else a for a in arrays]


class RefusedError(Exception):
    """The node at `position` cannot be computed: an index out of range, a singular matrix."""

    def __init__(self, position: int, error: Exception) -> None:
        super().__init__(str(error))
        self.position = position
        self.error = error


def evaluate(
    nodes: Sequence[Node], outputs: Sequence[int], given: Mapping[int, np.ndarray], scalars: Sequence[float] = ()
) -> list[np.ndarray]:
    """The arrays at `outputs`; `given` are those of the inputs, by position, and the values of scalar slots."""
    arrays = evaluate_all(nodes, outputs, given, scalars)
    return [arrays[i] for i in outputs]


def evaluate_all(
    nodes: Sequence[Node], outputs: Iterable[int], given: Mapping[int, np.ndarray], scalars: Sequence[float] = ()
) -> dict[int, np.ndarray]:
    """As `evaluate`, but returns the arrays at every position that `outputs` depend on. Raises RefusedError."""
    needed, waiting = set[int](), [*outputs]
    while waiting:
        if (index := waiting.pop()) not in needed:
            needed.add(index)
            waiting += () if index in given else nodes[index].inputs
    arrays = dict(given)
    with np.errstate(all="ignore"):
        for index in sorted(needed - set(given)):
            node = nodes[index]
            if node.op == "scalar":
                # Converted afterwards, so that numbers out of an integer dtype's range wrap, as in kernels.
                arrays[index] = np.asarray(scalars[node.attrs["slot"]]).astype(node.dtype.numpy)
                continue
            rule = PRIMITIVES[node.op].reference
            assert rule is not None, node.op
            try:
                result = np.asarray(rule(node, *widened_arrays([arrays[i] for i in node.inputs])))
            except (ArgumentError, IndexError, ZeroDivisionError, np.linalg.LinAlgError) as error:
                raise RefusedError(index, error) from None
            arrays[index] = result.astype(node.dtype.numpy, copy=False)
    return arrays
