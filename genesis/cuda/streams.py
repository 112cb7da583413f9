"""Synchronization of GPUs: streams, of which each has one, and events.

Calls are only recorded; these functions flush the GPU's pending work first.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from genesis.cuda.gpus import GpuLike, device as current, gpu_of, set_device
from genesis.execution.flush import flush
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.devices import Device
from genesis.tracing.state import unflushed


def synchronize(device: GpuLike = None) -> None:
    """Run this thread's pending work for a GPU, by default the current one, and wait until it is done."""
    _asked(gpu_of(device)).synchronize()


def _asked(device: Device) -> GpuMemory:
    """A GPU's memory, after flushing this thread's pending work for it."""
    for trace in unflushed():
        if trace.device is device:
            flush(trace)
    return device.memory


class Stream:
    """The stream of a GPU, by default the current one. There is only one: further instances are the same stream.

    Programs written for several streams run unchanged, one after another in program order. As a context it makes its GPU
    the current one.

    Args:
        device: a GPU: a number, a name or a device.
        priority: no effect: there is only one stream.

    Attributes:
        device: the GPU.
        cuda_stream: the handle, for other libraries.
    """

    def __init__(self, device: GpuLike = None, priority: int = 0) -> None:
        self.device = gpu_of(device)
        self.priority = priority
        self._current = current(self.device)

    @property
    def cuda_stream(self) -> int:
        return _asked(self.device).gpu.stream

    def __eq__(self, other: object) -> bool: return self.device is other.device if isinstance(other, Stream) else NotImplemented
    def __hash__(self) -> int: return hash(self.device)
    def __repr__(self) -> str: return f"<genesis.cuda.Stream of {self.device}>"

    def __enter__(self) -> Stream:
        self._current.__enter__()
        return self

    def __exit__(self, *problem: object) -> None:
        self._current.__exit__()

    def synchronize(self) -> None:
        """Run this thread's pending work for the GPU, and wait until it is done."""
        synchronize(self.device)

    def query(self) -> bool:
        """Whether the GPU's work is done, after starting this thread's pending work."""
        memory = _asked(self.device)
        return memory.gpu.has_passed(memory.mark())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, by default a new one, after all work so far; returns it."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make later work wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work wait for all work so far in another stream."""
        self.wait_event(stream.record_event())


def current_stream(device: GpuLike = None) -> Stream:
    """The stream of a GPU, by default the current one."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: Stream | None) -> None:
    """Make the GPU of `stream` the current one; its only stream is always current."""
    if stream is not None:
        set_device(stream.device)


def stream(stream: Stream | None) -> AbstractContextManager[Any]:
    """A context in which `stream` is the current one, and its GPU too; None changes nothing."""
    return nullcontext() if stream is None else stream


class Event:
    """A point in a GPU's work, for waiting and for measuring.

    Args:
        enable_timing: whether `elapsed_time` can be used.
        blocking: whether waiting sleeps instead of polling.
        interprocess, external: not supported; True raises NotImplementedError.

    Time on a GPU, as in PyTorch:

        start, end = genesis.cuda.Event(enable_timing=True), genesis.cuda.Event(enable_timing=True)
        start.record()
        y = model(x)
        end.record()  # starts y and other pending work
        end.synchronize()
        print(start.elapsed_time(end), "ms")
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if interprocess or external:
            raise NotImplementedError("Event: neither other processes nor graphs of others can wait for an event")
        self._timing = enable_timing
        self._blocking = blocking
        self._device: Device | None = None
        self._mark: Any = None

    @property
    def device(self) -> Device | None:
        """The GPU of the event; None if it was not recorded."""
        return self._device

    def record(self, stream: Stream | None = None) -> None:
        """Start this thread's pending work for a GPU, by default the current one, and record the event after it."""
        device = gpu_of(None) if stream is None else stream.device
        self._mark = _asked(device).mark(self._timing, self._blocking)
        self._device = device

    def synchronize(self) -> None:
        """Wait until the work before the event is done; returns at once if it was not recorded."""
        if self._device is not None:
            self._device.memory.wait(self._mark)

    def query(self) -> bool:
        """Whether the work before the event is done; True if it was not recorded."""
        return self._device is None or self._device.memory.gpu.has_passed(self._mark)

    def wait(self, stream: Stream | None = None) -> None:
        """Make later work in a stream wait for the event; on the same GPU it does anyway."""
        if self._device is not (gpu_of(None) if stream is None else stream.device):
            self.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another. Raises RuntimeError if one of them has no time yet."""
        events = self, end_event
        if not all(event._timing for event in events):
            raise RuntimeError("elapsed_time: both events must be created with enable_timing=True")
        if self._device is None or end_event._device is None:
            raise RuntimeError("elapsed_time: both events must be recorded first")
        if self._device is not end_event._device:
            raise RuntimeError(f"elapsed_time: the events are of two GPUs, {self._device} and {end_event._device}")
        if not all(event.query() for event in events):
            raise RuntimeError("elapsed_time: the work before the events is not done; synchronize() first")
        return self._device.memory.gpu.seconds_between(self._mark, end_event._mark) * 1e3
