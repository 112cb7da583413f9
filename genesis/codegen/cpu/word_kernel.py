"""Kernels that are no loop nests: a function of items, with the words of its argument block by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.registers import I64, POINTER

KERNEL_PARAMETERS = I64, I64, POINTER, I64
KERNEL_TYPE = ir.FunctionType(ir.VOID, KERNEL_PARAMETERS)


def word_types(names: Iterable[str], pointers: Iterable[str]) -> dict[str, ir.Type]:
    """The types of words: pointers or integers."""
    return {name: POINTER if name in pointers else I64 for name in names}


def load_words(builder: ir.IRBuilder, block: ir.Value, types: Mapping[str, ir.Type]) -> dict[str, ir.Value]:
    """The words of a block, by name."""
    return {
        name: builder.load(builder.gep(block, [I64(n)], source_etype=I64), typ=typ)
        for n, (name, typ) in enumerate(types.items())
    }


class WordKernel(Code):
    """A kernel under construction: `void name(i64 first, i64 end, i64* block, i64 worker)`, with vectors of `width` lanes.

    Attributes:
        words: the values of the block's words, by name.
    """

    def __init__(self, name: str, types: Mapping[str, ir.Type], width: int, module: ir.Module | None = None) -> None:
        self.module = module or ir.Module(name)
        super().__init__(self.module, name, KERNEL_PARAMETERS, width, internal=False)
        self.first, self.end, self.block, self.worker = self.args
        self.words = load_words(self.builder, self.block, types)

    def items(self) -> AbstractContextManager[ir.Value]:
        """A loop over the items."""
        return self.count(self.first, self.end)

    def element(self, word: str, index: ir.Value, dtype: str) -> ir.Value:
        """The address of an element of the array at the address `word`."""
        return self.element_pointer(self.words[word], index, dtype)

    def report(self, value: ir.Value, extent: ir.Value) -> None:
        """Report a fault at the word `site` to the record at `fault`."""
        for number, word in enumerate((I64(1), self.words["site"], value, extent)):
            self.put(word, self.words["fault"], number)

    def text(self) -> str:
        """The module, which is complete."""
        self.finish()
        return str(self.module)
