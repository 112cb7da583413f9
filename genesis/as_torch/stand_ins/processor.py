"""`torch.cpu`: the processor as a device. It has one stream, and whatever was called is done when it is asked for."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from genesis.as_torch.stand_ins.settings import nothing
from genesis.ir.replayable import replayable_module


class Stream:
    """The stream of the processor."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Any) -> None:
        """Does nothing: there is one stream."""

    def record_event(self) -> None:
        """Does nothing: an event would have passed."""

    def wait_event(self, event: Any) -> None:
        """Does nothing: events have passed."""


class Event:
    """A point in the processor's work, which has passed."""

    def query(self) -> bool:
        """Whether it has passed."""
        return True

    def record(self, stream: Any = None) -> None:
        """Does nothing: there is one stream."""

    def synchronize(self) -> None:
        """Does nothing: it has passed."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing: it has passed."""


class StreamContext(nullcontext[None]):
    """A context with a stream as the current one: there is one."""

    def __init__(self, stream: Stream | None) -> None:
        super().__init__()
        self.stream = stream


_stream = Stream()
stream, set_device, synchronize = StreamContext, nothing, nothing


def is_available() -> bool:
    """Yes."""
    return True


is_initialized = is_available


def device_count() -> int:
    """One."""
    return 1


def current_device() -> str:
    """Its name."""
    return "cpu"


def current_stream(device: Any = None) -> Stream:
    """The stream."""
    return _stream


replayable_module(__name__)
