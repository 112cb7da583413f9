"""The vocabulary in which CPU kernels are written: vectors, their conversion, division, reduction and access to memory."""

from __future__ import annotations

from genesis.codegen.cpu.division import Division
from genesis.codegen.cpu.memory_access import MemoryAccess

__all__ = ["Lanes"]


class Lanes(Division, MemoryAccess):
    """Emits vector code of `width` lanes at the position of `builder`.

    Example::

        b = Lanes(ir.IRBuilder(block), 16)
        x = b.load(b.element_pointer(source, index, "float32"), "float32")
        b.store(b.fma(x, x, 1.0), target, "float32")
    """
