"""Functions of a kernel's module, each emitted at its first use.

A method writes the body, and its annotations are the signature: `@emitted def half(self, code: Code, n: i64) -> i64`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.registers import I1, I64, POINTER

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
