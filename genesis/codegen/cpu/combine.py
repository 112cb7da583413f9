"""The kernel that combines the partial sums of a loop."""

from __future__ import annotations

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import I64, REGISTER_TYPE
from genesis.codegen.cpu.vectors import counted
from genesis.codegen.cpu.word_kernel import WordKernel, word_types


def combine_ir(name: str, dtype: str, width: int, chunk: int) -> str:
    """The kernel that adds partial sums in order: the words are in `loops.combine_source`, an item is `chunk` elements."""
    kernel = WordKernel(name, word_types(("target", "source", "elements", "partials", "pitch"), ("target", "source")), width)
    builder, lanes = kernel.builder, kernel
    target, source, elements, partials, pitch = kernel.words.values()
    total = builder.alloca(ir.VectorType(REGISTER_TYPE[dtype], width))
    stop = kernel.end * chunk
    stop = builder.select(stop < elements, stop, elements)
    with counted(builder, kernel.first * chunk, stop, width) as at:
        mask = lanes.first_lanes(stop - at)
        builder.store(lanes.load(lanes.element_pointer(source, at, dtype), dtype, mask), total)
        with counted(builder, I64(1), partials) as number:
            other = builder.gep(source, [number * pitch], source_etype=ir.IntType(8))
            part = lanes.load(lanes.element_pointer(other, at, dtype), dtype, mask)
            builder.store(lanes.add(builder.load(total), part), total)
        lanes.store(builder.load(total), lanes.element_pointer(target, at, dtype), dtype, mask)
    return kernel.text()
