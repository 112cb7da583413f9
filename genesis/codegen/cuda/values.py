"""The straight-line code of a kernel: each value is a variable, computed once, in the loop that has bound its axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from genesis.codegen.cuda.arithmetic import Arithmetic
from genesis.codegen.cuda.registers import converted, loaded, stored
from genesis.codegen.cuda.signature import Signature
from genesis.codegen.cuda.text import Text
from genesis.lower.kernel import REDUCTIONS, Access, Instruction
from genesis.ops.registry import PRIMITIVES

__all__ = ["Values"]


class Values:
    """The values that are computed where code is being written; value `n` is the variable `vn`."""

    def __init__(self, signature: Signature, text: Text, index: Mapping[int, str]) -> None:
        self.signature, self.text, self.index = signature, text, index
        self.instructions = signature.kernel.instructions
        self.scopes: list[set[int]] = [set()]
        self.near: dict[int, str] = {}  # instruction -> its element at the point at hand, where that was loaded ahead

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is valid inside only."""
        self.scopes.append(set())
        yield
        self.scopes.pop()

    def is_computed(self, n: int) -> bool:
        return any(n in scope for scope in self.scopes)

    def define(self, n: int, expression: str) -> None:
        """Assign `expression` to the variable of value `n`."""
        self.text.line(f"v{n} = {expression}")
        self.scopes[-1].add(n)

    def hoist(self, needed: Sequence[int]) -> None:
        """Compute here the needed values that vary over no inner loop."""
        bound = self.index.keys()
        for n in needed:
            i = self.instructions[n]
            ready = i.varies <= bound and not self.is_computed(n) and all(map(self.is_computed, i.args))
            if ready and i.name not in REDUCTIONS:
                self.define(n, self._expression(n, i))

    # ---- one value ----

    def _expression(self, n: int, i: Instruction) -> str:
        args = [f"v{a}" for a in i.args]
        dtype = i.dtype.name
        if i.name == "word":
            (word,) = self._words(i)
            double = self.signature.kernel.words[int(i.attr("words")[1:])].is_double
            return converted(word, "float64" if double else "int64", dtype)
        if i.name in ("load", "load_at"):
            return loaded(self.element(n), dtype)
        if i.name == "index":
            return converted(self._flat(i), "int64", dtype)
        if i.name in ("uniform", "normal"):
            return f"{i.name}_{dtype}({args[0]}, {args[1]} + {self._flat(i)})"
        if i.name == "cast":
            return converted(args[0], i.attr("source"), dtype)
        if i.name == "check_index":
            check = "wrapped_index" if i.attr("wrap") else "checked_index"
            return f"{check}({', '.join([args[0], *self._words(i)])})"
        return Arithmetic(dtype, dict(i.attrs).get("operand")).apply(i.name, PRIMITIVES[i.name].emit, args)

    def _words(self, i: Instruction) -> list[str]:
        return [self.signature.name(w) for w in i.attr("words").split(",")]

    def _offset(self, access: Access) -> str:
        """The offset of an access' element at the point at hand from its pointer."""
        terms = []
        for axis, stride in enumerate(access.strides):
            if stride != 0 and self.index[axis] != "0":
                step = self.signature.name(stride) if isinstance(stride, str) else str(stride)
                terms.append(self.index[axis] if stride == 1 else f"{self.index[axis]} * {step}")
        return " + ".join(terms)

    def _flat(self, i: Instruction) -> str:
        """The element's number, of a value that is not in memory."""
        assert i.access is not None
        return " + ".join(filter(None, (self.signature.name(i.access.pointer), self._offset(i.access))))

    def location(self, n: int) -> tuple[str, str]:
        """The element of instruction `n` at the point at hand: a pointer, and the offset from it."""
        i = self.instructions[n]
        assert i.access is not None
        indirect = f"v{i.args[0]} * {self._words(i)[0]}" if i.name in ("load_at", "scatter") else ""
        offset = " + ".join(filter(None, (indirect, self._offset(i.access)))) or "0"
        return self.signature.name(i.access.pointer), offset

    def element(self, n: int) -> str:
        """The element of instruction `n` at the point at hand."""
        return self.near.get(n) or "{}[{}]".format(*self.location(n))

    # ---- effects ----

    def store(self, n: int, value: str) -> None:
        """Store `value` where instruction `n` says."""
        self.text.line(f"{self.element(n)} = {stored(value, self.instructions[n].dtype.name)}")

    def effect(self, n: int) -> None:
        """A store or a scatter of computed values."""
        i, line = self.instructions[n], self.text.line
        value, dtype = f"v{i.args[-1]}", i.dtype.name
        # Atomic where threads may meet; another scatter is in one thread, in order, so that the last value wins.
        if i.name == "scatter" and self.signature.is_atomic:
            line(f"cuda.atomic.add({', '.join(self.location(n))}, {value})")
            return
        if i.name == "scatter" and i.attr("mode") == "add":
            line(f"total = {loaded(self.element(n), dtype)}")
            value = Arithmetic(dtype).apply("add", None, ["total", value])
        self.store(n, value)
