"""Collectives that ran before a value was lost: later computations use their results, because other processes take part in
each collective only once.
"""

from __future__ import annotations

from genesis.execution.interrupted_run import close_group
from genesis.execution.plan import Plan
from genesis.execution.result_pool import Run
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall, Stage, parts
from genesis.ops.registry import PRIMITIVES
from genesis.tracing.trace import Array, Trace


def keep_results(run: Run, trace: Trace, failed: int) -> None:
    """Store in `trace` the results of the collectives that ran before node `failed` of the lowered graph.

    If one may have run but has no result, its group becomes unusable.
    """
    plan = run.plan
    if not isinstance(plan, Plan) or not plan.collectives:
        return
    lowered, stages = plan.lowered, plan.lowered.schedule.stages
    first, *_, last = [number for number, stage in enumerate(stages) if _has(stage, failed)] * 2
    is_host = trace.device.memory.is_host
    last = last if is_host and lowered.nodes[failed] in plan.collectives else first
    going_on = "start" if is_host else "wait"  # on a GPU later work waits for started collectives: `await_under_way`
    ended = [call for stage in stages[:first] for call in stage if not (isinstance(call, HostCall) and call.phase == going_on)]
    begun = {call.node for stage in stages[: last + 1] for call in stage if isinstance(call, HostCall)}
    written = {value for call in ended for value in call.writes}
    ran = trace.ran = {**trace.ran}
    for index, (base, _), memory in zip(plan.values, lowered.outputs, run.memories, strict=True):
        node = trace.nodes[index]
        if base in written and PRIMITIVES[node.op].kind == "collective":
            given = Node("input", (), {"strides": memory.strides}, node.shape, node.dtype, node.differentiable)
            ran[index] = Array(None, -1, given, memory)
    for number in begun - {failed}:
        node = lowered.nodes[number]
        if PRIMITIVES[node.op].kind == "collective" and lowered.origins[number] not in trace.ran:
            close_group(run, node.attrs["group"])


def _has(stage: Stage, node: int) -> bool:
    return any(node in (*part.writes, *getattr(part, "nodes", ())) for call in stage for part in parts(call))


def from_results(trace: Trace) -> Trace:
    """`trace`, or a twin of it that has the results of finished collectives as inputs, at the same positions."""
    if not trace.ran:
        return trace
    nodes = [trace.ran[index].node if index in trace.ran else node for index, node in enumerate(trace.nodes)]
    inputs = dict(sorted({**trace.input_at, **trace.ran}.items()))
    strides = tuple([(index, array.node.attrs["strides"]) for index, array in sorted(trace.ran.items())])
    twin = trace.twin(("ran", strides), nodes, inputs)
    twin.backward, twin.released = trace.backward, trace.released
    return twin
