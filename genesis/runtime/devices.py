"""Devices: the location of a tensor's memory. A program may name several logical CPU devices; CUDA devices are GPUs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from genesis.ir.errors import ArgumentError, FormError

_GPUS = ("cuda", "mps", "xpu")  # the kinds of GPUs that programs name
_LAST = 63  # the number of the last logical device of the CPU


class Device:
    """A device for tensors, by name. There is one object for each. As a context it is this thread's default device.

    "cpu" is "cpu:0", beside "cpu:1", .. "cpu:63". "cuda" is one of "cuda:0", "cuda:1", ..: the one set by `cuda.set_device`,
    at first "cuda:0". Tensors on "meta" have shapes and no values.

    The CPU's devices share its memory and cores, but behave like separate devices: an operation takes tensors of one device,
    and `Tensor.to` copies.

    Args:
        device: a name, or a device.
        index: the number, if the name has none.

    A missing GPU can be named too; using it raises ValueError.

    Raises ValueError for an unknown name, TypeError for other arguments.

    >>> genesis.device("cpu"), genesis.device("cpu", 1)
    (device(type='cpu'), device(type='cpu', index=1))
    >>> with genesis.device("cpu:1"):
    ...     genesis.zeros(2).device
    device(type='cpu', index=1)
    """

    __slots__ = ("index", "memory", "name", "reason", "type")

    type: str
    index: int | None
    name: str
    memory: Any  # a `runtime.memory.DeviceMemory`: where buffers on it come from
    reason: str | None  # why it is not here; None for a device that is

    def __new__(cls, device: str | Device, index: int | None = None) -> Device:
        name = str(device) if isinstance(device, Device) else device
        if not isinstance(name, str):
            raise TypeError(f"device: wants a name such as 'cpu' or 'cpu:1', got {type(device).__name__} {device!r}")
        if index is not None:
            if ":" in name:
                raise ValueError(f"device: {name!r} has a number already; index is {index!r}")
            name = f"{name}:{index}"
        found = _DEVICES.get(_numbered(name)) or _gpu(name)
        if found is not CPU and found.reason is None:
            seen_devices.add(found)
        return found

    def __repr__(self) -> str:
        return f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            name = _numbered(other)
            return name == self.name or _DEVICES.get(name) is self
        return self.name == other.name if isinstance(other, Device) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __enter__(self) -> Device:
        _opened.devices.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        _opened.devices.pop()

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (str(self),)


def _made(kind: str, index: int | None, reason: str | None = None) -> Device:
    made = object.__new__(Device)
    made.type, made.index, made.name, made.reason = kind, index, kind if index is None else f"{kind}:{index}", reason
    return made


class _NoMemory:
    """The memory of the device "meta", whose tensors have only shapes and dtypes: it is empty, and writes do nothing."""

    is_host = False

    def lend(self, owner: object, nbytes: int) -> int:
        return 0

    def read(self, address: int, values: Any) -> None:
        raise NotImplementedError("a tensor on the device 'meta' has no values; want one on 'cpu' or 'cuda', as by to_empty()")

    def write(self, address: int, values: Any) -> None:
        """Nothing."""

    def copy(self, address: int, source: int, nbytes: int) -> None:
        """Nothing."""

    def await_under_way(self) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        """Nothing."""


class GpuDriver(NamedTuple):
    """The interface to GPUs: their number, the reason if there is none, and the memory of each."""

    gpu_count: Callable[[], int]
    reason_for_none: Callable[[], str]
    memory_of: Callable[[int], Any]


def register_gpus(driver: GpuDriver) -> None:
    """Set the driver of the devices named "cuda"."""
    _drivers[:] = [driver]


_drivers: list[GpuDriver] = []
seen_devices: set[Device] = set()  # the devices other than the CPU that somebody has asked for
CPU = _made("cpu", None)
CPUS = CPU, *[_made("cpu", index) for index in range(1, _LAST + 1)]
META = _made("meta", None)
META.memory = _NoMemory()
_DEVICES = {"cpu": CPU, "meta": META, "meta:0": META} | {f"cpu:{index}": device for index, device in enumerate(CPUS)}


def _numbered(name: str) -> str:
    return f"cuda:{_opened.gpu}" if name == "cuda" else name


def _gpu(name: str) -> Device:
    """The device of a GPU name that is new, whether the GPU exists or not. Raises ValueError for other names."""
    kind, _, number = name.partition(":")
    if kind not in _GPUS or name not in (kind, f"{kind}:{number}") or not (number or "0").isdecimal():
        raise ArgumentError(f"device: {name!r} is not available. Expected one of cpu, {', '.join(_GPUS)}, meta device type at "
                            f"start of device string; CPUs are 'cpu', which is 'cpu:0', to 'cpu:{_LAST}'")
    if kind != "cuda":
        return _made(kind, int(number or 0), "genesis computes on the CPU and on NVIDIA's GPUs")
    [cuda] = _drivers
    index, count = int(number or _opened.gpu), cuda.gpu_count()
    if index >= count:
        return _made("cuda", index, f"the last one here is 'cuda:{count - 1}'" if count else cuda.reason_for_none())
    device = _made("cuda", index)
    device.memory = cuda.memory_of(index)
    return _DEVICES.setdefault(f"cuda:{index}", device)


class _Opened(threading.local):
    """The devices whose contexts this thread is in, and the number of the GPU that "cuda" means."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.gpu = 0


DeviceLike = str | Device | None  # an argument `device=`; None is the default device
_default = [CPU]
_opened = _Opened()


def set_default_device(device: DeviceLike) -> None:
    """Let new tensors be on `device` where their call names none; None is the CPU.

    >>> genesis.set_default_device("cpu:1")
    >>> genesis.zeros(2)
    tensor([0., 0.], device='cpu:1')
    >>> genesis.set_default_device(None)
    """
    _default[0] = CPU if device is None else Device(device)


def get_default_device() -> Device:
    """The device of new tensors whose call names none: that of this thread's innermost context, otherwise the default.

    >>> genesis.get_default_device()
    device(type='cpu')
    """
    return _opened.devices[-1] if _opened.devices else _default[0]


def get_current_gpu() -> int:
    """The number of the GPU that "cuda" means in this thread."""
    return _opened.gpu


def set_current_gpu(index: int) -> None:
    """Set the GPU that "cuda" means in this thread, by number."""
    _opened.gpu = index


def device_of(device: DeviceLike = None) -> Device:
    """The device that an argument `device=` names; the default for None. Raises ValueError for a missing GPU."""
    if device is None:
        device = get_default_device()
    if device is CPU:
        return CPU
    found = Device(device)
    if found.reason is not None:
        raise FormError(f"device: {str(device)!r} is not available: {found.reason}")
    return found


NOT_REPLAYABLE = ("set_default_device", "set_current_gpu", "register_gpus")
