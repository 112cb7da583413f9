"""CUDA's GPUs: whether there are any, what they are, their memory, and waiting for them.

A tensor is put on one as in PyTorch: `genesis.zeros(2, device="cuda")`, `x.to("cuda:1")`, `x.cuda()`, `model.cuda()`.
"""

from __future__ import annotations

from typing import Any

from genesis.devices import Device
from genesis.execute import flush
from genesis.random import manual_seed
from genesis.runtime.cuda import gpu_count
from genesis.runtime.cuda.gpu import Gpu, OutOfMemoryError
from genesis.runtime.cuda.memory import GpuMemory
from genesis.thread import unflushed

__all__ = [
    "OutOfMemoryError", "current_device", "device_count", "empty_cache", "get_device_capability", "get_device_name",
    "is_available", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "synchronize",
]

manual_seed_all = manual_seed  # one stream of random numbers serves all devices


def is_available() -> bool:
    """Whether there is a GPU to compute on, with what it takes to talk to it; `genesis.doctor()` says what is missing.

    >>> import genesis
    >>> genesis.cuda.is_available() == (genesis.cuda.device_count() > 0)
    True
    """
    return gpu_count() > 0


def device_count() -> int:
    """How many GPUs there are."""
    return gpu_count()


def current_device() -> int:
    """The number of the GPU that "cuda" stands for."""
    return _device(None).index or 0


def get_device_name(device: Any = None) -> str:
    """What a GPU, by default the first, is called."""
    return _gpu(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """A GPU's compute capability: (major, minor)."""
    return _gpu(device).capability


def synchronize(device: Any = None) -> None:
    """Compute what this thread has recorded for a GPU, and wait until it is done."""
    place = _device(device)
    for trace in unflushed():
        if trace.device is place:
            flush(trace)
    _memory(place).synchronize()


# ---- memory ----


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors and programs hold on a GPU."""
    return _memory(device).statistics()["held"]


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that they held, since the start or `reset_peak_memory_stats`."""
    return _memory(device).statistics()["peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from a GPU: those that tensors hold, and those kept for the next ones."""
    return _memory(device).statistics()["reserved"]


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that were taken from a GPU, since the start or `reset_peak_memory_stats`."""
    return _memory(device).statistics()["peak_reserved"]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(bytes that are free on a GPU, all its bytes), other processes counted in."""
    return _gpu(device).free_and_total()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the most bytes there were; start again from now."""
    _memory(device).reset_peak()


def empty_cache() -> None:
    """Give memory that no tensor holds back to the GPUs."""
    for index in range(gpu_count()):
        _memory(index).trim()


def _device(device: Any) -> Device:
    """The GPU that an argument names: a number, a name or a device; the first for None."""
    place = Device("cuda", device) if isinstance(device, int) else Device("cuda" if device is None else device)
    if place.type != "cuda":
        raise ValueError(f"cuda: {place} is no CUDA device")
    return place


def _memory(device: Any) -> GpuMemory:
    memory: GpuMemory = _device(device).memory
    return memory


def _gpu(device: Any) -> Gpu:
    return _memory(device).gpu
