"""What each thread has of its own: the traces that it has begun, and the modes of its calls."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from genesis.ir.dtypes import DType
from genesis.runtime.devices import CPU

# (the scope around, a weak reference to a module or a name, the module's class or None)
Scope = tuple[Any, Any, type | None]
begun: set[weakref.ref[Any]] = set()  # the traces of all threads that have not been flushed, and some that died


class _ThreadState(threading.local):
    autocast: DType | None = None  # the class's value holds outside of autocast contexts, in every thread

    def __init__(self) -> None:
        self.scope: Scope | None = None  # of the calls that it records now
        self.recorder: Any = None  # of `genesis.compile` while it records: hears of what a trace does not show
        self.trace: Any = None  # the CPU's open trace, unless `multi_device`
        self.multi_device = False  # the thread has used another device than the CPU: calls ask where their tensors are
        self.traces: Any = {}  # the last trace begun for each device, by its name
        self.left: tuple[Any, ...] = ()  # interrupts left their runs, other processes wait for them: nothing overtakes
        self.backward: Any = None  # the innermost RunningBackward
        self.observers: tuple[Any, ...] = ()  # of this thread's backwards, outermost first
        self.device = CPU  # where the result of a call without tensors will be
        self.grad_enabled: Any = True  # or False; None in inference mode, which marks what it makes
        self.eager = False
        self.deferred = False  # nothing recorded may run yet: a transform will rewrite it
        self.undivided = False  # what is recorded stays in one trace
        self.weight: float = 0  # that a trace begins with: infinite in eager mode, so that every call is flushed
        self.loop: Any = (None, None, 0), None  # the call at which a long loop is flushed, and the trace that has chosen it
        self.autocasts: tuple[DType | None, ...] = ()  # those of the contexts that are open
        self.mapped: tuple[tuple[str, int], ...] = ()  # vmapped functions that run, outermost first: randomness, examples
        self.examples: tuple[Any, ...] = ()  # their first examples, for which they run
        self.dual_level: Any = None  # of forward mode: pairs of a dual tensor and its tangent, and the mode around
        self.checks_sparse = False  # new sparse tensors' indices are checked
        begun.difference_update([reference for reference in [*begun] if reference() is None])  # of threads that ended


thread_state = _ThreadState()
