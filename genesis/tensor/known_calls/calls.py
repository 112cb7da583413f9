"""Calls that the trie knows are recorded by machine code, once there have been many calls in a process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any

from genesis.ops.registry import Operation
from genesis.runtime.deferred import deferred
from genesis.tensor.handle import CallArguments, Tensor
from genesis.tracing.scopes import Scope
from genesis.tracing.token import Token
from genesis.tracing.trace import Trace
from genesis.tracing.trie import Key

if TYPE_CHECKING:
    from genesis.tensor.known_calls.native import native_record
else:
    native_record = deferred("genesis.tensor.known_calls.native", "native_record")

OFTEN = 512  # calls in a process, before machine code records known ones: it takes a millisecond to load


class KnownCalls:
    """Records calls that the trie knows.

    Attributes:
        record: record(trace, operation, mode, arguments, recorder, finishes, code, offset, scope). Tensors enter the trace. It
            returns the result of a known call, if it `finishes` that; else the call's key, a tuple. What is simple, machine
            code does alone: tensors and leaves of memory that nobody else sees, numbers, and calls of a single result.
    """

    def __init__(self, token: Callable[[Trace, Operation, int, Any], Token]) -> None:
        self._token = token  # of an argument
        self._calls = 0
        self.record: Callable[..., Tensor | Key] = self._by_python

    def _by_python(
        self, trace: Trace, operation: Operation, mode: Token, arguments: CallArguments, recorder: Any, finishes: bool,
        code: CodeType | None, offset: int, scope: Scope | None,
    ) -> Key:
        self._calls += 1
        if self._calls == OFTEN:
            with contextlib.suppress(Exception):  # a call does without where nothing can be compiled
                self.record = native_record(self._token) or self._by_python
        token = self._token
        return (operation, mode, *[token(trace, operation, k, argument) for k, argument in enumerate(arguments)])
