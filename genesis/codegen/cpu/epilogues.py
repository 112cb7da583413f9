"""Epilogues of a product: the table of kernels that run over each block of its rows while that is in cache."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from genesis.codegen.cpu.kernel_args import Work, argument
from genesis.codegen.slot_map import SlotMap
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Product
from genesis.runtime.native import BlockWord

__all__ = ["followers"]


def followers(product: Product, slots: SlotMap, addresses: Mapping[str, int], workers: int) -> tuple[BlockWord, ...]:
    """For each call its kernel, its argument block, and its items per row."""
    rows = product.extents[0]
    return tuple(chain.from_iterable(_entry(call, rows, slots, addresses, workers) for call in product.epilogue))


def _entry(
    call: KernelCall, rows: int, slots: SlotMap, addresses: Mapping[str, int], workers: int
) -> tuple[int, tuple[BlockWord, ...], int]:
    kernel = call.kernel
    extent = call.extents[kernel.lane] if kernel.lane is not None else 1
    lanes, items = (extent, numel(call.extents[a] for a in kernel.outer)) if kernel.outer else (extent // rows, rows)
    work = Work(lanes, 1, workers, items)
    words = tuple(argument(w, call, slots, work) for w in kernel.words)
    return addresses[kernel.name], words, items // rows
