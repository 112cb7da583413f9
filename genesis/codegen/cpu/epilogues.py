"""What follows a product block by block of its rows, as the table that the product's kernel goes through."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from genesis.codegen.cpu.words import word
from genesis.codegen.places import Places
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Product
from genesis.runtime.native import Word

__all__ = ["followers"]


def followers(product: Product, places: Places, addresses: Mapping[str, int], workers: int) -> tuple[Word, ...]:
    """For each call its kernel, its argument block, and how many of its items go through a row."""
    rows = product.extents[0]
    return tuple(chain.from_iterable(_entry(call, rows, places, addresses, workers) for call in product.epilogue))


def _entry(
    call: KernelCall, rows: int, places: Places, addresses: Mapping[str, int], workers: int
) -> tuple[int, tuple[Word, ...], int]:
    kernel = call.kernel
    extent = call.extents[kernel.lane] if kernel.lane is not None else 1
    lanes, items = (extent, numel(call.extents[a] for a in kernel.outer)) if kernel.outer else (extent // rows, rows)
    words = tuple(word(w, call, places, lanes, 1, workers, items, 1) for w in kernel.words)
    return addresses[kernel.name], words, items // rows
