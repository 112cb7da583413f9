"""The straight-line part of a kernel: each value a variable, computed once in the loop that has bound what it varies over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from genesis.codegen.cuda.arithmetic import Arithmetic
from genesis.codegen.cuda.registers import converted, loaded, stored
from genesis.lower.kernel import REDUCTIONS, Access, Instruction
from genesis.ops.registry import PRIMITIVES

if TYPE_CHECKING:
    from genesis.codegen.cuda.emit import Emitter

__all__ = ["Values"]


class Values:
    """Which values are in variables at the place that is being written; value `n` is the variable `vn`."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.scopes: list[set[int]] = [set()]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is known inside only."""
        self.scopes.append(set())
        yield
        self.scopes.pop()

    def held(self, n: int) -> bool:
        return any(n in scope for scope in self.scopes)

    def define(self, n: int, expression: str) -> None:
        """Value `n` is `expression`."""
        self.emitter.text.line(f"v{n} = {expression}")
        self.scopes[-1].add(n)

    def hoist(self, needed: Sequence[int]) -> None:
        """Compute here what varies over no loop further in."""
        bound = self.emitter.index.keys()
        for n in needed:
            i = self.emitter.kernel.instructions[n]
            if i.name not in REDUCTIONS and i.varies <= bound and not self.held(n) and all(self.held(a) for a in i.args):
                self.define(n, self._expression(i))

    # ---- one value ----

    def _expression(self, i: Instruction) -> str:
        args = [f"v{a}" for a in i.args]
        dtype = i.dtype.name
        signature = self.emitter.signature
        if i.name == "word":
            (word,) = self._words(i)
            double = signature.kernel.words[int(i.attr("words")[1:])].is_double
            return converted(word, "float64" if double else "int64", dtype)
        if i.name == "load":
            return loaded(self.element(i.access), dtype)
        if i.name == "load_at":
            return loaded(self.element(i.access, f"{args[0]} * {self._words(i)[0]}"), dtype)
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
        return [self.emitter.signature.name(w) for w in i.attr("words").split(",")]

    def _offset(self, access: Access) -> str:
        """The number of an access' element at the point at hand, from its pointer's."""
        terms = []
        for axis, stride in enumerate(access.strides):
            if stride != 0:
                step = self.emitter.signature.name(stride) if isinstance(stride, str) else str(stride)
                terms.append(self.emitter.index[axis] if stride == 1 else f"{self.emitter.index[axis]} * {step}")
        return " + ".join(terms)

    def _flat(self, i: Instruction) -> str:
        """The number of an element of a value that lies nowhere."""
        assert i.access is not None
        return " + ".join(filter(None, (self.emitter.signature.name(i.access.pointer), self._offset(i.access))))

    def element(self, access: Access | None, indirect: str = "") -> str:
        """An element of memory at the point at hand."""
        assert access is not None
        offset = " + ".join(filter(None, (indirect, self._offset(access)))) or "0"
        return f"{self.emitter.signature.name(access.pointer)}[{offset}]"

    # ---- effects ----

    def store(self, i: Instruction, value: str) -> None:
        """`value` where `i` puts it."""
        self.emitter.text.line(f"{self.element(i.access)} = {stored(value, i.dtype.name)}")

    def effect(self, i: Instruction) -> None:
        """A store or a scatter, of values that are known."""
        line, signature = self.emitter.text.line, self.emitter.signature
        if i.name == "store":
            self.store(i, f"v{i.args[0]}")
            return
        assert i.access is not None
        position, value = (f"v{a}" for a in i.args)
        place = f"{position} * {self._words(i)[0]}"
        if signature.is_atomic:
            offset = " + ".join(filter(None, (place, self._offset(i.access))))
            line(f"cuda.atomic.add({signature.name(i.access.pointer)}, {offset}, {value})")
            return
        element = self.element(i.access, place)
        if i.attr("mode") == "add":
            dtype = i.dtype.name
            line(f"total = {loaded(element, dtype)}")
            value = Arithmetic(dtype).apply("add", None, ["total", value])
        line(f"{element} = {stored(value, i.dtype.name)}")
