"""What NVIDIA's driver measures of GPUs: utilization, power, temperature, processes. It wants the package nvidia-ml-py."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from genesis.cuda.gpus import GpuLike, gpu_of
from genesis.runtime.deferred import import_whole

__all__ = ["clock_rate", "device_memory_used", "list_gpu_processes", "memory_usage", "power_draw", "temperature", "utilization"]


def _measured(device: GpuLike, what: Callable[[Any, Any], Any]) -> Any:
    """The result of `what(library, GPU's handle)`. Raises ModuleNotFoundError without the package."""
    try:
        library = import_whole("pynvml")
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError("nvidia-ml-py does not seem to be installed or it can't be imported.") from problem
    library.nvmlInit()
    return what(library, _handle(library, gpu_of(device).index or 0))


def _handle(library: Any, number: int) -> Any:
    """The driver's handle of a GPU: the driver counts all GPUs, CUDA those in CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    name = visible.split(",")[number].strip() if visible else str(number)
    return library.nvmlDeviceGetHandleByIndex(int(name)) if name.isdecimal() else library.nvmlDeviceGetHandleByUUID(name)


def utilization(device: GpuLike = None) -> int:
    """The percentage of the last second in which a kernel ran."""
    return int(_measured(device, lambda library, handle: library.nvmlDeviceGetUtilizationRates(handle).gpu))


def memory_usage(device: GpuLike = None) -> int:
    """The percentage of the last second in which memory was read or written."""
    return int(_measured(device, lambda library, handle: library.nvmlDeviceGetUtilizationRates(handle).memory))


def device_memory_used(device: GpuLike = None) -> int:
    """Bytes that all processes use."""
    return int(_measured(device, lambda library, handle: library.nvmlDeviceGetMemoryInfo(handle).used))


def temperature(device: GpuLike = None) -> int:
    """Degrees Celsius."""
    return int(_measured(device, lambda library, handle: library.nvmlDeviceGetTemperature(handle, 0)))


def power_draw(device: GpuLike = None) -> int:
    """Milliwatts."""
    return int(_measured(device, lambda library, handle: library.nvmlDeviceGetPowerUsage(handle)))


def clock_rate(device: GpuLike = None) -> int:
    """Megahertz of the multiprocessors."""
    return int(_measured(device, lambda library, handle: library.nvmlDeviceGetClockInfo(handle, 1)))


def list_gpu_processes(device: GpuLike = None) -> str:
    """The processes that use a GPU, and their memory, as text."""
    try:
        found = _measured(device, lambda library, handle: library.nvmlDeviceGetComputeRunningProcesses(handle))
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    lines = [f"process {each.pid:>10d} uses {each.usedGpuMemory / (1 << 20):>12.3f} MB GPU memory" for each in found]
    return "\n".join([f"GPU:{gpu_of(device).index or 0}", *(lines or ["no processes are running"])])
