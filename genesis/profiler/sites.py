"""Attribution of a stage's time to the user's lines, modules and operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from genesis.debug.program import instruction
from genesis.execution.plan import Plan
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Product, Stage, estimate, parts
from genesis.ops.registry import PRIMITIVES, Operation
from genesis.tracing.scopes import ScopeNames
from genesis.tracing.trace import ENTERED, Trace

Line = tuple[str, int]


class Site(NamedTuple):
    """The origin of a value: the user's line, the module's path, the called operation, and whether it is part of a gradient.
    A gradient has the line and module of its value."""

    line: Line | None
    module: str
    operation: str
    is_gradient: bool


class Share(NamedTuple):
    """A site's share of a stage: a fraction of its time and bytes, and floating-point operations."""

    site: Site
    fraction: float
    flops: float


class StageInfo(NamedTuple):
    """A stage of a plan: its first call as text, its kernel, bytes to and from memory, operations, the model's seconds, and
    the sites' shares."""

    text: str
    kernel: str
    nbytes: int
    flops: int
    estimate: float
    shares: list[Share]


UNKNOWN = Site(None, "", "", False)


def stages_of(plan: Plan, sites: Mapping[int, Site]) -> list[StageInfo]:
    """The stages of a plan, given its nodes' sites."""
    lowered = plan.lowered
    found = []
    for stage in lowered.schedule.stages:
        nbytes, flops, seconds = estimate(lowered.nodes, stage, lowered.target)
        text = instruction(plan, stage[0]).replace("\n", " ") + (f", and {len(stage) - 1} more" if len(stage) > 1 else "")
        found.append(StageInfo(text, _kernel_name(lowered.nodes, stage), nbytes, flops, seconds, _shares(plan, stage, sites)))
    return found


def sites_of(plan: Plan, trace: Trace) -> dict[int, Site]:
    """Node of a plan's lowered graph -> its site, from the plan's trace."""
    names, known = ScopeNames(), {}
    for index, origin in enumerate(plan.lowered.origins):
        if not 0 <= origin < len(trace.nodes):
            continue
        source, position = trace.derived_from(origin)
        call = source.call_at(position)
        operation = trace.nodes[origin].op if call is None else _operation(call[-1][0], source.nodes[position])
        line = None if trace.nodes[origin].op in ENTERED else source.line_of(position)
        known[index] = Site(line, names.path(trace.scope_of(origin)), operation,
                            trace.nodes[origin].origin >= 0)
    return known


def _operation(called: object, node: Node) -> str:
    return called.name if isinstance(called, Operation) else node.op


def _kernel_name(nodes: Sequence[Node], stage: Stage) -> str:
    """A short name: equal for stages that run the same code on the same extents."""
    names = []
    for part in parts(stage[0]):
        if isinstance(part, Product):
            batch = f"{numel(part.batch)} x " * bool(part.batch)
            names.append(f"product {batch}{' x '.join(map(str, part.extents))} {nodes[part.node].dtype.name}")
        else:
            names.append(part.kernel.name if isinstance(part, KernelCall) else nodes[part.node].op)
    return names[0] + (f" + {len(names) - 1}" if len(names) > 1 else "")


def _shares(plan: Plan, stage: Stage, sites: Mapping[int, Site]) -> list[Share]:
    """Splits a stage's time: over its parts by the cost model, over a kernel's nodes by their operations."""
    nodes, target = plan.lowered.nodes, plan.lowered.target
    weights: dict[Site, list[float]] = {}
    for call in stage:
        for part in parts(call):
            _, flops, seconds = estimate(nodes, [part], target)
            members = part.nodes if isinstance(part, KernelCall) else (part.node,)
            costs = {i: _cost(nodes, i) for i in members} if len(members) > 1 else dict.fromkeys(members, 1.0)
            whole = sum(costs.values()) or 1.0
            for index, cost in costs.items():
                entry = weights.setdefault(sites.get(index, UNKNOWN), [0.0, 0.0])
                entry[0] += seconds * cost / whole
                entry[1] += flops * cost / whole
    total = sum(seconds for seconds, _ in weights.values()) or 1.0
    return [Share(site, seconds / total, flops) for site, (seconds, flops) in weights.items() if seconds]


def _cost(nodes: Sequence[Node], index: int) -> float:
    """The operations of a kernel's node, plus one per element that it outputs."""
    node = nodes[index]
    primitive = PRIMITIVES.get(node.op)
    if primitive is None or primitive.kind in ("view", "source"):
        return 0.0
    elements = max([node.numel, *[nodes[i].numel for i in node.inputs if primitive.kind == "reduce"]])
    return float(elements * (primitive.cost + 1))
