"""The kernel that packs a right operand for all tiles of a loop: items are strips of its columns, which lie side by side."""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.product.packing import emit_transposing, firsts
from genesis.codegen.cpu.registers import I64
from genesis.codegen.cpu.tiling import RegisterTile
from genesis.codegen.cpu.word_kernel import WordKernel, word_types

# A matrix stored as its transpose, whose stored rows are `distance` apart; the strips' `pitch`. Both count elements.
WORDS = "source", "distance", "columns", "terms", "target", "pitch"


def strips_ir(name: str, tile: RegisterTile) -> str:
    """The module that defines the kernel `name`."""
    module = ir.Module(name)
    transposing = emit_transposing(module, tile)
    kernel = WordKernel(name, word_types(WORDS, ("source", "target")), tile.lanes, module)
    b, word = kernel.builder, kernel.words
    with kernel.items() as item:
        column = item * tile.columns
        start = kernel.element("source", column * word["distance"], tile.dtype)
        strip = kernel.element("target", item * word["pitch"], tile.dtype)
        left = word["columns"] - column
        for first in firsts(tile, tile.columns):
            b.call(transposing, [start, word["distance"], left, I64(first), word["terms"], strip, I64(tile.columns)])
    return kernel.text()
