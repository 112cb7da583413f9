"""What fusion decides: whether a value is worth its memory, and a record of what it refused and why."""

from __future__ import annotations

from typing import NamedTuple

from genesis.lower.target import Target

__all__ = ["Choice", "Decisions", "Refusal", "is_worth_keeping"]

GENERATE_COST = 80  # of a value computed from nothing, such as a random number: it takes no memory traffic at all
TRAFFIC = 8  # bytes that an element of float32 takes to be written and read again


class Refusal(NamedTuple):
    """Node `node` begins a kernel of its own, for the one that computes or reads `beside` could not take it in."""

    node: int
    beside: int
    reason: str


class Choice(NamedTuple):
    """Value `node`, read by other kernels, is kept in memory for them, or computed again in each, at `cost` an element."""

    node: int
    kept: bool
    cost: int


class Decisions(NamedTuple):
    """All that was refused, and all that was chosen, in the order of the nodes."""

    refusals: list[Refusal]
    choices: list[Choice]


def is_worth_keeping(cost: int, nbytes: int, target: Target, sources: int, large: int) -> bool:
    """Whether to write a value and read it again, rather than compute it again.

    It takes `cost` simple operations an element, from `sources` values in memory, `large` of them as large as itself.
    """
    if not sources:
        return cost > GENERATE_COST
    if large > 1:  # it would read more than it saves
        return True
    machine = target.at_work(target.threads)
    bandwidth = machine.cache if nbytes <= machine.cached else min(machine.cache, machine.memory)
    return cost / machine.operations > TRAFFIC / bandwidth
