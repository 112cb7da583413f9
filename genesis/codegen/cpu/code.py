"""Emitting functions that are not loop nests: variables, loops and words of memory, in addition to vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TypeAlias

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import I1, I8, I64, POINTER
from genesis.codegen.cpu.vectors import counted

WORD = 8  # bytes


class Variable:
    """A local variable; the compiler keeps it in a register."""

    def __init__(self, code: Code, value: ir.Value) -> None:
        self.builder = code.builder
        self.type = value.type
        self.slot = self.builder.alloca(self.type)
        self.set(value)

    def get(self) -> ir.Value:
        return self.builder.load(self.slot, typ=self.type)

    def set(self, value: ir.Value) -> None:
        self.builder.store(value, self.slot)


class Code(Lanes):
    """Emits the function `name` of a module, with vectors of `width` lanes.

    `args` are its parameters. Without a `result` type it returns nothing, and ends where `finish` is called.
    """

    def __init__(
        self, module: ir.Module, name: str, parameters: Sequence[ir.Type], width: int, *, result: ir.Type = ir.VOID,
        internal: bool = True,
    ) -> None:
        self.function = ir.Function(module, ir.FunctionType(result, parameters), name)
        if internal:
            self.function.linkage = "internal"
        self.args: Sequence[ir.Value] = self.function.args
        super().__init__(ir.IRBuilder(self.function.append_basic_block("entry")), width)

    def finish(self, value: ir.Value | None = None) -> ir.Function:
        """Return from the function, which is complete."""
        if value is None:
            self.builder.ret_void()
        else:
            self.builder.ret(value)
        return self.function

    # ---- control flow ----
    def variable(self, value: ir.Value | int) -> Variable:
        return Variable(self, I64(value) if isinstance(value, int) else value)

    def loop(self, condition: Callable[[], ir.Value]) -> AbstractContextManager[object]:
        """`while condition():` around the body."""
        return self.builder.loop([], condition)

    def count(self, start: ir.Value | int, end: ir.Value, step: int | ir.Value = 1) -> AbstractContextManager[ir.Value]:
        """`for i in range(start, end, step)` around the body."""
        return counted(self.builder, I64(start) if isinstance(start, int) else start, end, step)

    # ---- words ----
    def at(self, pointer: ir.Value, index: ir.Value | int, size: int = 1) -> ir.Value:
        """The address of element `index` of an array of elements of `size` bytes."""
        index = I64(index) if isinstance(index, int) else index
        if size not in (1, 2, 4, 8):
            index, size = index * size, 1
        return self.builder.gep(pointer, [index], source_etype=ir.IntType(8 * size))

    def get(self, pointer: ir.Value, index: ir.Value | int = 0, type_: ir.Type = I64) -> ir.Value:
        """Element `index` of an array of integers, or of pointers."""
        size = WORD if type_ == POINTER else type_.width // 8
        return self.builder.load(self.at(pointer, index, size), typ=type_, align=size)

    def put(self, value: ir.Value, pointer: ir.Value, index: ir.Value | int = 0) -> None:
        size = value.type.width // 8
        self.builder.store(value, self.at(pointer, index, size), align=size)

    def least(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.intrinsic("smin", I64, [a, b])

    def fill(self, pointer: ir.Value, nbytes: ir.Value) -> None:
        """Zero `nbytes` bytes."""
        self.intrinsic("memset", ir.VOID, [pointer, I8(0), nbytes, I1(0)], overloads=(POINTER, I64))

    def copy(self, source: ir.Value, target: ir.Value, nbytes: ir.Value) -> None:
        """Copy bytes between ranges that are one or do not overlap."""
        self.intrinsic("memcpy", ir.VOID, [target, source, nbytes, I1(0)], overloads=(POINTER, POINTER, I64))


# ---- functions of a kernel's module, each emitted at its first use ----
# A method writes the body, and its annotations are the signature: `@emitted def half(self, code: Code, n: i64) -> i64`.
# What annotations name: to a type checker all are values, and `Functions.types` says of which type.
i1: TypeAlias = ir.Value
i64: TypeAlias = ir.Value
ptr: TypeAlias = ir.Value


class Functions:
    """The functions of one module, whose vectors have `width` lanes; annotations may name `types` of its own, too."""

    def __init__(self, module: ir.Module, width: int, **types: ir.Type) -> None:
        self.module, self.width = module, width
        self.types = {"i1": I1, "i64": I64, "ptr": POINTER, "None": ir.VOID, **types}

    def code(self, name: str, parameters: Sequence[ir.Type], result: ir.Type = ir.VOID) -> Code:
        """A function under construction."""
        return Code(self.module, name, parameters, self.width, result=result)


def emitted(body: Callable[..., ir.Value | None]) -> cached_property[ir.Function]:
    """The function of the module that `body(self, code, *arguments)` writes, returning the result if there is one."""

    def emit(self: Functions) -> ir.Function:
        _, *parameters, result = body.__annotations__.values()
        code = self.code(body.__name__.strip("_"), [self.types[name] for name in parameters], self.types[result])
        return code.finish(body(self, code, *code.args))

    emit.__doc__ = body.__doc__
    return cached_property(emit)
