"""Eager mode: every operation runs at once, by its NumPy reference."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from genesis.execution.flush import flush_all
from genesis.tracing.state import thread_mode, thread_state


@contextmanager
def eager() -> Iterator[None]:
    """A context in which this thread's operations run immediately, by the NumPy references of their primitives.

    No kernel is compiled or run, and functions made by `genesis.compile` run uncompiled. Values, gradients, in-place writes and
    random numbers equal those of compiled code up to rounding, but slower. So a failure only in compiled code is a compiler
    bug; a failure in both modes is a bug in the script. An index out of range raises where it is used. Earlier pending work
    runs first. As a decorator it applies to every call.

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
def deferring() -> Iterator[None]:
    """A context in which nothing runs before it is read: for transforms of several recorded calls.

    Eager mode is suspended, and functions made by `genesis.compile` run uncompiled.
    """
    with thread_mode("deferred", True), _running(True, 0) if thread_state.weight else nullcontext():
        yield


@contextmanager
def _running(eager: bool, weight: float) -> Iterator[None]:
    flush_all()
    try:
        with thread_mode("eager", eager), thread_mode("weight", weight):
            yield
    finally:
        flush_all()
