"""`torch.accelerator`: the GPUs that genesis sees. Without one, most functions raise RuntimeError, as PyTorch's do."""

from __future__ import annotations

import functools
from typing import Any

from genesis import cuda
from genesis.as_torch.stand_ins.settings import nothing
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DTYPES
from genesis.runtime.devices import Device

is_available, device_count = cuda.is_available, cuda.device_count


def current_accelerator(check_available: bool = False) -> Device | None:
    """The GPU, as a device; None if there is none."""
    return Device("cuda") if cuda.is_available() else None


# ---- of a GPU ----
def _of_a_gpu(function: AnyFunction) -> AnyFunction:
    """The function, which wants a GPU."""

    @functools.wraps(function)
    def of_a_gpu(*arguments: Any) -> Any:
        if not cuda.is_available():
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return function(*arguments)

    return of_a_gpu


@_of_a_gpu
def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """The dtypes of tensors on a GPU."""
    return {"supported_dtypes": {*DTYPES.values()}}


class device_index(cuda.device):
    """A context with another current GPU, by its number; None changes nothing."""


empty_cache, empty_host_cache = _of_a_gpu(cuda.empty_cache), _of_a_gpu(nothing)  # buffers for copies are two, and stay
current_device_index, set_device_index = _of_a_gpu(cuda.current_device), _of_a_gpu(cuda.set_device)
current_stream, set_stream = _of_a_gpu(cuda.current_stream), _of_a_gpu(cuda.set_stream)
synchronize = _of_a_gpu(cuda.synchronize)
memory_allocated, max_memory_allocated = _of_a_gpu(cuda.memory_allocated), _of_a_gpu(cuda.max_memory_allocated)
memory_reserved, max_memory_reserved = _of_a_gpu(cuda.memory_reserved), _of_a_gpu(cuda.max_memory_reserved)
memory_stats, get_memory_info = _of_a_gpu(cuda.memory_stats), _of_a_gpu(cuda.mem_get_info)
reset_peak_memory_stats = _of_a_gpu(cuda.reset_peak_memory_stats)
reset_accumulated_memory_stats = _of_a_gpu(cuda.reset_accumulated_memory_stats)
current_device_idx, set_device_idx = current_device_index, set_device_index
