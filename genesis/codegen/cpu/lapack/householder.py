"""Unblocked reductions of row-major real matrices by Householder's reflections I - tau v v^T: QR and tridiagonal form.

A matrix is read and written once for each reflection: the update by the one before and the products with the next one's v
share a sweep. Rows are padded to whole vectors. Lanes before the first column that is left hold no results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import emitted, i64, ptr
from genesis.codegen.cpu.lapack.rows import Rows
from genesis.codegen.cpu.lapack.tiles import ElementCode, Real, TileFunctions
from genesis.codegen.cpu.registers import I1, I32, I64, POINTER
from genesis.codegen.cpu.tiling import has_many_registers

# Within these a sum of squares has neither overflowed nor lost what counts, nor has one of a matrix' numbers.
SAFE = {"float32": (2.0**-80, 2.0**80), "float64": (2.0**-800, 2.0**800)}
SAFE_NUMBERS = 2.0**-20, 2.0**20
BITS = {"float32": (I32, 23, 127), "float64": (I64, 52, 1023)}  # integer, digits, bias of the exponent


class Householder(TileFunctions):
    """The functions of one module."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.module, rows.tile.dtype)
        self.rows = rows

    # ---- one reflection ----
    @cached_property
    def squares(self) -> ir.Function:
        """`Real (n, x)`: the sum of squares."""
        return self._reduction("squares", lambda code, x, total: code.fma(x, x, total), lambda code, a, b: code.add(a, b))

    @cached_property
    def largest(self) -> ir.Function:
        """`Real (n, x)`: the largest magnitude, 0 for none; NaN if there is one."""
        return self._reduction(
            "largest", lambda code, x, most: code.maximum(code.absolute(x), most), lambda code, a, b: code.maximum(a, b))

    def _reduction(
        self, name: str, see: Callable[[ElementCode, ir.Value, ir.Value], ir.Value],
        combine: Callable[[ElementCode, ir.Value, ir.Value], ir.Value],
    ) -> ir.Function:
        code = self.code(name, [I64, POINTER], self.types["Real"])
        n, x = code.args
        found = code.variable(code.splat(code.number(0.0)))
        with code.count(0, n, self.width) as i:
            mask = code.first_lanes(n - i)
            found.set(see(code, code.read_vector(x, i, mask), found.get()))
        return code.finish(code.horizontal_reduce(lambda a, b: combine(code, a, b), found.get()))

    @emitted
    def scale(self, code: ElementCode, n: i64, x: ptr, factor: Real) -> None:
        """Multiply in place."""
        with code.count(0, n, self.width) as i:
            element, mask = code.element(x, i), code.first_lanes(n - i)
            code.store(code.multiply(code.load(element, code.dtype, mask), factor), element, code.dtype, mask)

    @emitted
    def power(self, code: ElementCode, x: Real) -> Real:
        """A power of two whose product with the positive number x is in [1, 4), less for denormal numbers."""
        integer, digits, bias = BITS[code.dtype]
        exponent = code.builder.lshr(code.bitcast_to_int(x), integer(digits))
        kept = code.intrinsic("smin", integer, [code.intrinsic("smax", integer, [exponent, integer(1)]), integer(2 * bias - 1)])
        return code.bitcast_to_float((integer(2 * bias) - kept) << integer(digits))

    @emitted
    def reflector(self, code: ElementCode, n: i64, x: ptr, place: ptr) -> Real:
        """The reflection that takes x to (beta, 0, ..): writes v, whose first number is 1, over x, and tau; returns beta. As
        LAPACK's `larfg`: tau is 0 if all but the first are 0."""
        builder, dtype, one = code.builder, code.dtype, code.number(1.0)
        least, most = map(code.number, SAFE[dtype])
        behind, count = code.element(x, I64(1)), n - 1
        total, unscaled = code.variable(self.squares(n, x)), code.variable(one)
        is_zero = code.variable(I1(0))
        rest = self.squares(count, behind)
        safe = (rest >= least) & (total.get() <= most)
        with builder.if_then(~safe, likely=False):
            is_zero.set(self.largest(count, behind).equals(0.0))
            factor = self.power(self.largest(n, x))
            self.scale(n, x, builder.select(is_zero.get(), one, factor))
            unscaled.set(builder.select(is_zero.get(), one, one / factor))
            total.set(self.squares(n, x))
        alpha = code.load_uniform(x, dtype)
        code.store_uniform(one, x, dtype)
        with builder.if_then(is_zero.get(), likely=False):
            code.store_uniform(code.number(0.0), place, dtype)
            builder.ret(alpha)
            builder.position_at_end(builder.append_basic_block("unreached"))
        beta = code.copy_sign(code.square_root(total.get()), -alpha)
        gap = beta - alpha
        code.store_uniform(gap / beta, place, dtype)
        self.scale(count, behind, code.number(-1.0) / gap)
        return beta * unscaled.get()

    # ---- a sweep over the matrix ----
    @cached_property
    def sweep(self) -> ir.Function:
        """`void (rows, columns, a, row, x, w, v, g)`: a -= v g^T, then w = x^T a, which may lie in g's place."""
        return self._sweep(1)

    @cached_property
    def double_sweep(self) -> ir.Function:
        """As `sweep`, `(.., v, g, v2, g2)`: a -= v g^T + v2 g2^T; w lies elsewhere."""
        return self._sweep(2)

    def _sweep(self, pairs: int) -> ir.Function:
        code = self.code(f"sweep_{pairs}", [I64, I64, POINTER, I64, POINTER, POINTER, *[POINTER] * (2 * pairs)])
        rows, columns, a, row, x, w, *rest = code.args
        wide = 4 if has_many_registers() else 2
        whole = columns & (-wide * self.width)
        for start, end, vectors in ((I64(0), whole, wide), (whole, columns, 1)):
            strip = self._strip(pairs, vectors, wide // vectors)
            with code.count(start, end, vectors * self.width) as column:
                there = [code.element(p, column) if n % 2 else p for n, p in enumerate(rest)]
                strip(rows, code.element(a, column), row, x, code.element(w, column), *there)
        return code.finish()

    def _strip(self, pairs: int, vectors: int, unrolled: int) -> ir.Function:
        """A sweep over so many vectors of columns, whose sums are in registers; of one column, several rows at a time."""
        code = self.code(f"strip_{pairs}_{vectors}", [I64, POINTER, I64, POINTER, POINTER, *[POINTER] * (2 * pairs)])
        rows, a, row, x, w, *rest = code.args
        at = [I64(v * self.width) for v in range(vectors)]
        scales, lines = rest[::2], [[code.read_vector(g, n) for n in at] for g in rest[1::2]]
        sums = [[code.variable(code.splat(code.number(0.0))) for _ in at] for _ in range(unrolled)]
        whole = rows & -unrolled
        for start, end, many in ((I64(0), whole, unrolled), (whole, rows, 1))[: 1 + (unrolled > 1)]:
            with code.count(start, end, many) as first:
                for number in range(many):
                    i = first + number
                    here = code.element(a, i * row)
                    uniform = [code.read(p, i) for p in (*scales, x)]
                    factors = [code.splat(-u) for u in uniform[:-1]]
                    for v, n in enumerate(at):
                        value = code.read_vector(here, n)
                        for factor, line in zip(factors, lines, strict=True):
                            value = code.fma(factor, line[v], value)
                        code.write_vector(value, here, n)
                        sums[number][v].set(code.fma(code.splat(uniform[-1]), value, sums[number][v].get()))
        for v, n in enumerate(at):
            total = sums[0][v].get()
            for others in sums[1:]:
                total = total + others[v].get()
            code.write_vector(total, w, n)
        return code.finish()

    # ---- QR ----
    @emitted
    def factor(
        self, code: ElementCode, m: i64, n: i64, source: ptr, a: ptr, row: i64, vectors: ptr, v_row: i64, scales: ptr, g: ptr
    ) -> None:
        """The QR factors of a dense source: R in a's upper triangle, the vectors as lines of numbers 0 to m, of which those
        before the diagonal are not written, and their scales.

        `g` is scratch for a row."""
        builder, dtype, lanes = code.builder, code.dtype, self.width
        padded = self._padded(code, n)
        self._zero(code, g, padded)
        with code.count(0, m) as i, code.count(0, padded, lanes) as j:
            x = code.load(self._at(code, source, i, n, j), dtype, code.first_lanes(n - j))
            code.store(x, self._at(code, a, i, row, j), dtype)
        with code.count(0, code.least(m, n)) as k:
            start, next_ = k & -lanes, k + 1
            columns, below = padded - start, m - next_
            before = code.intrinsic("smax", I64, [k - 1, I64(0)])
            v, x = (code.element(vectors, line * v_row) for line in (before, k))
            line, diagonal = self._at(code, a, k, row), self._at(code, a, k, row, k)
            scale = code.read(v, k)
            scale = builder.select(k.equals(0), code.number(0.0), scale)
            with code.count(start, padded, lanes) as j:
                self._subtract(code, code.element(line, j), [(scale, code.element(g, j))])
            code.write(code.load_uniform(diagonal, dtype), x, k)
            factor = -code.read(g, k)
            with code.count(next_, m) as i:
                left = code.load_uniform(self._at(code, a, i, row, k), dtype)
                earlier = code.read(v, i)
                left = builder.select(k.equals(0), left, code.fma(earlier, factor, left))
                code.write(left, x, i)
            tau = code.element(scales, k)
            beta = self.reflector(m - k, code.element(x, k), tau)
            self.sweep(
                below, columns, self._at(code, a, next_, row, start), row, code.element(x, next_), code.element(g, start),
                code.element(v, next_), code.element(g, start))
            factor = code.load_uniform(tau, dtype)
            with code.count(start, padded, lanes) as j:
                element, value = code.element(g, j), code.read_vector(line, j)
                change = code.multiply(code.add(value, code.load(element, dtype)), factor)
                code.store(change, element, dtype)
                code.write_vector(code.subtract(value, change), line, j)
            code.store_uniform(beta, diagonal, dtype)

    @emitted
    def expand(
        self, code: ElementCode, m: i64, n: i64, count: i64, q: ptr, row: i64, vectors: ptr, v_row: i64, scales: ptr, g: ptr
    ) -> None:
        """The first n columns of the product of the reflections of `factor`."""
        dtype, lanes = code.dtype, self.width
        padded = self._padded(code, n)
        self._zero(code, g, padded)
        with code.count(0, m) as i:
            self._zero(code, self._at(code, q, i, row), padded)
        with code.count(0, n) as i:
            code.store_uniform(code.number(1.0), self._at(code, q, i, row, i), dtype)
        with code.count(0, count) as step:
            next_ = count - step
            k = next_ - 1
            start = k & -lanes
            v = code.element(vectors, code.least(next_, count - 1) * v_row)
            x = code.element(vectors, k * v_row)
            self.sweep(
                m - next_, padded - start, self._at(code, q, next_, row, start), row, code.element(x, next_), code.element(g,
                start), code.element(v, next_), code.element(g, start))
            factor = code.read(scales, k)
            with code.count(start, padded, lanes) as j:
                element, value = code.element(g, j), code.load(self._at(code, q, k, row, j), dtype)
                code.store(code.multiply(code.add(value, code.load(element, dtype)), factor), element, dtype)
        self.sweep(m, padded, q, row, vectors, g, vectors, g)

    # ---- tridiagonal form ----
    @emitted
    def mirror(self, code: ElementCode, n: i64, source: ptr, a: ptr, row: i64, place: ptr, upper: i64) -> None:
        """The symmetric matrix whose triangle is given, scaled by a power of two if its numbers are very large or small;
        `factor` gets what its eigenvalues are to be multiplied by. With an infinity the eigenvalues are NaN; with NaN they
        are, or do not converge."""
        builder, dtype, lanes = code.builder, code.dtype, self.width
        padded, is_upper = self._padded(code, n), upper.differs(0)
        self.rows.transpose(n, n, source, n, a, row)
        with code.count(0, n) as i, code.count(0, padded, lanes) as j:
            here, mask = self._at(code, a, i, row, j), code.first_lanes(n - j)
            low = code.first_lanes(i + builder.select(is_upper, I64(0), I64(1)) - j)
            given = code.logical_xor(low, code.splat(is_upper))
            x = code.load(self._at(code, source, i, n, j), dtype, mask)
            code.store(builder.select(given, x, code.load(here, dtype, mask)), here, dtype)
        most = code.variable(code.number(0.0))
        with code.count(0, n) as i:
            most.set(code.maximum(most.get(), self.largest(n, self._at(code, a, i, row))))
        least, greatest = (code.number(bound) for bound in SAFE_NUMBERS)
        safe = (most.get() >= least) & (most.get() <= greatest)
        code.store_uniform(code.number(1.0), place, dtype)
        with builder.if_then(~safe, likely=False):
            infinite = most.get().equals(float("inf"))
            finite = most.get() < float("inf")
            factor = self.power(most.get())
            inverse = builder.select(finite, code.number(1.0) / factor, code.number(float("nan")))
            code.store_uniform(inverse, place, dtype)
            with code.count(0, n) as i:
                line = self._at(code, a, i, row)
                self.scale(n, line, factor)
                with builder.if_then(infinite):
                    self._zero(code, line, padded)

    @emitted
    def tridiagonal(self, code: ElementCode, n: i64, a: ptr, row: i64, d: ptr, e: ptr, lines: ptr) -> None:
        """The diagonal and the one beside it of a similar tridiagonal matrix. `lines` is scratch for four rows."""
        builder, dtype, lanes = code.builder, code.dtype, self.width
        padded, tau = self._padded(code, n), code.builder.alloca(self.types["Real"])
        self._zero(code, lines, row * 4)
        v, w, x, p = (code.variable(code.element(lines, row * number)) for number in range(4))
        with code.count(0, n) as k:
            start, next_ = k & -lanes, k + 1
            line = self._at(code, a, k, row)
            scales = [code.read(variable.get(), k) for variable in (v, w)]
            with code.count(start, padded, lanes) as j:
                self._subtract(code, code.element(line, j), [
                    (scale, code.element(variable.get(), j)) for scale, variable in zip(scales, (w, v), strict=True)])
            code.write(code.read(line, k), d, k)
            with builder.if_then(next_ < n):
                start = next_ & -lanes
                with code.count(start, padded, lanes) as j:
                    value = code.read_vector(line, j)
                    done = code.first_lanes(next_ - j)
                    code.write_vector(builder.select(done, code.splat(code.number(0.0)), value), x.get(), j)
                left = n - next_
                beta = self.reflector(left, code.element(x.get(), next_), tau)
                code.write(beta, e, k)
                self.double_sweep(
                    left, padded - start, self._at(code, a, next_, row, start), row, code.element(x.get(), next_),
                    code.element(p.get(), start), code.element(v.get(), next_), code.element(w.get(), start),
                    code.element(w.get(), next_), code.element(v.get(), start))
                total = code.variable(code.splat(code.number(0.0)))
                with code.count(start, padded, lanes) as j:
                    first, second = (code.read_vector(line.get(), j) for line in (x, p))
                    total.set(code.fma(first, second, total.get()))
                product = code.horizontal_reduce(code.add, total.get())
                scale = code.load_uniform(tau, dtype)
                half = -(scale * product * code.number(0.5))
                with code.count(start, padded, lanes) as j:
                    element = code.element(p.get(), j)
                    value = code.fma(half, code.read_vector(x.get(), j), code.load(element, dtype))
                    code.store(code.multiply(value, scale), element, dtype)
                for one, other in ((v, x), (w, p)):
                    first, second = one.get(), other.get()
                    one.set(second)
                    other.set(first)

    # ---- memory ----
    def _padded(self, code: ElementCode, n: ir.Value) -> ir.Value:
        return (n + (self.width - 1)) & -self.width

    def _at(self, code: ElementCode, a: ir.Value, i: ir.Value, row: ir.Value, j: ir.Value | None = None) -> ir.Value:
        line = code.element(a, i * row)
        return line if j is None else code.element(line, j)

    def _zero(self, code: ElementCode, line: ir.Value, count: ir.Value) -> None:
        with code.count(0, count, self.width) as j:
            code.write_vector(code.splat(code.number(0.0)), line, j)

    def _subtract(self, code: ElementCode, element: ir.Value, products: Sequence[tuple[ir.Value, ir.Value]]) -> None:
        """Subtract products of a number and a vector in memory from a vector in memory."""
        value = code.load(element, code.dtype)
        for scale, line in products:
            value = code.fma(-scale, code.load(line, code.dtype), value)
        code.store(value, element, code.dtype)
