"""The driver's calls, and a GPU's context, which is pushed and popped around each call, as other libraries use it too."""

from __future__ import annotations

import os
from typing import Any

from cuda.bindings import driver

from genesis.ir.annotations import AnyFunction
from genesis.runtime.cuda.gpu import UnavailableError

_processes: list[int] = []  # processes that started the driver: a forked child cannot use it


def status_text(status: object) -> str:
    """The driver's text for a status."""
    _, name = driver.cuGetErrorName(status)
    _, text = driver.cuGetErrorString(status)
    return f"{(name or b'?').decode()}: {(text or b'').decode()}"


def driver_results(function: AnyFunction, *arguments: object) -> Any:
    """The results of a function of the driver. Raises RuntimeError with the driver's text."""
    status, *results = function(*arguments)
    if status:
        raise RuntimeError(f"CUDA: {function.__name__} failed: {status_text(status)}")
    return results[0] if len(results) == 1 else results


def gpu_count() -> int:
    """Start the driver in this process; the number of GPUs it shows. Raises UnavailableError without a driver."""
    _processes.append(os.getpid())
    try:
        status, *_ = driver.cuInit(0)
    except Exception as problem:
        raise UnavailableError(f"there is no NVIDIA driver (libcuda): {problem}") from problem
    if status == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        return 0
    if status:
        raise UnavailableError(f"the NVIDIA driver does not start: {status_text(status)}")
    return driver_results(driver.cuDeviceGetCount)


class Context:
    """The primary context of a GPU, which PyTorch and CUDA's own runtime use too. As a context of Python's it is the thread's
    current one; behind that is whichever was before, another GPU's perhaps, which `torch.cuda.set_device` chose.

    Raises RuntimeError in the child of a process that used CUDA.
    """

    def __init__(self, device: object) -> None:
        _mind_forks()
        self._handle = driver_results(driver.cuDevicePrimaryCtxRetain, device)

    def __enter__(self) -> None:
        _mind_forks()
        driver_results(driver.cuCtxPushCurrent, self._handle)

    def __exit__(self, *problem: object) -> None:
        driver.cuCtxPopCurrent()

    def quietly(self, function: AnyFunction, *arguments: object) -> None:
        """Call a function of the driver in this context. At the end of the process, when the driver is gone, do nothing."""
        # Interpreter shutdown destroys objects in any order, the driver's state among them.
        (gone,) = driver.cuCtxPushCurrent(self._handle)
        if not gone:
            function(*arguments)
            driver.cuCtxPopCurrent()


def _mind_forks() -> None:
    if os.getpid() not in _processes:
        raise RuntimeError("CUDA was in use when this process was forked: have processes started by 'spawn'")


class Owned:
    """A handle of the driver's, destroyed with this object; the driver lets work that uses it finish first."""

    def __init__(self, context: Context, handle: int, destroy: AnyFunction) -> None:
        self.handle = handle
        self._context = context
        self._destroy = destroy

    def __del__(self) -> None:
        if os.getpid() in _processes:
            self._context.quietly(self._destroy, self.handle)
