"""GPUs through NVIDIA's driver, by cuda.bindings."""

from __future__ import annotations

import functools
import os
import threading
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from operator import call
from typing import Any

import numpy as np
from cuda.bindings import driver

from genesis.runtime.cuda.cublas import WORKSPACE, Gemm, cublas_error, cublas_handle, cublas_is_here, gemm_call
from genesis.runtime.cuda.gpu import Gpu, Properties, UnavailableError
from genesis.runtime.cuda.parameters import raw_words
from genesis.runtime.uninterrupted import uninterrupted

__all__ = ["RealGpu"]

_OUT_OF_MEMORY = driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
_NOT_READY = driver.CUresult.CUDA_ERROR_NOT_READY
_ATTRIBUTE = driver.CUdevice_attribute
_current = threading.local()  # the GPU whose context this thread is in
_processes: list[int] = []  # in which the driver was started: the children of one have no way to it


def _forget() -> None:
    vars(_current).clear()


os.register_at_fork(after_in_child=_forget)


def _said(status: Any) -> str:
    _, name = driver.cuGetErrorName(status)
    _, text = driver.cuGetErrorString(status)
    return f"{(name or b'?').decode()}: {(text or b'').decode()}"


def _asked(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of the driver gives. Raises RuntimeError with the driver's words."""
    status, *results = function(*arguments)
    if status:
        raise RuntimeError(f"CUDA: {function.__name__} failed: {_said(status)}")
    return results[0] if len(results) == 1 else results


def _mind_forks() -> None:
    if os.getpid() not in _processes:
        raise RuntimeError("CUDA was in use when this process was forked: have processes started by 'spawn'")


class RealGpu(Gpu):
    """A GPU of NVIDIA's. It is opened in the context that other libraries of the process use too."""

    @staticmethod
    def count() -> int:
        """How many GPUs the driver shows. Raises UnavailableError if there is no driver."""
        _processes.append(os.getpid())
        try:
            status, *_ = driver.cuInit(0)
        except Exception as problem:
            raise UnavailableError(f"there is no NVIDIA driver (libcuda): {problem}") from problem
        if status == driver.CUresult.CUDA_ERROR_NO_DEVICE:
            return 0
        if status:
            raise UnavailableError(f"the NVIDIA driver does not start: {_said(status)}")
        found: int = _asked(driver.cuDeviceGetCount)
        return found

    def __init__(self, index: int) -> None:
        super().__init__(index)
        _mind_forks()
        device = _asked(driver.cuDeviceGet, index)
        self._is_alone = _asked(driver.cuDeviceGetCount) == 1
        self.name = _asked(driver.cuDeviceGetName, 256, device).split(b"\0")[0].decode()
        self._device = device
        major, minor, self.processors = self._attributes(
            "COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT")
        self.capability = major, minor
        self._context = _asked(driver.cuDevicePrimaryCtxRetain, device)
        self._enter()
        # What other libraries put into the default stream and what is here wait for each other.
        self._stream = _asked(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_DEFAULT.value)

    def _enter(self) -> None:
        """Be in this GPU's context, as every call below has to be. Other libraries go from one GPU's to another's as well."""
        if not self._is_alone or getattr(_current, "gpu", None) is not self:
            _mind_forks()
            _asked(driver.cuCtxSetCurrent, self._context)
            _current.gpu = self

    def _attributes(self, *names: str) -> list[int]:
        kinds = [getattr(_ATTRIBUTE, f"CU_DEVICE_ATTRIBUTE_{name}") for name in names]
        return [_asked(driver.cuDeviceGetAttribute, kind, self._device) for kind in kinds]

    def properties(self) -> Properties:
        return Properties(
            self.name, *self.capability, _asked(driver.cuDeviceTotalMem, self._device), self.processors,
            *self._attributes(
                "MAX_THREADS_PER_MULTIPROCESSOR", "MAX_REGISTERS_PER_MULTIPROCESSOR", "MAX_SHARED_MEMORY_PER_BLOCK",
                "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", "L2_CACHE_SIZE", "WARP_SIZE", "INTEGRATED"))

    # ---- memory ----

    def free_and_total(self) -> tuple[int, int]:
        self._enter()
        free, total = _asked(driver.cuMemGetInfo)
        return free, total

    def allocate(self, nbytes: int) -> int:
        self._enter()
        status, address = driver.cuMemAlloc(nbytes)
        if status == _OUT_OF_MEMORY:
            return 0
        if status:
            raise RuntimeError(f"CUDA: cuMemAlloc failed: {_said(status)}")
        return int(address)

    def release(self, address: int) -> None:
        self._enter()
        _asked(driver.cuMemFree, address)

    def owner_of(self, address: int) -> int:
        self._enter()
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        status, number = driver.cuPointerGetAttribute(kind, address)
        return self.index if status else int(number)

    def pinned(self, nbytes: int) -> np.ndarray:
        self._enter()
        address = _asked(driver.cuMemHostAlloc, nbytes, 0)
        return np.asarray(_Host(int(address), nbytes))

    def copy_in(self, address: int, values: np.ndarray) -> None:
        self._enter()
        _asked(driver.cuMemcpyHtoDAsync, address, values.ctypes.data, values.nbytes, self._stream)

    def copy_out(self, values: np.ndarray, address: int) -> None:
        self._enter()
        _asked(driver.cuMemcpyDtoHAsync, values.ctypes.data, address, values.nbytes, self._stream)

    def copy(self, address: int, source: int, nbytes: int) -> None:
        self._enter()
        _asked(driver.cuMemcpyDtoDAsync, address, source, nbytes, self._stream)

    def clear(self, address: int, nbytes: int) -> None:
        self._enter()
        _asked(driver.cuMemsetD8Async, address, 0, nbytes, self._stream)

    # ---- order ----

    def mark(self, timed: bool = False, sleeping: bool = False) -> Any:
        self._enter()
        event = _event(timed, sleeping)
        _asked(driver.cuEventRecord, event.handle, self._stream)
        return event

    def wait(self, mark: Any) -> None:
        self._enter()
        _asked(driver.cuEventSynchronize, mark.handle)

    def has_passed(self, mark: Any) -> bool:
        self._enter()
        (status,) = driver.cuEventQuery(mark.handle)
        if status not in (driver.CUresult.CUDA_SUCCESS, _NOT_READY):
            raise RuntimeError(f"CUDA: cuEventQuery failed: {_said(status)}")
        return bool(status != _NOT_READY)

    def seconds_between(self, first: Any, second: Any) -> float:
        self._enter()
        return float(_asked(driver.cuEventElapsedTime, first.handle, second.handle)) / 1000

    def synchronize(self) -> None:
        self._enter()
        _asked(driver.cuStreamSynchronize, self._stream)

    def wait_for(self, stream: int) -> None:
        self._enter()
        _asked(driver.cuStreamSynchronize, stream)

    @property
    def stream(self) -> int:
        return int(self._stream)

    # ---- kernels ----

    @functools.cached_property
    def has_blas(self) -> bool:  # type: ignore[override]
        return cublas_is_here()

    @functools.cached_property
    def _blas(self) -> int:
        """The handle of cuBLAS."""
        self._enter()
        return cublas_handle(self.stream, self.allocate(WORKSPACE))

    def load(self, image: Any, name: str) -> Any:
        self._enter()
        module = _asked(driver.cuModuleLoadData, image)
        return _asked(driver.cuModuleGetFunction, module, name.encode())

    def command(
        self, function: Any, blocks: Sequence[int], threads: Sequence[int], types: Sequence[str], arguments: Sequence[float]
    ) -> Callable[[], Any]:
        if isinstance(function, Gemm):
            return gemm_call(self._blas, function, *map(int, arguments))
        words = raw_words(types, arguments)
        first = words.buffer_info()[0]
        pointers = array("Q", [first + 8 * k for k in range(len(words))])
        keep = words, pointers
        return _Kept(driver.cuLaunchKernel, function, *_three(blocks), *_three(threads), 0, self._stream,
                     pointers.buffer_info()[0], 0, keep=keep)

    def submit(self, commands: Sequence[Callable[[], Any]], after: Callable[[], Any] = int) -> None:
        self._enter()
        try:
            *statuses, _ = map(call, [*commands, after])  # in one breath
        except cublas_error() as problem:
            raise RuntimeError(f"CUDA: cuBLAS failed: {problem}") from problem
        for status in statuses:
            if status is not None and status[0]:
                raise RuntimeError(f"CUDA: a launch failed: {_said(status[0])}")

    def timed(self, commands: Sequence[Callable[[], Any]]) -> tuple[list[Callable[[], Any]], Callable[[], list[float]]]:
        self._enter()
        events = [_event(timed=True) for _ in range(len(commands) + 1)]
        marks = [partial(driver.cuEventRecord, event.handle, self._stream) for event in events]
        between: list[Callable[[], Any]] = [marks[0]]
        for command, mark in zip(commands, marks[1:], strict=True):
            between += command, mark

        def seconds() -> list[float]:
            self.synchronize()
            return [self.seconds_between(a, b) for a, b in pairwise(events)]

        return between, seconds

    def captured(self, commands: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        instance = uninterrupted(self._instance, commands)  # else the stream might go on noting what is asked for
        return _Kept(driver.cuGraphLaunch, instance.handle, self._stream, keep=instance)

    def _instance(self, commands: Sequence[Callable[[], Any]]) -> _Owned:
        """The commands as a graph that can be launched."""
        self._enter()
        _asked(driver.cuStreamBeginCapture, self._stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        try:
            self.submit(commands)
        finally:
            status, handle = driver.cuStreamEndCapture(self._stream)
            graph = _Owned(handle, driver.cuGraphDestroy)
        if status:
            raise RuntimeError(f"CUDA: cuStreamEndCapture failed: {_said(status)}")
        return _Owned(_asked(driver.cuGraphInstantiate, graph.handle, 0), driver.cuGraphExecDestroy)


def _three(extents: Sequence[int]) -> tuple[int, ...]:
    return (*extents, 1, 1)[:3]


class _Kept(partial):
    """A call with what has to live as long as it may be made."""

    keep: Any

    def __new__(cls, function: Callable[..., Any], *arguments: Any, keep: Any) -> _Kept:
        made = super().__new__(cls, function, *arguments)
        made.keep = keep
        return made


class _Owned:
    """A handle of the driver's that is given back when this dies; work under way with it comes to its end."""

    def __init__(self, handle: Any, destroy: Callable[[Any], Any]) -> None:
        self.handle = handle
        self._destroy = destroy

    def __del__(self) -> None:
        self._destroy(self.handle)


def _event(timed: bool, sleeping: bool = False) -> _Owned:
    kinds = driver.CUevent_flags
    flags = (0 if timed else kinds.CU_EVENT_DISABLE_TIMING.value) | (kinds.CU_EVENT_BLOCKING_SYNC.value if sleeping else 0)
    return _Owned(_asked(driver.cuEventCreate, flags), driver.cuEventDestroy)


class _Host:
    """Bytes of the host, in NumPy's array interface."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
