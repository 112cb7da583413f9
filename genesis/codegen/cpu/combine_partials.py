"""The kernel that adds up the partial sums of a loop's workers, in the order of the workers: the same bits every time."""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.product.tile import Tile, counted
from genesis.codegen.cpu.registers import I64, POINTER, REGISTER_TYPE
from genesis.runtime.kernel_cache import KernelSource

__all__ = ["CHUNK", "combine_source"]

CHUNK = 4096  # elements of an item


def combine_source(dtype: str) -> KernelSource:
    """The kernel of words {target, source, elements, workers, bytes from one worker's sums to the next}."""
    tile = Tile.of(dtype)
    name = f"genesis_combine_{dtype}"
    return KernelSource(name, f"{name} {tile.lanes}", partial(_combine_ir, name, tile))


def _combine_ir(name: str, tile: Tile) -> str:
    dtype = tile.dtype
    module = ir.Module(name)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [I64, I64, POINTER, I64]), name)
    first, end, words, _ = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lanes = Lanes(builder, tile.lanes)
    target, source, elements, workers, pitch = (
        builder.load(builder.gep(words, [I64(n)], source_etype=I64), typ=POINTER if n < 2 else I64) for n in range(5)
    )
    total = builder.alloca(ir.VectorType(REGISTER_TYPE[dtype], tile.lanes))
    stop = builder.mul(end, I64(CHUNK))
    stop = builder.select(builder.icmp_signed("<", stop, elements), stop, elements)
    with counted(builder, builder.mul(first, I64(CHUNK)), stop, tile.lanes) as at:
        mask = lanes.first_lanes(builder.sub(stop, at))
        builder.store(lanes.load(lanes.element_pointer(source, at, dtype), dtype, mask), total)
        with counted(builder, I64(1), workers) as worker:
            other = builder.gep(source, [builder.mul(worker, pitch)], source_etype=ir.IntType(8))
            part = lanes.load(lanes.element_pointer(other, at, dtype), dtype, mask)
            builder.store(lanes.add(builder.load(total), part), total)
        lanes.store(builder.load(total), lanes.element_pointer(target, at, dtype), dtype, mask)
    builder.ret_void()
    return str(module)
