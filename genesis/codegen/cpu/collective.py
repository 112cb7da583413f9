"""Collectives: launches that call MPI, and wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall
from genesis.runtime.collectives import GROUPS, SOURCE, Collective
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Block, NativeLaunch


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernel of all collectives."""
    return [SOURCE]


def launches(
    nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: dict[str, int], threads: int
) -> list[NativeLaunch]:
    """The launches of a call, on operands in row-major order."""
    node = nodes[call.node]
    [(value, layout)] = call.operands
    at = node.attrs
    size = node.dtype.itemsize
    blocks = GROUPS[at["group"]].blocks(
        Collective.of(node.op, at), node.dtype.name, slots.address(value, layout.offset * size), slots.address(call.node),
        (layout.shape[0] * size, node.nbytes), call.node, slots.keep)
    return [NativeLaunch(addresses[SOURCE.symbol], [Block(words, 1)], 1) for words in blocks]
