"""Several points of a thread at a time: what is read for all of them is on its way before any of them is computed.

A store may write what a later load reads, for all that the compiler knows, so that a loop that does one point after the other
waits for each of its loads. Memory is busy only while every thread has some sixteen bytes on their way; one load of as many
would do, but numba-cuda takes no pointer to be better aligned than its elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from genesis.codegen.cuda.registers import loaded, memory_type
from genesis.lower.kernel import REDUCTIONS, Kernel

if TYPE_CHECKING:
    from genesis.codegen.cuda.emit import Emitter

__all__ = ["ahead", "points_at_a_time"]

BYTES, POINTS = 16, 4


def points_at_a_time(kernel: Kernel) -> int:
    """How many points along the lane axis a thread has at a time."""
    nbytes = sum(kernel.instructions[n].dtype.itemsize for n in _loads(kernel))
    plain = not any(reduced for _, reduced in kernel.axes) and not any(i.name in REDUCTIONS for i in kernel.instructions)
    return max(1, min(POINTS, BYTES // nbytes)) if plain and nbytes else 1


def _loads(kernel: Kernel) -> list[int]:
    """The loads that differ from point to point."""
    return [n for n, i in enumerate(kernel.instructions) if i.name == "load" and kernel.lane in i.varies]


@contextmanager
def ahead(emitter: Emitter) -> Iterator[None]:
    """The loop over the lane axis of a kernel that has several points at a time."""
    text, kernel, values = emitter.text, emitter.kernel, emitter.values
    lane = kernel.lane
    assert lane is not None
    i, extent, loads = emitter.letter(lane), emitter.extent(lane), _loads(kernel)
    points = points_at_a_time(kernel)
    for n in loads:
        emitter.arrays[f"read{n}"] = f"cuda.local.array({points}, {memory_type(kernel.instructions[n].dtype.name)})"
    text.line(f"first = cuda.blockIdx.x * cuda.blockDim.x * {points} + cuda.threadIdx.x")
    with text.block(f"while first < {extent}:"):
        with text.block(f"for part in range({points}):"), emitter.bound([lane]):
            text.line(f"{i} = min(first + part * cuda.blockDim.x, {extent} - 1)")
            for n in loads:
                text.line(f"read{n}[part] = {values.element(kernel.instructions[n].access)}")
        with text.block(f"for part in range({points}):"), emitter.bound([lane]):
            text.line(f"{i} = first + part * cuda.blockDim.x")
            with text.block(f"if {i} < {extent}:"), values.scope():
                for n in loads:
                    values.define(n, loaded(f"read{n}[part]", kernel.instructions[n].dtype.name))
                yield
        text.line(f"first += cuda.gridDim.x * cuda.blockDim.x * {points}")
