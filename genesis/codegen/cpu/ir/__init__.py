"""LLVM IR as text: types, values, blocks, and a builder with the instructions that kernels need.

Names are those of `llvmlite.ir`, which makes an object of each instruction and prints all of them at the end. That took two
thirds of the time of emitting a kernel. Here an instruction becomes text at once. LLVM checks it when it parses the module.
"""

from genesis.codegen.cpu.ir.builder import IRBuilder
from genesis.codegen.cpu.ir.functions import Block, Function, Module, Phi
from genesis.codegen.cpu.ir.types import (
    BFLOAT, DOUBLE, FLOAT, HALF, POINTER, VOID, ArrayType, Constant, FunctionPointer, FunctionType, IntType, Type, Value,
    VectorType,
)

__all__ = [
    "BFLOAT", "DOUBLE", "FLOAT", "HALF", "POINTER", "VOID", "ArrayType", "Block", "Constant", "Function", "FunctionPointer",
    "FunctionType", "IRBuilder", "IntType", "Module", "Phi", "Type", "Value", "VectorType",
]
