"""Kernels that are no loop nests: a function of items, with the words of its argument block by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import I64, POINTER
from genesis.codegen.cpu.vectors import counted

KERNEL_TYPE = ir.FunctionType(ir.VoidType(), [I64, I64, POINTER, I64])


def word_types(names: Iterable[str], pointers: Iterable[str]) -> dict[str, ir.Type]:
    """The types of words: pointers or integers."""
    return {name: POINTER if name in pointers else I64 for name in names}


def load_words(builder: ir.IRBuilder, block: ir.Value, types: Mapping[str, ir.Type]) -> dict[str, ir.Value]:
    """The words of a block, by name."""
    return {
        name: builder.load(builder.gep(block, [I64(n)], source_etype=I64), typ=typ)
        for n, (name, typ) in enumerate(types.items())
    }


class WordKernel:
    """A kernel under construction: `void name(i64 first, i64 end, i64* block, i64 worker)`, with vectors of `width` lanes.

    Attributes:
        words: the values of the block's words, by name.
    """

    def __init__(self, name: str, types: Mapping[str, ir.Type], width: int, module: ir.Module | None = None) -> None:
        self.module = module or ir.Module(name)
        self.function = ir.Function(self.module, KERNEL_TYPE, name)
        self.first, self.end, block, self.worker = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.lanes = Lanes(self.builder, width)
        self.words = load_words(self.builder, block, types)

    def items(self) -> AbstractContextManager[ir.Value]:
        """A loop over the items."""
        return counted(self.builder, self.first, self.end)

    def at(self, word: str, index: ir.Value, dtype: str) -> ir.Value:
        """The address of an element of the array at the address `word`."""
        return self.lanes.element_pointer(self.words[word], index, dtype)

    def text(self) -> str:
        """The module, which is complete."""
        self.builder.ret_void()
        return str(self.module)
