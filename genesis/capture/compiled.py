"""`genesis.compile`: a function with the entries of its recorded calls, and the choice among them."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, TypeVar, overload

from genesis.capture.record.reads import Missed, OtherValueError
from genesis.capture.record.records import Positional, Refusal, SplitError
from genesis.capture.record.traced_call import modes, record
from genesis.capture.replay.comparison import compared
from genesis.capture.replay.critical_section import has_come_between, run_critical
from genesis.capture.replay.entry import OTHER_MODES, Entry
from genesis.execution.flush import NothingDoneError, flush_all, flush_collectives
from genesis.execution.realize import realize
from genesis.ir.annotations import AnyFunction, Attributes
from genesis.nn.module import Module
from genesis.runtime.devices import seen_devices
from genesis.runtime.groups import GROUPS
from genesis.runtime.instructions import MISSED
from genesis.runtime.logs import tell
from genesis.runtime.timeline import timeline
from genesis.tensor.call_modes import REPLACING
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import Tensor
from genesis.tracing.state import thread_state
from genesis.tracing.trace import LOCK

F = TypeVar("F", bound=AnyFunction)
ENTRY_LIMIT = 64  # per function: the least recently used is dropped
CHECKED = 2  # replays of each entry that `check=True` compares
PATIENCE = 4  # recordings beyond the replays of all before recordings become rare
STRAYS = 16  # mismatched values, beyond replays, after which values that Python reads are no longer guards
MANY = 1000  # guards of a recording; after the first two, each so many weigh as DEAR recordings, which as many replays pay
DEAR = 50
RARER = 3  # log2 of the factor by which the wait between recordings then grows: a recording takes as long as 100 calls


class Compiled:
    """A function that is traced once for each signature and replayed from then on. See `genesis.compile`.

    Attributes:
        function: the function itself.
        entries: the recorded calls, most recently used first.
        refusals: why the last recorded call cannot be replayed; empty if it can be.
        missed: the label of the guard, of the nearest entry, that failed when a call was last recorded anew; None at first.
    """

    def __init__(self, function: AnyFunction, check: bool, dynamic: bool | None, fullgraph: bool) -> None:
        self.__module__, self.__qualname__ = __name__, type(function).__qualname__  # if the function has none
        functools.update_wrapper(self, function)
        self.function = function
        self.entries: list[Entry] = []
        self.refusals: list[Refusal] = []
        self.missed: str | None = None
        self.check = check
        self.fullgraph = fullgraph
        self._dynamic = dynamic
        self._returns_items = False
        self._compares = True  # values that Python reads are guards
        self._fills = False  # the last recorded call put something into a dict
        self._recordings = 0
        self._unmatched = PATIENCE  # grows with each call that no entry matches, while replays have not paid for the recordings
        self._splits = False  # the last recording, with fullgraph=True, has no entry: the next call says why again
        self._native: list[AnyFunction] = []  # replays by instructions

    def __repr__(self) -> str:
        if self.refusals and not self.entries:
            return f"<compiled {self.__qualname__}, called each time: {self.refusals[0]}>"
        replays = sum(entry.replays for entry in self.entries)
        return f"<compiled {self.__qualname__}, entries: {len(self.entries)}, replays: {replays}>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name if it can be found by name, as functions are; else by the function, to be recorded anew."""
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (Compiled, (self.function, self.check, self._dynamic, self.fullgraph))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for replay in self._native:
            result = replay(args, kwargs)
            if result is not MISSED:
                return result
        return self._call(args, kwargs)

    def _call(self, args: Positional, kwargs: Attributes) -> Any:
        """A call that no replay by instructions has taken."""
        state = thread_state.__dict__  # of this thread; a dict look-up takes a third of the time
        if state["recorder"] is not None or state["eager"] or state["deferred"] or REPLACING or state["observers"]:
            return self.function(*args, **kwargs)
        was_pending = bool(self._native and state["multi_device"]) and _realized((*args, *kwargs.values()))
        if state["multi_device"]:  # also what is pending on other devices
            flush_all()
        if GROUPS:
            flush_collectives()
        if not has_come_between():
            if not self.entries:
                return self._record(args, kwargs)
            if self._native and (was_pending or _realized((*args, *kwargs.values()))):
                return self(*args, **kwargs)
        with LOCK:
            if has_come_between():
                return self.function(*args, **kwargs)
            result, fails = MISSED, True
            with contextlib.suppress(NothingDoneError):
                result, fails = self._replayed(args, kwargs), False
        if fails:  # at its own line
            return self.function(*args, **kwargs)
        return self._record(args, kwargs) if result is MISSED else result

    def _replayed(self, args: Positional, kwargs: Attributes) -> Any:
        """The result of the first entry that can replay the call, or MISSED if none can, and why in `missed`."""
        entries, now, nearest = self.entries, modes(), OTHER_MODES - 1
        other: OtherValueError | None = None
        began = timeline.start()
        for entry in entries:
            found: Any = entry.check(args, kwargs) if entry.modes == now else OTHER_MODES
            if found.__class__ is not int:
                if other is not None and entry.contradicts(other):
                    continue
                if seen_devices and entry.is_elsewhere(*found):
                    found = len(entry.labels)
            if found.__class__ is int:
                if found > nearest:
                    nearest, self.missed = found, entry.label_of(found)
                continue
            timeline.note("guards", began)
            if entry is not entries[0]:
                entries.remove(entry)
                entries.insert(0, entry)
                self._find_native()
            try:
                result = self._run(entry, found, args, kwargs)
            except Missed as missed:
                nearest, self.missed, began = len(entry.labels), str(missed), timeline.start()
                if isinstance(missed, OtherValueError):
                    other = missed.with_traceback(None)  # which leads here, and to the values
                continue
            if not self.check and entry.settle():
                self._find_native()
            return result
        return MISSED

    def _run(self, entry: Entry, found: Any, args: Positional, kwargs: Attributes) -> Any:
        """See `Entry.replay`; `found` is what the entry's check found."""
        if self.check and entry.replays < CHECKED:
            return compared(self.function, entry, found, args, kwargs)
        began = timeline.start()
        try:
            return run_critical(entry.replay, *found)
        finally:
            timeline.note("replay", began, self.__qualname__)

    @property
    def records_rarely(self) -> bool:
        """Whether ever fewer of the calls that no entry matches are recorded, as replays have not paid for the recordings."""
        return self._recordings >= PATIENCE + sum(entry.replays for entry in self.entries)

    def _record(self, args: Positional, kwargs: Attributes) -> Any:
        """Record the call; ever more rarely after several recordings that replays do not pay for."""
        self._give_up_values()
        self._unmatched += 1
        if not self.records_rarely:
            self._unmatched = PATIENCE
        elif not (self._splits or _is_power(self._unmatched)):
            return self.function(*args, **kwargs)
        self._recordings += 1
        if self.entries:
            tell("guards", "%s is recorded anew: %s has changed", self.__qualname__, self.missed)
        dynamic = bool(self.entries) if self._dynamic is None else self._dynamic
        self._splits, began = self.fullgraph, timeline.start()
        recording = record(self.function, args, kwargs, dynamic, self.fullgraph, self._returns_items, compares=self._compares)
        timeline.note("record", began, self.__qualname__)
        recorder, entry = recording.recorder, recording.entry
        self._recordings += len(recorder.guards.labels) // MANY * DEAR * (self._recordings > (entry is not None) + 1)
        if recorder.guards.meets_cached_function:
            self._dynamic = False
        recorder.release()
        if not self._returns_items and recorder.only_returns_items(recording.result):
            self._returns_items, entry = True, None  # the next recording reads these numbers anew
        self.refusals = recorder.refusals
        for refusal in self.refusals:
            tell("guards", "%s cannot be replayed: %s", self.__qualname__, refusal)
        lasting = [refusal for refusal in self.refusals if not refusal.passes]
        first, self._fills = recorder.fills and not self._fills, recorder.fills
        if lasting and self.fullgraph and not first:
            raise SplitError(f"compile: with fullgraph=True, {lasting[0]}")
        if entry is not None:
            self._splits = False
            with LOCK:
                self._keep([entry, *self.entries][:ENTRY_LIMIT])
        return recording.result

    def _give_up_values(self) -> None:
        """Stop guarding values that Python reads if they keep changing."""
        comparing = [entry for entry in self.entries if entry.reads]
        if sum(entry.strays for entry in comparing) > STRAYS + sum(entry.replays for entry in comparing):
            self._compares = False
            with LOCK:
                self._keep([entry for entry in self.entries if not entry.reads])

    def _keep(self, entries: list[Entry]) -> None:
        """Have these entries alone; recordings that replays of others have paid for stay paid."""
        self._recordings -= sum(entry.replays for entry in self.entries if entry not in entries)
        self.entries = entries
        self._find_native()

    def _find_native(self) -> None:
        self._native = [entry.native.function for entry in self.entries if entry.native is not None]


def _realized(arguments: Iterable[object]) -> bool:
    """Compute pending tensors among the arguments, as instructions read memory; returns whether there were any."""
    dense = [one for one in arguments if isinstance(one, Tensor) and not isinstance(one, CompositeTensor)]
    pending = [one._array for one in dense if one._array.memory is None and one._base is None]
    for array in pending:
        realize(array)
    return any(array.memory is not None for array in pending)


def _is_power(number: int) -> bool:
    """Whether a number is a power of two raised to RARER."""
    return not number & (number - 1) and number.bit_length() % RARER == 1


def _under(kind: type[Module], module: Module) -> Module:
    """`module` as an instance of another class, with the same attributes."""
    twin: Module = object.__new__(kind)
    twin.__dict__ = module.__dict__
    return twin


@overload
def compile(fn: F, *, check: bool = ..., dynamic: bool | None = ..., fullgraph: bool = ...) -> F: ...
@overload
def compile(*, check: bool = ..., dynamic: bool | None = ..., fullgraph: bool = ...) -> Callable[[F], F]: ...
def compile(fn: Any = None, *, check: bool = False, dynamic: bool | None = None, fullgraph: bool = False) -> Any:
    """`fn`, traced once for each signature of its arguments and replayed from then on: one native call, no Python of `fn`.

    Args:
        fn: a function of tensors, numbers, strings, None and lists, tuples, dicts and dataclasses of them, such as a whole
            training step; or a module. Left out, a decorator.
        check: compare the first replays with uncompiled execution.
        dynamic: whether numbers among the arguments that only feed arithmetic are data: yes, no, or (None) from the second call
            on. Those within lists and dicts are so in a process of one thread, those within tuples never.
        fullgraph: raise SplitError where Python reads a value, or where a call cannot be replayed. A call that fills a
            functools.cache does not raise, as the next one finds it filled; nor does one that adds to a dict, unless the call
            before did so too.

    Each call re-reads parameters, settings, globals and attributes. A function that does more than compute (it prints, counts,
    reads a value), or calls something that is not known to be a pure function, is called each time.
    `genesis.debug.explain` says why.

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
        vars(call).update(__name__=kind.__name__, __qualname__=kind.__name__)
        again = functools.partial(compile, check=check, dynamic=dynamic, fullgraph=fullgraph)
        members = {
            "__call__": call, "__module__": kind.__module__,
            "__reduce_ex__": lambda twin, _: (again, (_under(kind, twin),)),
        }
        return _under(type(kind.__name__, (kind,), members), fn)
    if not callable(fn):
        raise TypeError(f"compile: wants a function or a module, got {type(fn).__name__} {fn!r:.40}")
    return Compiled(fn, check, dynamic, fullgraph)
