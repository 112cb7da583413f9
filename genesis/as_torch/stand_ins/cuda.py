"""Names of `torch.cuda` that are PyTorch's alone: older spellings, errors, and functions that genesis compiles instead."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import genesis
from genesis import cuda
from genesis.as_torch.stand_ins.settings import no, nothing
from genesis.distributed import is_nccl_available
from genesis.ir.annotations import AnyFunction

has_half, has_magma = True, False
is_current_stream_capturing = no  # programs are replayed without a stream's capture
StreamContext = cuda.stream


class cudaStatus:
    """Results of the runtime's calls."""

    SUCCESS, ERROR_NOT_READY = 0, 34


class CudaError(RuntimeError):
    """A call of the runtime failed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error ({code})")


class DeferredCudaCallError(Exception):
    """A call that waited for the first use of a GPU failed."""


def check_error(res: int) -> None:
    """Raise CudaError unless a call succeeded."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


def get_allocator_backend() -> str:
    """The allocator: genesis' own, as PyTorch calls its own."""
    cuda.init()
    return "native"


def get_gencode_flags() -> str:
    """The compiler's flags for the architectures of the GPUs."""
    archs = [name.split("_") for name in cuda.get_arch_list()]
    return " ".join(f"-gencode compute=compute_{arch},code={kind}_{arch}" for kind, arch in archs)


def ipc_collect() -> None:
    """Nothing to do: processes share no memory of GPUs. Raises without a GPU."""
    cuda.init()


def make_graphed_callables(
    callables: Any, sample_args: Sequence[Any], num_warmup_iters: int = 3, allow_unused_input: bool = False, pool: object = None
) -> Any:
    """The functions or modules, compiled: `genesis.compile` replays their programs. Nothing is called before its first use."""
    return tuple(map(genesis.compile, callables)) if isinstance(callables, tuple) else genesis.compile(callables)


# ---- memory of the host: none is pinned but two buffers for copies ----
host_memory_stats, host_memory_stats_as_nested_dict = OrderedDict, dict
reset_accumulated_host_memory_stats = reset_peak_host_memory_stats = nothing


# ---- older spellings ----
def _renamed(old: str, new: str) -> AnyFunction:
    """The function `new`, whose name was `old`."""

    def renamed(device: Any = None) -> Any:
        warnings.warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=2)
        return getattr(cuda, new)(device)

    return renamed


memory_cached, max_memory_cached = (_renamed(f"{name}_cached", f"{name}_reserved") for name in ("memory", "max_memory"))
reset_max_memory_allocated, reset_max_memory_cached = (
    _renamed(f"reset_max_memory_{name}", "reset_peak_memory_stats") for name in ("allocated", "cached"))


# ---- modules: torch.cuda.nvtx, torch.cuda.profiler and torch.cuda.nccl ----
ranges = SimpleNamespace(mark=nothing, range_start=nothing, range_end=nothing)
profiling = SimpleNamespace(start=nothing, stop=nothing)
communication = SimpleNamespace(is_available=lambda tensors: is_nccl_available() and all(tensor.is_cuda for tensor in tensors))


NOT_REPLAYABLE = ("make_graphed_callables",)
