"""`torch.cpu`: the processor as a device. It has one stream, and whatever was called is done when it is asked for."""

from __future__ import annotations

from contextlib import nullcontext

from genesis.as_torch.stand_ins.settings import always, nothing, yes


class Stream:
    """The stream of the processor."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    wait_stream = record_event = wait_event = staticmethod(nothing)  # there is one stream, and events have passed


class Event:
    """A point in the processor's work, which has passed."""

    query = staticmethod(yes)
    record = synchronize = wait = staticmethod(nothing)


class StreamContext(nullcontext[None]):
    """A context with a stream as the current one: there is one."""

    def __init__(self, stream: Stream | None) -> None:
        super().__init__()
        self.stream = stream


_stream = Stream()
stream, set_device, synchronize = StreamContext, nothing, nothing
is_available = is_initialized = yes
device_count, current_device, current_stream = always(1), always("cpu"), always(_stream)
