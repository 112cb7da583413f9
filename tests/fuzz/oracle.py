"""Every flush against NumPy: what a trace computed is compared with the references of its own nodes."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from genesis import lower
from genesis.execution import flush as execute
from genesis.ir.graph import format_nodes
from genesis.ops.reference import evaluate
from genesis.tracing.state import current_trace

LOOSE = {"float64": 1e-9, "float32": 2e-4, "float16": 4e-2, "bfloat16": 2e-1}  # of the largest element, after long chains


@contextmanager
def checked_flushes() -> Iterator[list[str]]:
    """Inside, each flush compares its outputs with the oracle, and the verifier runs between passes.

    Yields what differs, in words, a string a value; leaving asserts that there is none.
    """
    differences: list[str] = []

    flushed: list = []

    def planned(trace, held):
        """Before a run: what it starts from, for inputs may be overwritten."""
        given = {index: read(array) for index, array in trace.input_at.items()}
        flushed.append((list(trace.nodes), given, list(trace.scalars), {array.index: array for array in held}))
        try:
            return plan(trace, held)
        except Exception as error:
            error.add_note(listing(trace.nodes, flushed[-1][-1]))
            raise

    def finished(trace, run):
        finish(trace, run)
        while flushed:
            nodes, given, scalars, held = flushed.pop()
            for (index, array), want in zip(held.items(), evaluate(nodes, list(held), given, scalars), strict=True):
                difference = unlike(read(array), want, max(LOOSE.get(node.dtype.name, 0) for node in nodes))
                if difference:
                    differences.append(f"%{index} {difference}\n{listing(nodes, held)}")

    plan, execute.find_plan = execute.find_plan, planned
    finish, execute._finish = execute._finish, finished
    verify, lower.VERIFY[0] = lower.VERIFY[0], True
    current_trace().closed = True  # what an example before this one left behind is not its concern
    try:
        yield differences
    finally:
        lower.VERIFY[0] = verify
        execute.find_plan = plan
        execute._finish = finish
    assert not differences, differences[0]


def read(array) -> np.ndarray:
    """What an array's memory holds."""
    return np.array(array.memory.numpy(array.node.dtype))


def unlike(have: np.ndarray, want: np.ndarray, loose: float) -> str:
    """How two arrays differ, in words; nothing if they are equal or, for floats, nearer than `loose` of the largest."""
    if have.shape != want.shape or have.dtype != want.dtype:
        return f"is {have.dtype}{have.shape}, want {want.dtype}{want.shape}"
    if have.dtype.name not in LOOSE:
        return "" if np.array_equal(have, want) else f"is {have!r}, want {want!r}"
    a, b = have.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    largest = max(1.0, np.max(np.abs(b), where=finite, initial=0.0))
    with np.errstate(invalid="ignore"):
        near = np.where(finite, np.abs(a - b) <= loose * largest, (a == b) | (np.isnan(a) & np.isnan(b)))
    return "" if near.all() else f"is {have!r}, want {want!r}"


def listing(nodes, outputs) -> str:
    return format_nodes(nodes, note=lambda i: "held" if i in outputs else "")
