"""Collectives: launches that call MPI, and wait for it."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.lower.stages import HostCall
from genesis.runtime.collective_ir import AWAITS, STARTS
from genesis.runtime.collectives import SYMBOL, CollectiveLaunch, collective_source
from genesis.runtime.groups import GROUPS, Collective
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import Addresses, Block, NativeLaunch


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernel of all collectives."""
    return [collective_source()]


def launches(nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int) -> list[NativeLaunch]:
    """The launches of a call, on row-major operands: those that start it, and those that wait for it."""
    blocks = slots.once(("collective", call.node), lambda: _blocks(nodes[call.node], call, slots))
    how = {"start": STARTS, "wait": AWAITS, "": STARTS | AWAITS}[call.phase]
    if how == STARTS:
        GROUPS[nodes[call.node].attrs["group"]].attend()
    return [NativeLaunch(addresses[SYMBOL], [Block(block.block(how), 1)], 1) for block in blocks]


def _blocks(node: Node, call: HostCall, slots: SlotMap) -> list[CollectiveLaunch]:
    [(value, layout)] = call.operands
    at, size = node.attrs, node.dtype.itemsize
    return GROUPS[at["group"]].blocks(
        Collective.of(node.op, at), node.dtype.numpy, slots.address(value, layout.offset * size), slots.address(call.node),
        (layout.shape[0] * size, node.nbytes), call.node, slots.keep)
