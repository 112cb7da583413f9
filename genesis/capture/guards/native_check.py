"""Guards as instructions: the lines of a check, in machine code.

A line such as `if (a0 := t0[0]).__class__ is not k0: return 2` becomes an ITEM and a CLASS. The condition of a line of another
form stays a Python function, which an instruction calls. If the instructions return MISSED, the check itself runs: it says
which guard has failed, or that none has.
"""

from __future__ import annotations

import ast
import builtins
import weakref
from collections.abc import Mapping, Sequence
from ctypes import addressof
from typing import Any, cast

from genesis.capture.guards.classes import NUMBERS_DIFFER
from genesis.capture.guards.deciding_dict import dict_that_decides
from genesis.capture.guards.tensor_guards import TensorGuard, TensorGuards, unlike
from genesis.runtime.instructions import Constant, Instructions, Register
from genesis.tensor.handle import Tensor


class NativeCheck:
    """Instructions that go on if none of the lines passed to `add` would return.

    Attributes:
        code: the instructions; registers 0 and 1 are the call's `args` and `kwargs`.
        names: the registers of the names that lines have assigned.
        arrays: the registers of the arrays of tensors that TensorGuards guard.
    """

    def __init__(self, code: Instructions) -> None:
        self.code = code
        self.names = {"args": Register(0), "kwargs": Register(1)}
        self.arrays: dict[Tensor, Register] = {}
        self._constants: Mapping[str, object] = {}
        self._lists: dict[str, list[Register]] = {}
        self._ids: dict[str, list[Register]] = {}  # the objects whose ids are in a named set
        self._looked_at = code.register()

    def add(self, lines: Sequence[str], constants: Mapping[str, object]) -> None:
        """Add lines, whose names are those of earlier lines and of `constants`."""
        self._constants = constants
        about: dict[str, list[ast.expr]] = {}  # conditions that a dict alone decides, by the dict's name
        for statement in ast.parse("\n".join(lines)).body:
            if isinstance(statement, ast.If):  # it returns, or realizes a pending array, which is left to the check
                name = dict_that_decides(statement.test, constants)
                if name is None:
                    self._require_false(statement.test)
                else:
                    about.setdefault(name, []).append(statement.test)
            else:
                assert isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
                self.names[statement.targets[0].id] = self._register(statement.value)
        for name, conditions in about.items():
            with self.code.unless_passed(self.code.constant(constants[name])):
                for condition in conditions:
                    self._require_false(condition)

    def evaluate(self, expression: str) -> Register:
        """The register of an expression's value."""
        return self._register(ast.parse(expression, mode="eval").body)

    # ---- conditions ----

    def _require_false(self, condition: ast.expr) -> None:
        if isinstance(condition, ast.BoolOp) and isinstance(condition.op, ast.Or):
            for one in condition.values:
                self._require_false(one)
        elif isinstance(condition, ast.BoolOp):
            self._require_not_all(condition)
        elif isinstance(condition, ast.Compare) and len(condition.ops) == 1:
            self._require_other(condition, condition.left, condition.ops[0], condition.comparators[0])
        elif isinstance(condition, ast.Name | ast.Attribute):
            self.code.emit("FALSE", self._register(condition))
        elif isinstance(condition, ast.UnaryOp) and (registers := self._ids_in(condition.operand)) is not None:
            self._require_outside(registers, condition.operand.args[0])  # type: ignore[attr-defined]
        else:
            self.code.emit("FALSE", self._by_python(condition))

    def _require_not_all(self, condition: ast.BoolOp) -> None:
        """`x is not k and f(x, k)`: no call if the object is the same."""
        first = condition.values[0]
        if ast.unparse(first) == NUMBERS_DIFFER and (known := cast("list[int | None]", self._constants["learned"])):
            numbers: Any = self._constants["numbers"]
            for address, number in zip([addressof(word) for word in numbers], known, strict=True):
                if number is None:  # only a comparison tells whether it has changed
                    self.code.emit("FALSE", self._by_python(condition))
                    continue
                skip = self.code.emit("SKIP_HALF", address, number, 0)
                self.code.emit("FALSE", self._by_python(condition))
                self.code.skip_from(skip)
        elif isinstance(first, ast.Compare) and isinstance(first.ops[0], ast.IsNot) and self._is_constant(first.comparators[0]):
            skip = self.code.emit("SKIP_IS", self._register(first.left), Constant(self._value(first.comparators[0])), 0)
            self.code.emit("FALSE", self._by_python(condition))
            self.code.skip_from(skip)
        else:
            self.code.emit("FALSE", self._by_python(condition))

    def _require_other(self, whole: ast.Compare, left: ast.expr, how: ast.cmpop, right: ast.expr) -> None:
        code = self.code
        guards = self._tensor_guards(left)
        if guards is not None:
            self._require_tensors(guards)
        elif isinstance(how, ast.IsNot | ast.Is):
            holds = isinstance(how, ast.IsNot)
            if holds and isinstance(left, ast.Attribute) and left.attr == "__class__" and self._is_constant(right):
                code.emit("CLASS", self._register(left.value), Constant(self._value(right)))
            elif holds and isinstance(left, ast.Attribute) and self._is_constant(left.value) and self._is_constant(right):
                code.require_attribute(self._value(left.value), left.attr, self._value(right))
            elif self._is_constant(right):
                code.emit("IS" if holds else "IS_NOT", self._register(left), Constant(self._value(right)))
            else:
                code.emit("SAME" if holds else "APART", self._register(left), self._register(right))
        elif isinstance(how, ast.In) and _is_call(left, "id"):
            self._require_outside([self._register(left.args[0])], right)  # type: ignore[attr-defined]
        elif isinstance(how, ast.NotEq) and _is_call(left, "len"):
            self._require_length(left.args[0], right)  # type: ignore[attr-defined]
        elif isinstance(how, ast.NotEq) and self._is_constant(right) and not isinstance(left, ast.List):
            code.emit("EQUAL", self._register(left), Constant(self._value(right)))
        else:
            self.code.emit("FALSE", self._by_python(whole))

    def _require_length(self, things: ast.expr, length: ast.expr) -> None:
        if isinstance(things, ast.NamedExpr) and isinstance(things.value, ast.Set):  # ids of distinct objects
            registers = [self._register(one.args[0]) for one in things.value.elts if isinstance(one, ast.Call)]
            self._ids[things.target.id] = registers
            for k, register in enumerate(registers):
                for other in registers[:k]:
                    self.code.emit("APART", register, other)
        else:
            if self._is_constant(things):
                self.code.require_size(self._value(things), self._value(length))
            else:
                self.code.emit("SIZE", self._register(things), self._value(length))

    def _ids_in(self, expression: ast.expr) -> list[Register] | None:
        """The objects whose ids are in the set of `ids.isdisjoint(others)`, if that is the expression."""
        match expression:
            case ast.Call(ast.Attribute(ast.Name(name), "isdisjoint")):
                return self._ids.get(name)
        return None

    def _require_outside(self, registers: Sequence[Register], ids: ast.expr) -> None:
        """Require that no object has one of these ids, whose owners live as long as the entry."""
        for register in registers:
            for address in self._value(ids):
                self.code.emit("IS_NOT", register, address)

    def _by_python(self, expression: ast.expr) -> Register:
        """The register of an expression's value, computed by Python."""
        named = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        known = sorted(named & self.names.keys())
        whole: Any = ast.parse(f"lambda {', '.join(known)}: None", mode="eval")
        whole.body.body = expression
        function = eval(compile(whole, "<guard>", "eval"), {**self._constants})
        return self.code.call(function, *[self.names[name] for name in known])

    def _tensor_guards(self, expression: ast.expr) -> TensorGuards | None:
        """The guards in `(h := guards.arrays()).__class__`, if that is the expression."""
        match expression:
            case ast.Attribute(ast.NamedExpr(ast.Name(name), ast.Call(ast.Attribute(ast.Name(constant), "arrays")))):
                guards = self._constants[constant]
                assert isinstance(guards, TensorGuards)
                self._lists[name] = []
                return guards
        return None

    def _require_tensors(self, guards: TensorGuards) -> None:
        """As `TensorGuards.arrays`. Arrays stay in registers; all else goes through one scratch register."""
        code, looked = self.code, self._looked_at
        [arrays] = [arrays for arrays in self._lists.values() if not arrays]
        for row in guards.rows:
            tensor = code.constant(row.tensor)
            array = code.attribute(tensor, "_array")
            arrays.append(array)
            self.arrays[row.tensor] = array
            code.attribute(array, "node", looked)
            skip = code.emit("SKIP_IS", looked, row.node, 0)
            code.emit("FALSE", code.call(unlike, looked, code.constant(row.node)))
            code.skip_from(skip)
            for name, wanted in [("_base", None), ("_requires_grad", row.requires_grad)]:
                code.attribute(tensor, name, looked)
                code.emit("IS", looked, Constant(wanted))
            for name in ("_hooks", "_post_hooks", "_node_hooks") if row.is_bare else ():
                code.attribute(tensor, name, looked)
                code.emit("FALSE", looked)
            if row.is_read:
                self._require_memory(array, row)
        code.emit("MOVE", looked, code.constant(None))

    def _require_memory(self, array: Register, row: TensorGuard) -> None:
        code, looked = self.code, self._looked_at
        code.attribute(array, "memory", looked)
        code.attribute(looked, "strides", looked)
        code.emit("EQUAL", looked, Constant(row.strides))
        if not row.is_private:
            return
        for name in ("_owner", "_flat"):
            for step in ("memory", "buffer", name):
                code.attribute(array if step == "memory" else looked, step, looked)
            if name == "_owner":
                code.emit("IS", looked, None)
        skip = code.emit("SKIP_IS", looked, None, 0)
        code.emit("FALSE", code.call(_is_alive, looked))  # a NumPy view of it may be gone
        code.skip_from(skip)

    # ---- values ----

    def _is_constant(self, expression: ast.expr) -> bool:
        return isinstance(expression, ast.Constant) or (
            isinstance(expression, ast.Name) and expression.id not in self.names)

    def _value(self, expression: ast.expr) -> Any:
        if isinstance(expression, ast.Constant):
            return expression.value
        assert isinstance(expression, ast.Name)
        return self._constants[expression.id] if expression.id in self._constants else getattr(builtins, expression.id)

    def _register(self, expression: ast.expr) -> Register:
        """The register of an expression's value."""
        code = self.code
        if isinstance(expression, ast.NamedExpr):
            register = self.names[expression.target.id] = self._register(expression.value)
            return register
        if isinstance(expression, ast.Name | ast.Constant):
            if isinstance(expression, ast.Name) and expression.id in self.names:
                return self.names[expression.id]
            return code.constant(self._value(expression))
        if isinstance(expression, ast.Attribute):
            return code.attribute(self._register(expression.value), expression.attr)
        if isinstance(expression, ast.Subscript) and isinstance(expression.value, ast.Name) and (
            expression.value.id in self._lists
        ):
            return self._lists[expression.value.id][self._value(expression.slice)]
        if isinstance(expression, ast.Subscript) and self._is_constant(expression.slice):
            return code.item(self._register(expression.value), self._value(expression.slice))
        if isinstance(expression, ast.BoolOp):  # `array.memory or realize(array)`: a pending array is left to the check
            register = self._register(expression.values[0])
            code.emit("IS_NOT", register, None)
            return register
        return self._by_python(expression)


def _is_alive(reference: weakref.ref[Any]) -> bool:
    return reference() is not None


def _is_call(expression: ast.expr, name: str) -> bool:
    return isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name) and expression.func.id == name
