"""Hooks that inform `genesis.compile`, while it records a call, of events that a trace does not show.

A hook does nothing in a thread that records no call. On hot paths (dispatch, `write_all`, `hold_gradient`, `item`), callers
check `thread_state.recorder is None` first, because a hook costs a Python frame.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from genesis.runtime.profile_hook import unprofiled
from genesis.tracing.state import thread_state

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


def _hook(name: str, otherwise: int | None = None) -> Callable[..., Any]:
    """A function that calls the recorder's method `name`. Without a recorder it returns its argument number `otherwise`."""
    def hook(*args: Any, **kwargs: Any) -> Any:
        recorder = thread_state.recorder
        if recorder is not None:
            return getattr(recorder, name)(*args, **kwargs)
        return None if otherwise is None else args[otherwise]

    return hook


refuse = _hook("refuse")  # (reason, passes=False): this call cannot be replayed; `passes`: later calls may not have this reason
value_looked_at = _hook("value_looked_at")  # (): Python reads a value, and its further actions may depend on it
values_read = _hook("values_read")  # (array): Python reads all of its values at once, and keeps no reference to its memory
same_value = _hook("same_value")  # (made, array): `made` is the computed value of `array` without its derivation
item_read = _hook("item_read")  # (tensor): the number that `item()` returns while a call is recorded
made_from_python = _hook("made_from_python")  # (array): it was made from Python data
python_data = _hook("python_data", 0)  # (data): the data for a new tensor, as plain numbers
storage_written = _hook("storage_written")  # (root): a tensor that is not a view is about to be overwritten
touched_gradient = _hook("touched_gradient")  # (tensor, reads): `.grad` is read, or replaced without being read
# (start): the seed and the start of reserved random numbers, as numbers that replays replace; None if not recording
numbers_drawn = _hook("numbers_drawn")
depends_on = _hook("depends_on")  # (thing): what is recorded depends on the attributes of a library's object
optimizer_used = _hook("optimizer_used")  # (optimizer): it is about to check which of its parameters have gradients
# (optimizer, group, parameters, settings): the settings of an update; those that may change are numbers that replays replace
optimizer_updates = _hook("optimizer_updates", 3)
