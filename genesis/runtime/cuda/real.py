"""GPUs through NVIDIA's driver, by cuda.bindings."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice, pairwise, takewhile, tee
from operator import call, contains
from typing import Any

import numpy as np
from cuda.bindings import driver

from genesis.ir.annotations import AnyFunction
from genesis.runtime.cuda.context import Context, Owned, driver_results, gpu_count, status_text
from genesis.runtime.cuda.cublas import WORKSPACE, Gemm, cublas_error, cublas_handle, cublas_is_here, gemm_call
from genesis.runtime.cuda.gpu import Command, Gpu, Image, LaunchError, Loaded, Mark, Properties
from genesis.runtime.cuda.program import raw_words
from genesis.runtime.uninterrupted import uninterrupted

_OUT_OF_MEMORY = driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
_NOT_READY = driver.CUresult.CUDA_ERROR_NOT_READY
_ATTRIBUTE = driver.CUdevice_attribute
_LOADS_WHEN_TOLD = 12040  # the version of the first driver that has cuFuncLoad
# The results of successful commands: a driver's status, None from a library, and 0 from what is called at the end.
_went_well = partial(contains, ((driver.CUresult.CUDA_SUCCESS,), None, 0))


class RealGpu(Gpu):
    """An NVIDIA GPU, opened in the primary context, which other libraries of the process use too."""

    count = staticmethod(gpu_count)

    def __init__(self, index: int) -> None:
        super().__init__(index)
        device = driver_results(driver.cuDeviceGet, index)
        self.name = driver_results(driver.cuDeviceGetName, 256, device).split(b"\0")[0].decode()
        self._device = device
        major, minor, self.processors = self._attributes(
            "COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT")
        self.capability = major, minor
        self._context = Context(device)
        with self._context:  # a blocking stream: it is ordered with other libraries' work in the default stream
            self._stream = driver_results(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_DEFAULT.value)
        self._loads_lazily = driver_results(driver.cuDriverGetVersion) >= _LOADS_WHEN_TOLD

    def _asked(self, function: AnyFunction, *arguments: object) -> Any:
        """The results of a function of the driver in this GPU's context."""
        with self._context:
            return driver_results(function, *arguments)

    def _event(self, timed: bool, sleeping: bool = False) -> Owned:
        """A new event. The context is the current one."""
        kinds = driver.CUevent_flags
        flags = (0 if timed else kinds.CU_EVENT_DISABLE_TIMING.value) | (kinds.CU_EVENT_BLOCKING_SYNC.value if sleeping else 0)
        return Owned(self._context, driver_results(driver.cuEventCreate, flags), driver.cuEventDestroy)

    def _attributes(self, *names: str) -> list[int]:
        kinds = [getattr(_ATTRIBUTE, f"CU_DEVICE_ATTRIBUTE_{name}") for name in names]
        return [driver_results(driver.cuDeviceGetAttribute, kind, self._device) for kind in kinds]

    def properties(self) -> Properties:
        return Properties(
            self.name, *self.capability, driver_results(driver.cuDeviceTotalMem, self._device), self.processors,
            *self._attributes(
                "MAX_THREADS_PER_MULTIPROCESSOR", "MAX_REGISTERS_PER_MULTIPROCESSOR", "MAX_SHARED_MEMORY_PER_BLOCK",
                "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR", "L2_CACHE_SIZE", "WARP_SIZE", "INTEGRATED"))

    # ---- memory ----
    def free_and_total(self) -> tuple[int, int]:
        with self._context:
            free, total = driver_results(driver.cuMemGetInfo)
        return free, total

    def allocate(self, nbytes: int) -> int:
        with self._context:
            status, address = driver.cuMemAlloc(nbytes)
        if status == _OUT_OF_MEMORY:
            return 0
        if status:
            raise RuntimeError(f"CUDA: cuMemAlloc failed: {status_text(status)}")
        return int(address)

    def release(self, address: int) -> None:
        self._asked(driver.cuMemFree, address)

    def owner_of(self, address: int) -> int:
        kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        with self._context:
            status, number = driver.cuPointerGetAttribute(kind, address)
        return self.index if status else int(number)

    def pinned(self, nbytes: int) -> np.ndarray:
        return np.asarray(_Host(int(self._asked(driver.cuMemHostAlloc, nbytes, 0)), nbytes))

    def copy_in(self, address: int, values: np.ndarray) -> None:
        self._asked(driver.cuMemcpyHtoDAsync, address, values.ctypes.data, values.nbytes, self._stream)

    def copy_out(self, values: np.ndarray, address: int) -> None:
        self._asked(driver.cuMemcpyDtoHAsync, values.ctypes.data, address, values.nbytes, self._stream)

    def copy(self, address: int, source: int, nbytes: int, communicates: bool = False) -> None:
        self._asked(driver.cuMemcpyDtoDAsync, address, source, nbytes, self._stream_of(communicates))

    def clear(self, address: int, nbytes: int) -> None:
        self._asked(driver.cuMemsetD8Async, address, 0, nbytes, self._stream)

    # ---- order ----
    def mark(self, timed: bool = False, sleeping: bool = False, communicates: bool = False) -> Mark:
        stream = self._stream_of(communicates)
        with self._context:
            event = self._event(timed, sleeping)
            driver_results(driver.cuEventRecord, event.handle, stream)
        return event

    def hold(self, mark: Mark, communicates: bool = False) -> None:
        # The driver keeps what it needs of the event: it may be destroyed at once.
        self._asked(driver.cuStreamWaitEvent, self._stream_of(communicates), mark.handle, 0)

    def wait(self, mark: Mark) -> None:
        self._asked(driver.cuEventSynchronize, mark.handle)

    def has_passed(self, mark: Mark) -> bool:
        with self._context:
            (status,) = driver.cuEventQuery(mark.handle)
        if status not in (driver.CUresult.CUDA_SUCCESS, _NOT_READY):
            raise RuntimeError(f"CUDA: cuEventQuery failed: {status_text(status)}")
        return bool(status != _NOT_READY)

    def seconds_between(self, first: Mark, second: Mark) -> float:
        return float(self._asked(driver.cuEventElapsedTime, first.handle, second.handle)) / 1000

    def synchronize(self) -> None:
        self._asked(driver.cuStreamSynchronize, self._stream)

    def wait_for(self, stream: int) -> None:
        self._asked(driver.cuStreamSynchronize, stream)

    @property
    def stream(self) -> int:
        return int(self._stream)

    @functools.cached_property
    def _communication_stream(self) -> Any:
        return self._asked(driver.cuStreamCreate, driver.CUstream_flags.CU_STREAM_DEFAULT.value)

    @property
    def communication_stream(self) -> int:
        return int(self._communication_stream)

    def _stream_of(self, communicates: bool) -> Any:
        return self._communication_stream if communicates else self._stream

    # ---- kernels ----
    @functools.cached_property
    def has_blas(self) -> bool:  # type: ignore[override]
        return cublas_is_here()

    @functools.cached_property
    def _blas(self) -> int:
        with self._context:
            # Without memory for a workspace its address is 0, and cuBLAS takes its own.
            return cublas_handle(self.stream, self.allocate(WORKSPACE))

    def load(self, image: Image, name: str) -> Loaded:
        with self._context:
            module = driver_results(driver.cuModuleLoadData, image)
            function = driver_results(driver.cuModuleGetFunction, module, name.encode())
            if self._loads_lazily:
                driver_results(driver.cuFuncLoad, function)  # a failure comes here, not at its launch, after others have run
        return function

    def command(
        self, function: Loaded, blocks: Sequence[int], threads: Sequence[int], types: Sequence[str], arguments: Sequence[float]
    ) -> Command:
        if isinstance(function, Gemm):
            a, b, c = map(int, arguments)
            return gemm_call(self._blas, function, a, b, c)
        # Parameters are packed once per binding; a launch passes their addresses alone.
        words = raw_words(types, arguments)
        first = words.buffer_info()[0]
        pointers = array("Q", [first + 8 * k for k in range(len(words))])
        keep = words, pointers
        return _KeepingCall(driver.cuLaunchKernel, function, *_three(blocks), *_three(threads), 0, self._stream,
                     pointers.buffer_info()[0], 0, keep=keep)

    def submit(self, commands: Sequence[Command], after: Command = int) -> None:
        # One pass of C code over all commands: between two of them no Python runs, so no interrupt can leave part of a program
        # submitted without anybody knowing.
        answers, again = tee(map(call, [*commands, after]))
        done: list[object] = []
        with self._context:
            try:
                done.extend(takewhile(_went_well, answers))
            except cublas_error() as problem:
                raise LaunchError(f"CUDA: cuBLAS failed: {problem}", len(done), in_part=True) from problem
        if len(done) <= len(commands):
            [(status,)] = islice(again, len(done), len(done) + 1)
            raise LaunchError(f"CUDA: a launch failed: {status_text(status)}", len(done))

    def call(self, function: AnyFunction, *arguments: Any) -> Any:
        with self._context:
            return function(*arguments)

    def timed(self, commands: Sequence[Command]) -> tuple[list[Command], Callable[[], list[float]]]:
        with self._context:
            events = [self._event(timed=True) for _ in range(len(commands) + 1)]
        marks = [partial(driver.cuEventRecord, event.handle, self._stream) for event in events]
        between: list[Command] = [marks[0]]
        for command, mark in zip(commands, marks[1:], strict=True):
            between += command, mark

        def seconds() -> list[float]:
            self.synchronize()
            return [self.seconds_between(a, b) for a, b in pairwise(events)]

        return between, seconds

    def captured(self, commands: Sequence[Command]) -> Command:
        instance = uninterrupted(self._instance, commands)  # an interrupt would leave the stream capturing
        return _KeepingCall(driver.cuGraphLaunch, instance.handle, self._stream, keep=instance)

    def _instance(self, commands: Sequence[Command]) -> Owned:
        with self._context:
            mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            driver_results(driver.cuStreamBeginCapture, self._stream, mode)
            try:
                self.submit(commands)
            finally:
                status, handle = driver.cuStreamEndCapture(self._stream)
                graph = Owned(self._context, handle, driver.cuGraphDestroy)
            if status:
                raise RuntimeError(f"CUDA: cuStreamEndCapture failed: {status_text(status)}")
            return Owned(self._context, driver_results(driver.cuGraphInstantiate, graph.handle, 0), driver.cuGraphExecDestroy)


def _three(extents: Sequence[int]) -> tuple[int, ...]:
    return (*extents, 1, 1)[:3]


class _KeepingCall(partial):
    """A call that keeps alive what it needs."""

    keep: object

    def __new__(cls, function: AnyFunction, *arguments: object, keep: object) -> _KeepingCall:
        made = super().__new__(cls, function, *arguments)
        made.keep = keep
        return made


class _Host:
    """Bytes of the host, in NumPy's array interface."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__array_interface__ = {"data": (address, False), "shape": (nbytes,), "typestr": "|u1", "version": 3}
