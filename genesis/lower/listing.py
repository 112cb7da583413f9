"""A kernel as readable pseudo-code: loops, index maps with their numbers, and the user's lines."""

from __future__ import annotations

from collections.abc import Callable

from genesis.lower.build import KernelCall
from genesis.lower.kernel import REDUCTIONS, Access, Instruction, KernelArg

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floor_divide": "//", "remainder": "%", "pow": "**", "eq": "==",
    "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "logical_and": "and", "logical_or": "or",
}
_AXIS_NAMES = "ijklmnpq"


def listing(call: KernelCall, note: Callable[[int], str] = lambda index: "") -> str:
    """The kernel of `call` as indented pseudo-Python; `note(value)` may add a comment, such as the user's line."""
    return _Listing(call, note).text()


_SIGNS = {"add": "+=", "mul": "*=", "maximum": "max=", "minimum": "min="}  # of scatters


class _Listing:
    def __init__(self, call: KernelCall, note: Callable[[int], str]) -> None:
        self.call = call
        self.kernel = call.kernel
        self.note = note
        self.lines: list[str] = []
        self.said: set[str] = set()
        self.done: set[int] = set()  # values that the text has defined
        self.names = {axis: _AXIS_NAMES[axis] if axis < len(_AXIS_NAMES) else f"x{axis}" for axis in range(len(call.extents))}

    def text(self) -> str:
        kernel = self.kernel
        self.lines.append(f"def {kernel.name}():")
        depth = self._loops([a for a, (_, reduced) in enumerate(kernel.axes) if not reduced], 1, "parallel")
        inner = [a for a, (_, reduced) in enumerate(kernel.axes) if reduced]
        for step in kernel.steps:
            targets = kernel.targets(step)
            needed = kernel.needed(targets)
            self._values([n for n in needed if kernel.instructions[n].varies.isdisjoint(inner)], depth)
            deeper = self._loops(inner, depth, "reduced")
            self._values(needed, deeper, again=bool(inner))  # each pass over a row recomputes its values
            for n in targets:
                self._effect(n, deeper)
        for n, i in enumerate(kernel.instructions):
            if (i.level in ("row", "uniform") and i.name == "store") or (i.name in REDUCTIONS and i.attr("over") == "row"):
                self._values(kernel.needed([n]), depth)
                self._effect(n, depth)
        for level, axes in (("final", []), ("column", inner)):
            stores = [n for n, i in enumerate(kernel.instructions) if i.level == level and i.name == "store"]
            if stores:
                self.lines.append("    # then once, over all workers")
                depth = self._loops(axes, 1, "finished")
                self._values([m for n in stores for m in kernel.needed([n])], depth)
                for n in stores:
                    self._effect(n, depth)
        return "\n".join(self.lines)

    def _loops(self, axes: list[int], depth: int, role: str) -> int:
        for axis in axes:
            way = {self.kernel.tiled: ", tiled with lanes", self.kernel.lane: ", a vector at a time"}.get(axis, "")
            self.lines.append(f"{'    ' * depth}for {self.names[axis]} in range({self.call.extents[axis]}):  # {role}{way}")
            depth += 1
        return depth

    def _values(self, numbers: list[int], depth: int, again: bool = False) -> None:
        for n in [n for n in dict.fromkeys(numbers) if n not in self.done]:
            i = self.kernel.instructions[n]
            self.done.update(() if again else (n,))
            if i.name not in REDUCTIONS and i.name != "word":
                self._line(f"v{n} = {self._expression(i)}", self.kernel.origins[n], depth)

    def _effect(self, n: int, depth: int) -> None:
        i, origin = self.kernel.instructions[n], self.kernel.origins[n]
        if i.name in REDUCTIONS:
            self._line(f"v{n} = {i.name}(v{n}, {self._operand(i.args[0])})", origin, depth)
        elif i.name == "scatter":
            sign = _SIGNS.get(i.attr("mode"), "=")
            element = self._element(i.access, self._operand(i.args[0]), i)
            self._line(f"{element} {sign} {self._operand(i.args[1])}", origin, depth)
        elif i.name == "scan":
            *factors, last = map(self._operand, i.args)
            so_far = " * ".join([*factors, f"v{n}"])
            self._line(f"v{n} = {so_far} {'*' if i.attr('mode') == 'prod' else '+'} {last}", origin, depth)
            self._line(f"{self._element(i.access)} = v{n}", -1, depth)
        else:
            self._line(f"{self._element(i.access)} = {self._operand(i.args[0])}", -1, depth)

    def _line(self, text: str, origin: int, depth: int) -> None:
        comment = self.note(origin) if origin >= 0 else ""
        fresh = comment and comment not in self.said
        self.said.add(comment)
        self.lines.append("    " * depth + text + (f"  # {comment}" if fresh else ""))

    def _operand(self, n: int) -> str:
        i = self.kernel.instructions[n]
        if i.name != "word":
            return f"v{n}"
        word = self._word(i.attr("words"))
        return str(word.value) if word.kind == "constant" else f"scalar{word.value}"

    def _expression(self, i: Instruction) -> str:
        args = [self._operand(a) for a in i.args]
        if i.name == "load":
            return self._element(i.access)
        if i.name == "load_at":
            return self._element(i.access, args[0], i)
        if i.name == "index":
            assert i.access is not None
            return self._offset(i.access, self.kernel.words[i.access.pointer].value)
        if i.name in _INFIX and len(args) == 2:
            return f"{args[0]} {_INFIX[i.name]} {args[1]}"
        if i.name == "cast":
            return f"{i.dtype.name}({args[0]})"
        return f"{i.name}({', '.join(args)})"

    def _element(self, access: Access | None, indirect: str | None = None, i: Instruction | None = None) -> str:
        assert access is not None
        pointer = self.kernel.words[access.pointer]
        offset = self._offset(access, pointer.extra // access.dtype.itemsize)
        if indirect is not None and i is not None:
            along = i.attr("along")
            moved = indirect if along == 1 else f"{self._word(along).value}*{indirect}"
            offset = moved + ("" if offset == "0" else f" + {offset}")
        return f"%{pointer.value}[{offset}]"

    def _word(self, name: str) -> KernelArg:
        return self.kernel.words[int(name.split(",")[0][1:])]

    def _offset(self, access: Access, first: int) -> str:
        terms = [str(first)] if first else []
        for axis, stride in enumerate(access.strides):
            step = self._word(stride).value if isinstance(stride, str) else stride
            if step:
                terms.append(self.names[axis] if step == 1 else f"{step}*{self.names[axis]}")
        return " + ".join(terms) or "0"
