"""Guards as instructions: the lines of a check, in machine code.

A line such as `if (a0 := t0[0]).__class__ is not k0: return 2` becomes an ITEM and a CLASS. The condition of a line of another
form stays a Python function, which an instruction calls. If the instructions return MISSED, the check itself runs: it says
which guard has failed, or that none has.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import weakref
from collections.abc import Mapping, Sequence
from ctypes import addressof
from itertools import combinations
from typing import Any, cast

from genesis.capture.guards.classes import NUMBERS_DIFFER
from genesis.capture.guards.tensor_guards import TensorGuard, unlike
from genesis.runtime.instructions import Constant, Instructions, Register
from genesis.tensor.handle import Tensor


class NativeCheck:
    """Instructions that go on if none of the lines passed to `add` would return.

    Attributes:
        code: the instructions; registers 0 and 1 are the call's `args` and `kwargs`.
        names: the registers of the names that lines have assigned.
        arrays: the registers of the arrays of tensors in the rows of `guarded_arrays`.
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
                text, _, _ = lines[statement.lineno - 1].removeprefix("if ").rpartition(": return ")
                name = dict_that_decides(text, constants)
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
        code, register, value, is_constant = self.code, self._register, self._value, self._is_constant
        match condition:
            case ast.BoolOp(ast.Or(), conditions):
                for one in conditions:
                    self._require_false(one)
            case ast.BoolOp(_, [first, *_]):
                self._require_not_all(first, condition)
            case ast.Name() | ast.Attribute():
                code.emit("FALSE", register(condition))
            case ast.UnaryOp(_, ast.Call(ast.Attribute(ast.Name(ids), "isdisjoint"), [others])) if ids in self._ids:
                self._require_outside(self._ids[ids], others)
            case ast.Compare(ast.Attribute(ast.NamedExpr(ast.Name(name), ast.Call(ast.Name("guarded_arrays"), [rows])))):
                self._lists[name] = self._require_tensors(self._value(rows))
            case ast.Compare(ast.Attribute(owner, "__class__"), [ast.IsNot()], [kind]) if is_constant(kind):
                code.emit("CLASS", register(owner), Constant(value(kind)))
            case ast.Compare(ast.Attribute(owner, name), [ast.IsNot()], [same]) if is_constant(owner) and is_constant(same):
                code.require_attribute(value(owner), name, value(same))
            case ast.Compare(left, [ast.IsNot()], [right]):
                self._compare("IS", "SAME", left, right)
            case ast.Compare(left, [ast.Is()], [right]):
                self._compare("IS_NOT", "APART", left, right)
            case ast.Compare(ast.Call(ast.Name("id"), [one]), [ast.In()], [ids]):
                self._require_outside([register(one)], ids)
            case ast.Compare(ast.Call(ast.Name("len"), [ast.NamedExpr(ast.Name(name), ast.Set(ids))]), [ast.NotEq()]):
                self._ids[name] = registers = [register(one.args[0]) for one in ids if isinstance(one, ast.Call)]
                for pair in combinations(registers, 2):  # ids of distinct objects
                    code.emit("APART", *pair)
            case ast.Compare(ast.Call(ast.Name("len"), [things]), [ast.NotEq()], [length]) if is_constant(things):
                code.require_size(value(things), value(length))
            case ast.Compare(ast.Call(ast.Name("len"), [things]), [ast.NotEq()], [length]):
                code.emit("SIZE", register(things), value(length))
            case ast.Compare(left, [ast.NotEq()], [right]) if is_constant(right) and not isinstance(left, ast.List):
                code.emit("EQUAL", register(left), Constant(value(right)))
            case _:
                code.emit("FALSE", self._by_python(condition))

    def _compare(self, with_constant: str, with_register: str, left: ast.expr, right: ast.expr) -> None:
        if self._is_constant(right):
            self.code.emit(with_constant, self._register(left), Constant(self._value(right)))
        else:
            self.code.emit(with_register, self._register(left), self._register(right))

    def _require_not_all(self, first: ast.expr, condition: ast.expr) -> None:
        """`x is not k and f(x, k)`: no call if the object is the same. Or so for a few keys of a dict."""
        if ast.unparse(first) == NUMBERS_DIFFER and (known := cast("list[int | None]", self._constants["learned"])):
            numbers: Any = self._constants["numbers"]
            for address, number in zip([addressof(word) for word in numbers], known, strict=True):
                # Only a comparison tells whether one that has no number has changed.
                self._require_unless(None if number is None else self.code.emit("SKIP_HALF", address, number, 0), condition)
            return
        match first:
            case ast.Compare(left, [ast.IsNot()], [right]) if self._is_constant(right):
                skip = self.code.emit("SKIP_IS", self._register(left), Constant(self._value(right)), 0)
                self._require_unless(skip, condition)
            case ast.Call(ast.Name("any"), [ast.Call(_, [ast.Name("is_not"), listed, keys])]) if len(self._value(keys)) <= _FEW:
                code, found = self.code, self.code.call(tuple, self._register(listed))
                others = [code.emit("SKIP_APART", code.item(found, k), code.constant(key), 0)
                          for k, key in enumerate(self._value(keys))]
                skip = code.emit("SKIP_IS", code.constant(None), None, 0)
                for other in others:
                    code.skip_from(other)
                self._require_unless(skip, condition)
            case _:
                self._require_unless(None, condition)

    def _require_unless(self, skip: int | None, condition: ast.expr) -> None:
        self.code.emit("FALSE", self._by_python(condition))
        if skip is not None:
            self.code.skip_from(skip)

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

    def _require_tensors(self, rows: Sequence[TensorGuard]) -> list[Register]:
        """As `guarded_arrays`. Arrays stay in registers; all else goes through one scratch register."""
        code, looked, arrays = self.code, self._looked_at, list[Register]()
        for row in rows:
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
        return arrays

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
        match expression:
            case ast.NamedExpr(ast.Name(name), value):
                register = self.names[name] = self._register(value)
                return register
            case ast.Name(name) if name in self.names:
                return self.names[name]
            case ast.Name() | ast.Constant():
                return self.code.constant(self._value(expression))
            case ast.Attribute(owner, name):
                return self.code.attribute(self._register(owner), name)
            case ast.Subscript(ast.Name(name), index) if name in self._lists:
                return self._lists[name][self._value(index)]
            case ast.Subscript(owner, index) if self._is_constant(index):
                return self.code.item(self._register(owner), self._value(index))
            case ast.BoolOp(_, [first, *_]):  # `array.memory or realize(array)`: a pending array is left to the check
                register = self._register(first)
                self.code.emit("IS_NOT", register, None)
                return register
        return self._by_python(expression)


def _is_alive(reference: weakref.ref[Any]) -> bool:
    return reference() is not None


# ---- conditions that only compare a dict's contents with former contents ----
# These are compared by identity, or are numbers or strings, so they cannot change without a change of the dict: the conditions
# are skipped as long as its version is the same.

_FORMS = [
    "DICT[KEY] is not THEN", "DICT.get(KEY) is not THEN", "(v := DICT[KEY]) is not THEN and differs(v, THEN)",
    "not DICT.keys().isdisjoint(THEN)", "any(map(is_not, map(DICT.get, THEN), THEN))", "len(DICT) != SIZE",
    "len(DICT) != SIZE or any(map(is_not, DICT.values(), THEN))",
    "len(DICT) != SIZE or any(map(is_not, DICT, THEN)) and not all(map(same, DICT, THEN))",
]
_FEW = 16  # keys, which are compared one by one
_PARTS = {"KEY": r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+)""", "THEN": r"(\w+)", "SIZE": r"\d+"}


@functools.cache
def _pattern(form: str) -> re.Pattern[str]:
    text = re.escape(form).replace("DICT", r"(?P<dict>\w+)", 1).replace("DICT", "(?P=dict)")
    for part, pattern in _PARTS.items():
        text = text.replace(part, pattern)
    return re.compile(text)


def dict_that_decides(condition: str, constants: Mapping[str, object]) -> str | None:
    """The name of the dict (a constant) that alone decides a condition, if there is one."""
    for match in filter(None, [_pattern(form).fullmatch(condition) for form in _FORMS]):
        name, *then = match["dict"], *match.groups()
        if type(constants.get(name)) is dict and constants.keys() >= {*then}:
            return name
    return None
