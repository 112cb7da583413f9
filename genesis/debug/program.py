"""The lowered program of what is pending, without running it."""

from __future__ import annotations

from typing import Any

from genesis import execute
from genesis.tensor import Tensor, array_of
from genesis.trace import current_trace

__all__ = ["program"]


def program(*tensors: Tensor) -> Any:
    """The plan that would compute `tensors` and whatever else is pending.

    It prints as its instruction list, and has `.kernels` (each with `.name`, `.source`, `.ops`, `.reads`, `.writes`),
    `.instructions` and `.arena_bytes`.
    """
    traces = [a.trace for a in map(array_of, tensors) if a.memory is None and a.trace is not None]
    return execute.plan_for(traces[0] if traces else current_trace())
