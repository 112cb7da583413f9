"""Operators of `ir.Value`: the instructions that they emit, and what constants give without any."""

from __future__ import annotations

import pytest

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import DOUBLE, I1, I64, constants


def lines_of(use) -> list[str]:
    """The instructions for two integers and a float."""
    function = ir.Function(ir.Module("m"), ir.FunctionType(ir.VOID, [I64, I64, DOUBLE]), "f")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    use(*function.args)
    return builder.block.lines


@pytest.mark.parametrize(("use", "line"), [
    (lambda a, b, x: a + 2, "add i64 %a0, 2"),
    (lambda a, b, x: 2 - a, "sub i64 2, %a0"),
    (lambda a, b, x: x * x, "fmul double %a2, %a2"),
    (lambda a, b, x: a < b, "icmp slt i64 %a0, %a1"),
    (lambda a, b, x: a > I64(3), "icmp sgt i64 %a0, 3"),
    (lambda a, b, x: a.equals(0), "icmp eq i64 %a0, 0"),
    (lambda a, b, x: x.differs(x), "fcmp one double %a2, %a2"),
    (lambda a, b, x: ~(a <= b), "xor i1 %v2, -1"),
    (lambda a, b, x: -x, "fneg double %a2"),
    (lambda a, b, x: 1 << a, "shl i64 1, %a0"),
])
def test_an_operator_emits_its_instruction(use, line):
    assert lines_of(use)[-1].partition(" = ")[2] == line


def test_constants_give_constants():
    assert [(I64(3) * I64(4) - 1).text, (I64(3) < I64(4)).text, (I64(3) < I64(4)).type] == ["11", "1", I1]
    with pytest.raises(TypeError, match="two constants"):
        constants(I64, [1, 2]) + constants(I64, [3, 4])


def test_a_comparison_is_neither_true_nor_false():
    with pytest.raises(TypeError, match="known when the kernel runs"):
        lines_of(lambda a, b, x: a if a < b else b)
