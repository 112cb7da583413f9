"""Hooks that inform `genesis.compile`, while it records a call, of events that a trace does not show.

A hook does nothing in a thread that records no call. On hot paths (dispatch, `write_all`, `hold_gradient`, `item`), callers
check `thread_state.recorder is None` first, because a hook costs a Python frame.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from genesis.runtime.profile_hook import unprofiled
from genesis.tracing.state import thread_state
from genesis.tracing.trace import Array

P = ParamSpec("P")
T = TypeVar("T")


def unwatched(function: Callable[P, T]) -> Callable[P, T]:
    """Mark a function that makes thousands of calls, none of the user's code: it runs without the watch."""
    # Python runs every instruction more slowly where calls are watched, and calls the watch four times a call: of the 75 ms of
    # tracing a GPT's step, the watch took 42.
    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return function(*args, **kwargs) if thread_state.recorder is None else unprofiled(function, *args, **kwargs)

    return run


def is_recording() -> bool:
    """Whether this thread records a call."""
    return thread_state.recorder is not None


def reads_forbidden() -> bool:
    """Whether values must not be read: a call is recorded for replays, or traced for a transform."""
    return thread_state.recorder is not None or thread_state.deferred


def refuse(reason: str, passes: bool = False) -> None:
    """This call cannot be replayed, for a reason; `passes`: the reason may not recur in later calls."""
    if thread_state.recorder is not None:
        thread_state.recorder.refuse(reason, passes)


def value_looked_at() -> None:
    """Python reads a value: its further actions may depend on it."""
    if thread_state.recorder is not None:
        thread_state.recorder.value_looked_at()


def values_read(array: Array) -> None:
    """Python reads all values of `array` at once, and keeps no reference to its memory."""
    if thread_state.recorder is not None:
        thread_state.recorder.values_read(array)


def same_value(made: Array, array: Array) -> None:
    """`made` is the computed value of `array` without its derivation."""
    if thread_state.recorder is not None:
        thread_state.recorder.same_value(made, array)


def item_read(tensor: Any) -> Any:
    """The number that `item()` returns while a call is recorded."""
    return thread_state.recorder.item_read(tensor)


def made_from_python(array: Array) -> None:
    """`array` was made from Python data."""
    if thread_state.recorder is not None:
        thread_state.recorder.made_from_python(array)


def python_data(data: Any) -> Any:
    """The data for a new tensor, as plain numbers."""
    return data if thread_state.recorder is None else thread_state.recorder.python_data(data)


def storage_written(root: Any) -> None:
    """A tensor that is not a view is about to be overwritten."""
    if thread_state.recorder is not None:
        thread_state.recorder.storage_written(root)


def touched_gradient(tensor: Any, reads: bool) -> None:
    """`.grad` is read, or replaced without being read."""
    if thread_state.recorder is not None:
        thread_state.recorder.touched_gradient(tensor, reads)


def numbers_drawn(start: int, count: int) -> tuple[Any, Any] | None:
    """The seed and counter start of reserved random numbers, as numbers that replays replace; None if not recording."""
    return None if thread_state.recorder is None else thread_state.recorder.numbers_drawn(start, count)


def optimizer_used(optimizer: Any) -> None:
    """An optimizer is about to check which of its parameters have gradients."""
    if thread_state.recorder is not None:
        thread_state.recorder.optimizer_used(optimizer)


def optimizer_updates(
    optimizer: Any, group: Mapping[str, Any], parameters: Sequence[Any], settings: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The settings of an update; those that may change become numbers that replays replace."""
    recorder = thread_state.recorder
    return settings if recorder is None else recorder.optimizer_updates(optimizer, group, parameters, settings)
