"""CUDA's GPUs, opened at their first use; or, with NUMBA_ENABLE_CUDASIM=1, one that the host simulates."""

from __future__ import annotations

import functools
import os

from genesis.runtime.cuda.gpu import Gpu, UnavailableError
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.deferred import import_whole
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.installation import install_command

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")  # numba reads it when it is imported
_lock = fork_safe_lock()
_opened: dict[int, GpuMemory] = {}


@functools.cache
def _gpus() -> tuple[type[Gpu] | None, int, str]:
    """The class of GPUs here, their number, and the reason if there is none."""
    if SIMULATED:
        return import_whole("genesis.runtime.cuda.simulated").SimulatedGpu, 1, ""
    try:
        real = import_whole("genesis.runtime.cuda.real").RealGpu
    except ImportError as missing:
        return None, 0, f"{missing.name} is not installed: {install_command('cuda13')}, or cuda12"
    try:
        count: int = real.count()
    except UnavailableError as problem:
        return None, 0, str(problem)
    return real, count, "" if count else "the NVIDIA driver shows no GPU"


def gpu_count() -> int:
    """The number of GPUs; 0 without a driver, or without the packages that call it."""
    return _gpus()[1]


def reason_for_none() -> str:
    """Why there is no GPU; empty if there is one."""
    return _gpus()[2]


def memory_of(index: int) -> GpuMemory:
    """The memory of a GPU, which is opened at its first use."""
    with _lock:
        found = _opened.get(index)
        if found is None:
            kind, _, _ = _gpus()
            assert kind is not None
            found = _opened[index] = GpuMemory(kind(index))
        return found


def opened() -> list[GpuMemory]:
    """The memories of the GPUs that are in use."""
    return list(_opened.values())
