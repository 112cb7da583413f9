"""Interrupting a function wherever CPython may let a signal handler run.

A handler runs where a frame begins, where a loop turns back, and when a call of what is not a Python function has
returned; nowhere else.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Collection
from types import FrameType
from typing import Any

import genesis

_PACKAGE = os.path.dirname(genesis.__file__) + os.sep
_CALLS = {dis.opmap[name] for name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX") if name in dis.opmap}
_RESUME = dis.opmap.get("RESUME")
_TURNS = {dis.opmap[name] for name in ("JUMP_BACKWARD", "FOR_ITER") if name in dis.opmap}


CONTEXTS = ("__enter__", "__exit__")  # where modes change


class Moments:
    """Counts the moments of a call at which an interrupt could come, `within` functions of these names, if any are given,
    up to the chosen one; and interrupts there, or has a `handler` called.
    """

    def __init__(self, chosen: int = -1, within: Collection[str] = (), handler: Callable[[], None] | None = None) -> None:
        self._handler = handler
        self.count = 0
        self.where = ""
        self._within = within
        self._chosen = chosen
        self._called: dict[FrameType, bool] = {}

    def during(self, function: Callable[[], Any]) -> bool:
        """Call `function`; returns whether it was interrupted."""
        sys.settrace(self._enter)
        try:
            function()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_back is not None and frame.f_code.co_name != "__init__":
            self._called[frame.f_back] = False
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        if frame.f_code.co_code[frame.f_lasti] == _RESUME:  # and not a generator that is being closed
            self._moment(frame)
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            opcode = frame.f_code.co_code[frame.f_lasti]
            if self._called.get(frame) or opcode in _TURNS:
                self._moment(frame)
            self._called[frame] = opcode in _CALLS
        elif event == "return":
            self._called.pop(frame, None)
        return self._step

    def _moment(self, frame: FrameType) -> None:
        self.count += not self._within or frame.f_code.co_name in self._within
        if self.count == self._chosen:
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            if self._handler is not None:
                sys.settrace(None)  # which is slow; no later moment matters
                return self._handler()
            self._called.clear()
            raise KeyboardInterrupt


def moments_of(function: Callable[[], Any], within: Collection[str] = ()) -> int:
    """How many moments of a call there are, once two calls have had as many: the first ones record, plan and compile."""
    counts = [-1]
    for _ in range(10):
        moments = Moments(within=within)
        moments.during(function)
        if moments.count == counts[-1]:
            break
        counts.append(moments.count)
    return counts[-1]


def interrupt(function: Callable[[], Any], moment: int, within: Collection[str] = ()) -> str:
    """Call `function` and interrupt it at a moment; returns the line where that was, or nothing if it came to its end."""
    moments = Moments(moment, within)
    return moments.where if moments.during(function) else ""
