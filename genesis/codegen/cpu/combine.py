"""The kernel that combines the partial sums of a loop."""

from __future__ import annotations

from genesis.codegen.cpu.word_kernel import WordKernel, word_types


def combine_ir(name: str, dtype: str, width: int, chunk: int) -> str:
    """The kernel that adds partial sums in order: the words are in `loops.combine_source`, an item is `chunk` elements."""
    kernel = WordKernel(name, word_types(("target", "source", "elements", "partials", "pitch"), ("target", "source")), width)
    target, source, elements, partials, pitch = kernel.words.values()
    stop = kernel.least(kernel.end * chunk, elements)
    with kernel.count(kernel.first * chunk, stop, width) as at:
        mask = kernel.first_lanes(stop - at)
        total = kernel.variable(kernel.load(kernel.element_pointer(source, at, dtype), dtype, mask))
        with kernel.count(1, partials) as number:
            other = kernel.element_pointer(kernel.at(source, number * pitch), at, dtype)
            total.set(total.get() + kernel.load(other, dtype, mask))
        kernel.store(total.get(), kernel.element_pointer(target, at, dtype), dtype, mask)
    return kernel.text()
