"""Eager mode: every operation at once, by its NumPy reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from genesis.execution.flush import flush_all
from genesis.tracing.state import thread_state


@contextmanager
def eager() -> Iterator[None]:
    """Within it, and in this thread, every operation runs when its line does, by the NumPy references of its primitives.

    No kernel is compiled or run, and functions made by `genesis.compile` run as they are written. Values, gradients, writes
    in place and random numbers are those of compiled code up to rounding, only slower: a program that goes wrong compiled
    and right here has met a fault of the compiler, one that goes wrong in both has it in its own lines. An index out of
    range raises where it is used. What was recorded before is computed first. As a decorator it holds for every call.

    >>> genesis.debug.reset_stats()
    >>> with genesis.eager():
    ...     x = genesis.tensor([1.0, 2.0], requires_grad=True)
    ...     (x * x).sum().backward()
    >>> x.grad, genesis.debug.stats()["native_calls"]
    (tensor([2., 4.]), 0)
    """
    with _running(True, math.inf):
        yield


@contextmanager
def together() -> Iterator[None]:
    """Within it nothing runs before it is looked at: for what works on the record of several calls.

    So eager mode waits, and functions made by `genesis.compile` run as they are written.
    """
    before, thread_state.deferred = thread_state.deferred, True
    try:
        with _running(True, 0) if thread_state.weight else nullcontext():
            yield
    finally:
        thread_state.deferred = before


@contextmanager
def _running(eager: bool, weight: float) -> Iterator[None]:
    flush_all()
    before = thread_state.eager, thread_state.weight
    thread_state.eager, thread_state.weight = eager, weight
    try:
        yield
    finally:
        thread_state.eager, thread_state.weight = before
        flush_all()
