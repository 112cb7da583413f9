"""Calls that the trie knows, views and looks at values are made by machine code, once there have been many in a process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from genesis.runtime.deferred import deferred
from genesis.runtime.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from genesis.tensor.known_calls.native import native
else:
    native = deferred("genesis.tensor.known_calls.native", "native")

OFTEN = 512  # calls in a process, before machine code records known ones: it takes milliseconds to load


class KnownCalls:
    """Makes calls: known ones without Python.

    Attributes:
        call: by Python at first; the machine code of `symbol` has the same effects.
    """

    def __init__(self, symbol: str, by_python: Callable[..., Any], *others: Callable[..., Any]) -> None:
        self.symbol = symbol
        self.by_python = by_python
        self.others = others  # functions that machine code goes on with
        self._calls = 0
        self.call: Callable[..., Any] = self._counted

    def _counted(self, *arguments: Any) -> Any:
        self._calls += 1
        if self._calls == OFTEN:
            self.call = uninterrupted(self._loaded) or self.by_python  # no handler raises what would be taken for a failure
        return self.by_python(*arguments)

    def _loaded(self) -> Callable[..., Any] | None:
        """The machine code; None where nothing can be compiled."""
        with contextlib.suppress(Exception):
            return native(self.symbol, self.by_python, *self.others)
        return None
