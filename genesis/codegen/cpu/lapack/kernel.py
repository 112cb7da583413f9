"""The kernel of matrix functions, one for each dtype: it interprets a table of steps for each matrix of a batch.

    words       {steps, their number, threads, get, set, {lock, users, threads before}, fault, site}
    step        {kind, its words ..}
    pointer     {base, bytes to the next matrix's, bytes to the next worker's}: three words of a step

A routine's arguments are pointers. Copies take the byte strides of rows and columns on both sides, and write zeros outside of
a triangle that is kept. While a launch runs, BLAS is limited to `threads` threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lapack.householder import Householder
from genesis.codegen.cpu.lapack.panels import Panels
from genesis.codegen.cpu.lapack.routines import ARGUMENTS
from genesis.codegen.cpu.lapack.rows import Rows
from genesis.codegen.cpu.lapack.tiles import Tiles
from genesis.codegen.cpu.registers import DOUBLE, FLOAT, I1, I32, I64, PART, POINTER
from genesis.codegen.cpu.tiling import vector_bytes
from genesis.codegen.cpu.word_kernel import WordKernel, word_types
from genesis.runtime.kernel_cache import KernelSource

POINTER_WORDS = 3
COMMON = ("call", "copy", "check", "numbers", "reals", "zero", "product", "logarithm", "tidy", "normalize",
          "end_below")  # steps that all kernels have
FAMILIES = {  # those that only a family's kernels have
    "": (),
    "elimination": ("panel", "exchange", "substitute", "permute", "transpose", "roots"),
    "householder": ("factor", "expand", "mirror", "tridiagonal", "rescale"),
}
OWNERS = {  # of the functions that steps of these names call
    "panel": Panels, "exchange": Rows, "substitute": Tiles, "permute": Rows, "transpose": Rows, "roots": Tiles,
    "factor": Householder, "expand": Householder, "mirror": Householder, "tridiagonal": Householder,
}
STEPS = (*COMMON, *chain.from_iterable(FAMILIES.values()))
ALL, LOWER, UPPER = range(3)  # what a copy keeps
TILE = 16
VERSION = 6
WIDTH = 4  # lanes of what is not tiled
WORDS = word_types(("steps", "count", "threads", "get", "set", "state", "fault", "site"), ("steps", "state", "fault"))


def source(dtype: str, family: str = "") -> KernelSource:
    """The kernel for matrices of a dtype; one of a family has its steps too."""
    name = f"genesis_{family}_{dtype}_{vector_bytes()}" if family else f"genesis_lapack_{dtype}"
    return KernelSource(name, f"{name} {VERSION}", lambda: _Kernel(name, dtype, family).text())


class _Kernel(WordKernel):
    """Emits the kernel; the method `_NAME` emits the step called NAME, unless it calls a function of that name."""

    def __init__(self, name: str, dtype: str, family: str) -> None:
        super().__init__(name, WORDS, WIDTH)
        self.part = PART.get(dtype, dtype)
        self.is_complex = dtype in PART
        self.real, self.part_bytes = (FLOAT, 4) if self.part == "float32" else (DOUBLE, 8)
        self.bytes = self.part_bytes * (1 + self.is_complex)
        self.steps = {*COMMON, *FAMILIES[family]}
        tiles, rows = Tiles(self.module, self.part), Rows(self.module, self.part)
        self.householder = Householder(rows)
        self.owners = {Tiles: tiles, Rows: rows, Panels: Panels(tiles, rows), Householder: self.householder}

    def text(self) -> str:
        """The module's text."""
        words = self.words
        self._limit(I64(1))
        with self.items() as item:
            self.item, self.goes_on = item, self.variable(I1(1))
            number = self.variable(0)
            with self.loop(lambda: (number.get() < words["count"]) & self.goes_on.get()):
                self._step(self.get(words["steps"], number.get(), POINTER))
                number.set(number.get() + 1)
        self._limit(I64(-1))
        return super().text()

    def _pointer(self, word: ir.Value) -> ir.Value:
        return self.builder.inttoptr(word, POINTER)

    def _address(self, step: ir.Value, word: int) -> ir.Value:
        """The present matrix's and worker's address, from the pointer at a word of a step."""
        base, by_item, by_worker = (self.get(step, word + n) for n in range(POINTER_WORDS))
        offset = by_item * self.item + by_worker * self.worker
        return self._pointer(base + offset)

    # ---- the threads of BLAS ----
    def _limit(self, change: ir.Constant) -> None:
        """Begin or end the limit on them: the first user sets it, the last one restores what was before."""
        builder, words = self.builder, self.words
        begins = change.constant > 0
        state = words["state"]
        with builder.if_then(words["set"].differs(0)):
            with self.loop(lambda: builder.atomic_rmw("xchg", state, I64(1), "acquire").differs(0)):
                pass
            users = self.get(state, 1) + change
            self.put(users, state, 1)
            with builder.if_then(users.equals(1 if begins else 0)):
                if begins:
                    asks = builder.inttoptr(words["get"], ir.FunctionPointer(ir.FunctionType(I32, [])))
                    self.put(builder.sext(builder.call(asks, []), I64), state, 2)
                before = self.get(state, 2)
                wanted = words["threads"] if begins else before
                with builder.if_then(before > 1):  # a user's choice of one thread is kept
                    sets = builder.inttoptr(words["set"], ir.FunctionPointer(ir.FunctionType(ir.VOID, [I32])))
                    sets(builder.trunc(wanted, I32))
            builder.atomic_rmw("xchg", state, I64(0), "release")

    # ---- steps ----
    def _step(self, step: ir.Value) -> None:
        names = {number: name for number, name in enumerate(STEPS) if name in self.steps}
        for number in self.builder.cases(self.get(step), names):
            name = names[number]
            if name in OWNERS:
                self._function(step, getattr(self.owners[OWNERS[name]], name))
            else:
                getattr(self, "_" + name)(step)

    def _call(self, step: ir.Value) -> None:
        """{function, pointers}"""
        type_ = ir.FunctionType(ir.VOID, [POINTER] * ARGUMENTS)
        function = self.builder.inttoptr(self.get(step, 1), ir.FunctionPointer(type_))
        self.builder.call(function, [self._address(step, 2 + POINTER_WORDS * n) for n in range(ARGUMENTS)])

    def _check(self, step: ir.Value) -> None:
        """{status code}: one that is not 0 ends the matrix's work and raises a fault."""
        builder = self.builder
        code = builder.sext(self.get(self._address(step, 1), 0, I32), I64)
        with builder.if_then(code.differs(0)):
            self.report(code, self.item)
            self.goes_on.set(I1(0))

    def _zero(self, step: ir.Value) -> None:
        """{target, bytes}"""
        self.fill(self._address(step, 1), self.get(step, 1 + POINTER_WORDS))

    def _copy(self, step: ir.Value) -> None:
        """{source, target, rows, columns, byte strides of rows and columns of each, what is kept}"""
        builder, size = self.builder, I64(self.bytes)
        here, there = self._address(step, 1), self._address(step, 1 + POINTER_WORDS)
        rows, columns, *between, keep = (self.get(step, 1 + 2 * POINTER_WORDS + n) for n in range(7))
        (down, right), (to_down, to_right) = between[:2], between[2:]
        in_rows = right.equals(size) & to_right.equals(size)
        with builder.if_else(in_rows) as (then, otherwise):
            with then, self.count(0, rows) as row:
                self._row(row, self.at(here, row * down), self.at(there, row * to_down), columns, keep)
            with otherwise, self.count(0, rows, TILE) as top, self.count(0, columns, TILE) as left:
                bottom, end = (self.least(n + TILE, stop) for n, stop in ((top, rows), (left, columns)))
                with self.count(top, bottom) as row, self.count(left, end) as column:
                    x = row * down + column * right
                    y = row * to_down + column * to_right
                    kept = self._is_kept(row, column, keep)
                    for part in range(1 + self.is_complex):
                        number = builder.load(self._part(self.at(here, x), part), typ=self.real)
                        builder.store(builder.select(kept, number, self.real(0.0)), self._part(self.at(there, y), part))

    def _part(self, pointer: ir.Value, part: int) -> ir.Value:
        return self.at(pointer, part * self.part_bytes)

    def _is_kept(self, row: ir.Value, column: ir.Value, keep: ir.Value) -> ir.Value:
        builder = self.builder
        lower, upper = column <= row, column >= row
        chosen = builder.select(keep.equals(LOWER), lower, upper)
        return keep.equals(ALL) | chosen

    def _row(self, row: ir.Value, here: ir.Value, there: ir.Value, columns: ir.Value, keep: ir.Value) -> None:
        """Copy a contiguous row: zeros, what is kept, and zeros."""
        builder, size = self.builder, I64(self.bytes)
        is_lower, is_upper = (keep.equals(kind) for kind in (LOWER, UPPER))
        start = self.least(builder.select(is_upper, row, I64(0)), columns)
        end = self.least(builder.select(is_lower, row + 1, columns), columns)
        first, length, rest = (n * size for n in (start, end - start, columns - end))
        self.copy(self.at(here, first), self.at(there, first), length)
        for pointer, nbytes in ((there, first), (self.at(there, end * size), rest)):
            self.fill(pointer, nbytes)

    def _numbers(self, step: ir.Value) -> None:
        """{source, target, count}: int32 to numbers."""
        self._converted(step, lambda here, i: self.builder.sitofp(self.get(here, i, I32), self.real))

    def _reals(self, step: ir.Value) -> None:
        """{source, target, count}: real numbers to numbers of the dtype."""
        self._converted(step, lambda here, i: self.builder.load(self.at(here, i, self.part_bytes), typ=self.real))

    def _converted(self, step: ir.Value, read: Callable[[ir.Value, ir.Value], ir.Value]) -> None:
        here, there = self._address(step, 1), self._address(step, 1 + POINTER_WORDS)
        with self.count(0, self.get(step, 1 + 2 * POINTER_WORDS)) as i:
            self._put_number(there, i, [read(here, i), *[self.real(0.0)] * self.is_complex])

    def _tidy(self, step: ir.Value) -> None:
        """{target, count}: -0 becomes 0."""
        target = self._address(step, 1)
        with self.count(0, self.get(step, 1 + POINTER_WORDS)) as i:
            self._put_number(target, i, [x + self.real(0.0) for x in self._number(target, i)])

    def _normalize(self, step: ir.Value) -> None:
        """{vector, length, count of real numbers}: a vector is divided by its length."""
        builder, vector, count = self.builder, self._address(step, 1), self.get(step, 1 + 2 * POINTER_WORDS)
        squares = self.variable(self.real(0.0))
        with self.count(0, count) as i:
            x = builder.load(self.at(vector, i, self.part_bytes), typ=self.real)
            squares.set(squares.get() + x * x)
        length = self.intrinsic("sqrt", self.real, [squares.get()])
        builder.store(length, self._address(step, 1 + POINTER_WORDS))
        with self.count(0, count) as i:
            element = self.at(vector, i, self.part_bytes)
            builder.store(builder.load(element, typ=self.real) / length, element)

    def _end_below(self, step: ir.Value) -> None:
        """{four numbers, bound}: a matrix's work ends if their product is below the bound. NaN is not."""
        builder = self.builder
        *factors, bound = (builder.load(self._address(step, 1 + POINTER_WORDS * n), typ=self.real) for n in range(5))
        product = factors[0] * factors[1] * (factors[2] * factors[3])
        with builder.if_then(product < bound):
            self.goes_on.set(I1(0))

    def _number(self, pointer: ir.Value, index: ir.Value | int) -> list[ir.Value]:
        """The parts of a number."""
        element = self.at(pointer, index, self.bytes)
        return [self.builder.load(self._part(element, part), typ=self.real) for part in range(1 + self.is_complex)]

    def _put_number(self, pointer: ir.Value, index: ir.Value, parts: Sequence[ir.Value]) -> None:
        element = self.at(pointer, index, self.bytes)
        for part, value in enumerate(parts):
            self.builder.store(value, self._part(element, part))

    # ---- functions of `tiles`, `panels`, `rows` and `householder` ----
    def _function(self, step: ir.Value, function: ir.Function) -> None:
        """{pointers, numbers}: call a function with them, each kind in the order of its parameters."""
        kinds = function.function_type.args
        count = kinds.count(POINTER)
        pointers = iter([self._address(step, 1 + POINTER_WORDS * n) for n in range(count)])
        numbers = iter([self.get(step, 1 + POINTER_WORDS * count + n) for n in range(len(kinds) - count)])
        function(*[next(pointers) if kind is POINTER else self.builder.trunc(next(numbers), kind) for kind in kinds])

    def _rescale(self, step: ir.Value) -> None:
        """{target, factor, count}"""
        factor = self.builder.load(self._address(step, 1 + POINTER_WORDS), typ=self.real)
        count = self.get(step, 1 + 2 * POINTER_WORDS)
        self.householder.scale(count, self._address(step, 1), factor)

    # ---- determinants ----
    def _product(self, step: ir.Value) -> None:
        """{diagonal, exchanges, target, count, byte stride}: the product of pivots, with the sign of their exchanges."""
        total = self._over_pivots(step, lambda x: x)
        self._put_number(self._address(step, 1 + 2 * POINTER_WORDS), I64(0), total)

    def _logarithm(self, step: ir.Value) -> None:
        """As `_product`, of the pivots' signs; after it, the sum of the logarithms of their absolute values."""
        builder = self.builder
        logs = self.variable(self.real(0.0))

        def direction(x: Sequence[ir.Value]) -> list[ir.Value]:
            size = self._size(x)
            logs.set(logs.get() + self.intrinsic("log", self.real, [size]))
            is_zero = size.equals(0.0)
            return [builder.select(is_zero, self.real(0.0), part / size) for part in x]

        total, there = self._over_pivots(step, direction), self._address(step, 1 + 2 * POINTER_WORDS)
        self._put_number(there, I64(0), total)
        self._put_number(there, I64(1), [logs.get(), *[self.real(0.0)] * self.is_complex])

    def _size(self, x: Sequence[ir.Value]) -> ir.Value:
        """The absolute value, scaled by the larger part, whose square might overflow."""
        builder = self.builder
        parts = [self.intrinsic("fabs", self.real, [part]) for part in x]
        if not self.is_complex:
            return parts[0]
        first = parts[0] > parts[1]
        large, small = builder.select(first, *parts), builder.select(first, *reversed(parts))
        ratio = small / large
        square = ratio * ratio + self.real(1.0)
        length = large * self.intrinsic("sqrt", self.real, [square])
        return builder.select(large.equals(0.0), large, length)

    def _over_pivots(self, step: ir.Value, what: Callable[[list[ir.Value]], list[ir.Value]]) -> list[ir.Value]:
        builder = self.builder
        diagonal, exchanges = self._address(step, 1), self._address(step, 1 + POINTER_WORDS)
        count, between = (self.get(step, 1 + 3 * POINTER_WORDS + n) for n in range(2))
        total = [self.variable(self.real(value)) for value in (1.0, 0.0)[: 1 + self.is_complex]]
        with self.count(0, count) as i:
            x = what(self._number(self.at(diagonal, i * between), 0))
            stays = builder.sext(self.get(exchanges, i, I32), I64).equals(i + 1)
            product = self._times([v.get() for v in total], x)
            for variable, part in zip(total, product, strict=True):
                variable.set(builder.select(stays, part, -part))
        return [v.get() for v in total]

    def _times(self, x: Sequence[ir.Value], y: Sequence[ir.Value]) -> list[ir.Value]:
        if not self.is_complex:
            return [x[0] * y[0]]
        return [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]
