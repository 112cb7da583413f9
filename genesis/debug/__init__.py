"""Inspection: the pending graph, the lowered program, memory, timings and counters."""

from genesis.debug.explain import Explanation, explain
from genesis.debug.gradients import GradientRecord, record_grad_function
from genesis.debug.graph import RecordedGraph, graph
from genesis.debug.costs import MemoryUse, ProgramCost, StageCost, StageTime, Timing, kernels, memory, timing
from genesis.debug.program import LoweredProgram, Recording, program
from genesis.debug.page import page
from genesis.execution.flush import FLUSH_HOOKS as on_flush
from genesis.runtime.counters import reset as reset_stats, stats

__all__ = [
    "Explanation", "GradientRecord", "LoweredProgram", "MemoryUse", "ProgramCost", "RecordedGraph", "Recording", "StageCost",
    "StageTime", "Timing", "explain", "graph", "kernels", "memory", "on_flush", "page", "program", "record_grad_function",
    "reset_stats", "stats", "timing",
]
__dir__ = __all__.copy
