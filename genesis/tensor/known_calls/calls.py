"""Calls that the trie knows are recorded by machine code, once there have been many calls in a process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from genesis.ir.annotations import Attributes
from genesis.ops.registry import Operation
from genesis.runtime.deferred import deferred
from genesis.tensor.handle import CallArguments

if TYPE_CHECKING:
    from genesis.tensor.known_calls.native import native_call
else:
    native_call = deferred("genesis.tensor.known_calls.native", "native_call")

OFTEN = 512  # calls in a process, before machine code records known ones: it takes milliseconds to load


class KnownCalls:
    """Records calls: those that the trie knows without Python.

    Attributes:
        call: call(operation, arguments, attributes, bare), by Python at first; machine code has the same effects.
    """

    def __init__(self, by_python: Callable[..., Any], *others: Callable[..., Any]) -> None:
        self.by_python = by_python
        self.others = others  # functions that machine code goes on with: see `native_call`
        self._calls = 0
        self.call: Callable[..., Any] = self._counted

    def _counted(self, operation: Operation, arguments: CallArguments, attributes: Attributes | None, bare: bool) -> Any:
        self._calls += 1
        if self._calls == OFTEN:
            with contextlib.suppress(Exception):  # a call does without where nothing can be compiled
                self.call = native_call(self.by_python, *self.others) or self.by_python
        return self.by_python(operation, arguments, attributes, bare)
