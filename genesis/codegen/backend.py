"""Backends assemble programs from schedules, one for each type of device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from genesis.codegen.cpu import program
from genesis.codegen.cpu.target import target
from genesis.codegen.segment import Segment
from genesis.lower.target import Target
from genesis.runtime.deferred import import_whole
from genesis.runtime.devices import Device


class Backend(NamedTuple):
    """`target(threads, planned_threads, device)` is the target of lowering.

    `assemble(nodes, schedule, slot_format, arena_slot, output_slot, scalar_slot, threads, device)` returns the segments and the
    bytes of the arena. Input k is slot k, output k slot `output_slot + k`, scalar k slot `scalar_slot + k`.
    """

    target: Callable[[int, int, Device], Target]
    assemble: Callable[..., tuple[list[Segment], int]]


_CPU = Backend(target, program.assemble)


def backend_of(device: Device) -> Backend:
    """The backend of `device`; that of CUDA is imported at its first use."""
    # A process that uses no GPU does not even look for numba-cuda and the driver's bindings.
    if device.type == "cpu":
        return _CPU
    cuda = import_whole("genesis.codegen.cuda.program")
    return Backend(cuda.target, cuda.assemble)
