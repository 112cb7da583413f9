"""The state of a thread: an open trace per device, and the modes for recorded calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from io import IOBase
from typing import Self, TypeVar

from genesis.ir import dtypes
from genesis.ir.dtypes import DType
from genesis.runtime.devices import CPU, META, Device
from genesis.runtime.memory import Buffer
from genesis.tracing.thread import begun, thread_state
from genesis.tracing.trace import BUSY, LOCK, Trace, critical

T = TypeVar("T")


class thread_mode(IOBase):
    """A context in which an attribute of this thread's state has another value.

    An interrupt may come as a function in Python begins, and would skip an `__exit__` in Python. IOBase's is in C, and calls
    `close`, which is in C too.

    >>> with thread_mode("undivided", True):
    ...     thread_state.undivided
    True
    """

    __slots__ = ("close", "name", "value")
    closed = True  # nothing is left to do when the context is collected

    def __init__(self, name: str, value: object) -> None:
        self.name, self.value = name, value
        self.close: Callable[[], None] = partial(setattr, thread_state, name, getattr(thread_state, name))

    def __enter__(self) -> Self:
        thread_state.__dict__[self.name] = self.value  # no call, after which an interrupt could come
        return self


def grad_mode(enabled: bool | None) -> thread_mode:
    """A context in which this thread records gradients, or does not; inference mode stays unless they are recorded."""
    return thread_mode("grad_enabled", None if thread_state.grad_enabled is None and not enabled else enabled)


def current_trace(device: Device = CPU) -> Trace:
    """This thread's open trace for `device`.

    A signal handler or finalizer that interrupts a BUSY trace or a running program gets a separate trace, whose calls are
    flushed at once.
    """
    trace: Trace | None = thread_state.trace
    if trace is not None and not trace.closed and trace.device is device:
        return trace
    with LOCK:
        trace = open_trace(device)
    return current_trace(device) if trace.closed else trace  # by a signal handler right now


def open_trace(device: Device = CPU) -> Trace:
    """`current_trace`, for a caller that holds LOCK."""
    state = thread_state.__dict__  # one look-up: each attribute of a thread-local costs as much
    trace: Trace | None = state["traces"].get(device.name)
    if critical.running or (trace is not None and trace.closed is BUSY):
        trace = Trace(device, state["eager"], math.inf)
        trace.is_interrupting = True
        return trace
    if trace is None or trace.closed:
        if device is META and state["recorder"] is not None:
            state["recorder"].refuse("tensors have no values")
        trace = state["traces"][device.name] = Trace(device, state["eager"] or device is META, state["weight"])
        begun.add(trace.reference)
    if device is not CPU:
        state["multi_device"] = True
    if trace.closed:  # by a signal handler
        return open_trace(device)
    state["trace"] = None if state["multi_device"] else trace
    return trace


def leave(trace: Trace) -> None:
    """After the flush of `trace`: the next call in its thread, usually this one, begins another. The caller holds LOCK."""
    state, name = thread_state.__dict__, trace.device.name
    if state["traces"].get(name) is trace:
        del state["traces"][name]
        state["trace"] = None
    if state["left"]:
        state["left"] = tuple([other for other in state["left"] if other is not trace])
    begun.discard(trace.reference)


def recorded(device: Device, record: Callable[[Trace], T]) -> T:
    """`record(trace)`, with the open trace of `device`, which is BUSY meanwhile, so that positions in it stay valid."""
    trace = current_trace(device)  # no handler comes between this and the next line
    trace.closed = BUSY
    try:
        return record(trace)
    finally:
        if trace.closed is BUSY:
            trace.closed = False


def set_default_dtype(dtype: DType) -> None:
    """Set the floating type that Python floats take: float32 (at first), float64, float16 or bfloat16.

    Raises TypeError for another `dtype`.
    """
    dtypes.set_default_dtype(dtype)
    with LOCK:
        for trace in _unflushed_anywhere():
            trace.closed = True  # the paths of other traces lead to other nodes


def unflushed() -> list[Trace]:
    """This thread's traces that have not been flushed, except BUSY ones: one for each device, and those that interrupts left.
    """
    state = thread_state.__dict__
    found: Iterable[Trace] = [*state["traces"].values()]
    if state["left"]:
        found = dict.fromkeys((*state["left"], *found))
    return [trace for trace in found if not trace.done and trace.closed is not BUSY]


def readers_of(buffer: Buffer) -> list[Trace]:
    """The traces, of any thread, that will still read from `buffer`."""
    if not begun:
        return []
    with LOCK:
        return [trace for trace in _unflushed_anywhere()
                if any([array.memory.buffer is buffer for array in trace.inputs])]  # type: ignore[union-attr]


def _unflushed_anywhere() -> list[Trace]:
    """The traces of all threads that have not been flushed; the caller holds LOCK."""
    return [trace for reference in [*begun] if (trace := reference()) is not None]
