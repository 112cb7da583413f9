"""Statistics of GPU memory: allocated and reserved bytes."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from genesis.cuda.gpus import GpuLike, gpu_of, memory_of
from genesis.ir.errors import ArgumentError
from genesis.runtime.cuda import gpu_count, opened
from genesis.runtime.installation import readable


def _statistics(device: GpuLike) -> dict[str, int]:
    """A GPU's memory counters; zeros without a GPU."""
    return memory_of(device).statistics() if gpu_count() else defaultdict(int)


def memory_allocated(device: GpuLike = None) -> int:
    """Bytes used by tensors and programs on a GPU."""
    return _statistics(device)["held"]


def max_memory_allocated(device: GpuLike = None) -> int:
    """The peak of `memory_allocated` since the start or `reset_peak_memory_stats`."""
    return _statistics(device)["peak"]


def memory_reserved(device: GpuLike = None) -> int:
    """Bytes allocated from a GPU: those in use, and those cached."""
    return _statistics(device)["reserved"]


def max_memory_reserved(device: GpuLike = None) -> int:
    """The peak of `memory_reserved` since the start or `reset_peak_memory_stats`."""
    return _statistics(device)["peak_reserved"]


def mem_get_info(device: GpuLike = None) -> tuple[int, int]:
    """(free bytes on a GPU, all its bytes), including other processes."""
    return memory_of(device).gpu.free_and_total()


def memory_stats(device: GpuLike = None) -> dict[str, int]:
    """A GPU's memory counters, under PyTorch's names; none without a GPU.

    Those are `allocated_bytes.all` and `reserved_bytes.all`, each with `.current` and `.peak`; `allocation.all.current` and
    `segment.all.current`, how many blocks are held and segments taken; `num_alloc_retries`, how often memory kept for reuse
    had to be given back for a segment, and `num_ooms`, how often that was not enough.
    """
    if not gpu_count():
        return OrderedDict()
    found = _statistics(device)
    return {
        "allocated_bytes.all.current": found["held"], "allocated_bytes.all.peak": found["peak"],
        "reserved_bytes.all.current": found["reserved"], "reserved_bytes.all.peak": found["peak_reserved"],
        "allocation.all.current": found["blocks"], "segment.all.current": found["segments"],
        "num_alloc_retries": found["retries"], "num_ooms": found["shortages"],
    }


def memory_stats_as_nested_dict(device: GpuLike = None) -> dict[str, Any]:
    """`memory_stats` as a tree: `tree["allocated_bytes"]["all"]["peak"]`.

    >>> genesis.cuda.memory_stats_as_nested_dict().keys() <= {
    ...     "allocated_bytes", "reserved_bytes", "allocation", "segment", "num_alloc_retries", "num_ooms"}
    True
    """
    tree: dict[str, Any] = {}
    for path, number in memory_stats(device).items():
        *branches, leaf = path.split(".")
        branch = tree
        for name in branches:
            branch = branch.setdefault(name, {})
        branch[leaf] = number
    return tree


def memory_summary(device: GpuLike = None, abbreviated: bool = False) -> str:
    """A GPU's memory as a few lines of text; `abbreviated` has no effect."""
    found, (free, total) = _statistics(device), mem_get_info(device)
    held, peak, reserved, most = (readable(found[name]) for name in ("held", "peak", "reserved", "peak_reserved"))
    return "\n".join([
        f"{gpu_of(device)}: {readable(free)} of {readable(total)} free",
        f"held by tensors and programs: {held} in {found['blocks']} blocks, at most {peak}",
        f"taken from the GPU: {reserved} in {found['segments']} segments, at most {most}",
        f"given back for want of memory: {found['retries']} times, in vain {found['shortages']} times",
    ])


def reset_peak_memory_stats(device: GpuLike = None) -> None:
    """Restart the peaks from now."""
    if gpu_count():
        memory_of(device).reset_peaks()


def reset_accumulated_memory_stats(device: GpuLike = None) -> None:
    """Restart the counts of shortages from now."""
    if gpu_count():
        memory_of(device).reset_accumulated()


def set_per_process_memory_fraction(fraction: float, device: GpuLike = None) -> None:
    """Take at most this part of a GPU's memory from now on; what wants more raises OutOfMemoryError.

    Raises ValueError unless it is from 0 to 1.
    """
    if not 0 <= fraction <= 1:
        raise ArgumentError(f"set_per_process_memory_fraction: {fraction}; want 0 to 1")
    memory_of(device).limit_to(fraction * mem_get_info(device)[1])


def get_per_process_memory_fraction(device: GpuLike = None) -> float:
    """The part of a GPU's memory that this process may take."""
    return memory_of(device).limit() / mem_get_info(device)[1]


def empty_cache() -> None:
    """Return unused cached memory to the GPUs."""
    for memory in opened():
        memory.trim()
