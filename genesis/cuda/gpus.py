"""GPUs: number, properties, the current one; and, with the package nvidia-ml-py, what NVIDIA's driver measures of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from genesis.runtime import devices
from genesis.runtime.cuda import gpu_count, opened
from genesis.runtime.cuda.gpu import Gpu, Properties
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.deferred import import_whole
from genesis.runtime.devices import Device, DeviceLike, get_current_gpu, set_current_gpu

GpuLike = DeviceLike | int  # a GPU's number, its name or a device; None is the current one


def is_available() -> bool:
    """Whether there is a usable GPU with its libraries; `genesis.doctor()` reports what is missing.

    >>> genesis.cuda.is_available() == (genesis.cuda.device_count() > 0)
    True
    """
    return gpu_count() > 0


def device_count() -> int:
    """The number of GPUs."""
    return gpu_count()


def is_initialized() -> bool:
    """Whether a GPU is in use."""
    return bool(opened())


def init() -> None:
    """Open the current GPU; its first use does so anyway. Raises ValueError if there is none."""
    gpu_of(None)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes with bfloat16: natively since compute capability 8.0, otherwise by emulation."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def is_tf32_supported() -> bool:
    """Whether the current GPU multiplies float32 as TF32: since compute capability 8.0."""
    return is_available() and get_device_capability() >= (8, 0)


def get_arch_list() -> list[str]:
    """The architectures that kernels are compiled for, those of the GPUs: "sm_90".

    >>> len(genesis.cuda.get_arch_list()) <= genesis.cuda.device_count()
    True
    """
    return sorted({f"sm_{major}{minor}" for major, minor in map(get_device_capability, range(device_count()))})


# ---- one of them ----
def current_device() -> int:
    """The number of this thread's current GPU."""
    return gpu_of(None).index or 0


def set_device(device: GpuLike) -> None:
    """Set this thread's current GPU, a number or a device; a negative number has no effect.

    Raises ValueError for a GPU that does not exist.
    """
    if not (isinstance(device, int) and device < 0):
        set_current_gpu(gpu_of(device).index or 0)


class device:
    """A context with another current GPU, a number or a device; None or a negative number has no effect.

    Raises ValueError for a GPU that does not exist.
    """

    def __init__(self, device: GpuLike) -> None:
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else gpu_of(device).index or 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(get_current_gpu())
        if self.idx >= 0:
            set_current_gpu(self.idx)

    def __exit__(self, *problem: object) -> None:
        set_current_gpu(self._before.pop())


class device_of(device):
    """A context with the GPU of a tensor or a storage as the current one; no effect for one on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.device.type == "cuda" else None)


def get_device_name(device: GpuLike = None) -> str:
    """The name of a GPU, by default the current one."""
    return _gpu(device).name


def get_device_capability(device: GpuLike = None) -> tuple[int, int]:
    """A GPU's compute capability: (major, minor)."""
    return _gpu(device).capability


def get_device_properties(device: GpuLike = None) -> Properties:
    """A GPU's name, capability, memory, multiprocessors and limits, as attributes."""
    return _gpu(device).properties()


def gpu_of(device: GpuLike) -> Device:
    """The GPU that an argument names: a number, a name or a device; the current one for None."""
    gpu = devices.device_of(f"cuda:{device}" if isinstance(device, int) else "cuda" if device is None else device)
    if gpu.type != "cuda":
        raise ValueError(f"cuda: {gpu} is no CUDA device")
    return gpu


def memory_of(device: GpuLike) -> GpuMemory:
    """The memory of the GPU that an argument names."""
    return gpu_of(device).memory


def _gpu(device: GpuLike) -> Gpu:
    return memory_of(device).gpu


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
