"""`genesis.compile`: a function with the entries that its calls have left, and the choice among them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from genesis.autograd.observers import observers
from genesis.capture.arguments import Arguments
from genesis.capture.entry import Entry
from genesis.capture.outcome import Outcome
from genesis.capture.recorder import Recorder
from genesis.capture.records import Refusal
from genesis.capture.signature import leaves_check
from genesis.capture.watch import Watch
from genesis.execute import flush_all
from genesis.ir.dtypes import get_default_dtype
from genesis.nn.module import Module
from genesis.number import Number
from genesis.overriding import OVERRIDES
from genesis.pytree import map_tree
from genesis.runtime.team import get_num_threads
from genesis.tensor import Tensor
from genesis.thread import thread_state
from genesis.trace import LOCK

__all__ = ["Compiled", "SplitError", "compile"]

ENTRY_LIMIT = 64  # for each function: the longest unused is dropped
CHECKED = 2  # replays of each entry that `check=True` compares
PATIENCE = 4  # recordings in a row that came to nothing before they become rare


class SplitError(RuntimeError):
    """A function compiled with `fullgraph=True` looks at a value, or does what cannot be replayed."""


class Compiled:
    """A function that is traced once for each signature and replayed from then on. See `genesis.compile`.

    Attributes:
        function: the function itself.
        entries: what has been recorded, last used first.
        refusals: why the last recorded call cannot be replayed; empty if it can.
        missed: the label of the guard, of the nearest entry, that failed when a call was last recorded anew; None at first.
    """

    def __init__(self, function: Callable[..., Any], check: bool, dynamic: bool | None, fullgraph: bool) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.entries: list[Entry] = []
        self.refusals: list[Refusal] = []
        self.missed: str | None = None
        self.check = check
        self.fullgraph = fullgraph
        self._dynamic = dynamic
        self._wasted = 0  # calls since something was replayed

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = thread_state
        if state.recorder is not None or state.several or state.eager or OVERRIDES or observers():
            return self.function(*args, **kwargs)
        with LOCK:
            entries, modes, nearest = self.entries, _modes(), -2
            for place, entry in enumerate(entries):
                if entry.modes != modes:
                    continue
                found = entry.check(args, kwargs)
                if found.__class__ is int:
                    if found > nearest:
                        nearest, self.missed = found, entry.labels[found] if found >= 0 else "an attribute or item that is gone"
                    continue
                if place:
                    entries.insert(0, entries.pop(place))
                replayed, result = entry.replay(*found)
                if replayed:
                    self._wasted = 0
                    return result
                self.missed = "the settings of an optimizer"
        return self._missed(args, kwargs)

    def _missed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the call, unless recordings have come to nothing again and again: then every so often."""
        self._wasted += 1
        if self._wasted > PATIENCE and self._wasted & (self._wasted - 1):
            return self.function(*args, **kwargs)
        dynamic = bool(self.entries) if self._dynamic is None else self._dynamic
        result, entry, refusals = record(self.function, args, kwargs, dynamic, self.fullgraph)
        self.refusals = refusals
        if entry is not None:
            with LOCK:
                self.entries.insert(0, entry)
                del self.entries[ENTRY_LIMIT:]
        return result


def _modes() -> tuple[Any, ...]:
    """What holds for a call as a whole."""
    state = thread_state
    return state.grad_enabled, state.autocast, get_default_dtype(), get_num_threads()


def record(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: bool, fullgraph: bool = False
) -> tuple[Any, Entry | None, list[Refusal]]:
    """Call the function and note what happens: its result, and the entry, or why there is none."""
    modes = _modes()
    recorder = Recorder(fullgraph)
    with recorder:
        arguments = Arguments(recorder, args, kwargs, dynamic)
        for j, leaf in enumerate(arguments.leaves):
            if isinstance(leaf, Tensor):
                recorder.argument(leaf, j)
        recorder.guards.enter(function, getattr(function, "__name__", "the function"))
        with Watch(recorder.guards, recorder.refuse, recorder.scheduled):
            result = function(*arguments.args, **arguments.kwargs)
        flush_all()
        if _modes() != modes:
            recorder.refuse("it leaves another mode (of gradients, autocast, dtype or threads) behind")
        _compare(recorder, arguments, args, kwargs)
        outcome = Outcome(recorder, result, arguments.containers)
        entry = Entry(recorder, arguments, outcome, modes)
    if recorder.refusals:
        if fullgraph:
            raise SplitError(f"compile: with fullgraph=True, {recorder.refusals[0]}")
        entry = None  # type: ignore[assignment]
    return _plain(result) if dynamic else result, entry, recorder.refusals


def _compare(recorder: Recorder, arguments: Arguments, args: Any, kwargs: Any) -> None:
    """Refuse if the call changed what it reads: its next would read something else."""
    guards = recorder.guards
    changed = guards.function("def check():", guards.lines, ["return None"])()
    if changed is not None:
        recorder.refuse(f"it changes {guards.labels[changed] if changed >= 0 else 'what it reads'} itself")
    leaves = leaves_check(recorder, arguments)(args, kwargs)
    if isinstance(leaves, int) or any(a is not b for a, b in zip(leaves, arguments.leaves, strict=True)):
        recorder.refuse("it changes the containers of its arguments")
    for tensor, state in recorder.states.items():
        state_now = type(state).of(tensor) if tensor._array.memory is not None else None
        if state_now is None or state_now.base is not state.base or (
            (state_now.requires_grad, state_now.hooks, state_now.extras) != (state.requires_grad, state.hooks, state.extras)
        ):
            recorder.refuse("it changes requires_grad, the hooks or the storage of a tensor that was there before")
        elif state.base is None and tensor._array is not state.array and id(tensor._array) not in recorder.outputs:
            recorder.refuse("it puts the memory of one tensor into another")


def _plain(result: Any) -> Any:
    return map_tree(lambda leaf: leaf.value if type(leaf) is Number else leaf, result)


def compile(
    fn: Any = None, *, check: bool = False, dynamic: bool | None = None, fullgraph: bool = False
) -> Any:
    """`fn`, traced once for each signature of its arguments and replayed from then on: one native call, no Python of `fn`.

    Args:
        fn: a function of tensors, numbers, strings, None and lists, tuples, dicts and dataclasses of them, such as a whole
            training step; or a module. Left out, a decorator.
        check: compare the first replays with uncompiled execution.
        dynamic: whether numbers among the arguments that only feed arithmetic are data: yes, no, or (None) after the first
            call.
        fullgraph: raise SplitError where a value is looked at, or where a call cannot be replayed.

    What a call reads - parameters, settings, globals, attributes - is read anew by each; what does more than compute (it
    looks at a value, prints, counts) runs as it is. `genesis.debug.explain` says which.

    >>> import genesis
    >>> @genesis.compile
    ... def area(width, height):
    ...     return (width * height).sum()
    >>> [area(genesis.ones(2), genesis.ones(2)).item() for _ in range(3)]
    [2.0, 2.0, 2.0]
    """
    if fn is None:
        return functools.partial(compile, check=check, dynamic=dynamic, fullgraph=fullgraph)
    if isinstance(fn, Module):
        kind = type(fn)
        call = Compiled(kind.__call__, check, dynamic, fullgraph)
        twin: Any = object.__new__(type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__}))
        twin.__dict__ = fn.__dict__  # one module under two names
        return twin
    if not callable(fn):
        raise TypeError(f"compile: wants a function or a module, got {type(fn).__name__} {fn!r:.40}")
    return Compiled(fn, check, dynamic, fullgraph)
