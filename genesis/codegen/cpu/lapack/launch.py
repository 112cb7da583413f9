"""The launches of linear algebra: one for a call, whose items are the matrices of its batch.

LAPACK reads a row-major matrix as its transpose. Where a routine can work on that, only what it overwrites is copied;
elsewhere matrices are transposed on the way in and results on the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.codegen.cpu.lapack import kernel
from genesis.codegen.cpu.lapack.blocked import Reflections, fits_cache, is_blocked, least_squares
from genesis.codegen.cpu.lapack.elimination import Factors, cholesky, is_eliminated, is_shared, padded, solve_triangular
from genesis.codegen.cpu.lapack.kernel import LOWER, UPPER
from genesis.codegen.cpu.lapack.routine import IWORK, LIWORK, LRWORK, LWORK, RWORK, WORK, Argument, BatchPointer, Routine
from genesis.codegen.cpu.lapack.routines import LETTERS, blas_threads
from genesis.codegen.cpu.lapack.tiles import tile_of
from genesis.codegen.cpu.tiling import second_cache_bytes
from genesis.codegen.segment import SlotMap
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.stages import PARALLEL_COST, HostCall
from genesis.runtime.determinism import are_deterministic_algorithms_enabled
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import FAULT, Addresses, Block, NativeLaunch

OVERHEAD = 4096  # operations: the cost of calls beside the arithmetic
BY_BLAS = 1 << 30  # from here on BLAS' own threads pay for one matrix; at 512 x 512 they gain nothing, and spin on
FIXED = 2  # threads of BLAS in deterministic mode: it divides its sums among them


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernel of the call, if there is one for it."""
    return [_source(nodes, call)] if _is_taken(nodes, call) else []


def _source(nodes: Sequence[Node], call: HostCall) -> KernelSource:
    dtype, op = nodes[call.operands[0][0]].dtype, nodes[call.node].op
    family = "elimination" if is_eliminated(dtype, op) else "householder" if is_reflected(dtype, op) else ""
    return kernel.source(dtype.name, family)


def is_reflected(dtype: DType, op: str) -> bool:
    """Whether small matrices are reduced by the library's reflections rather than by LAPACK's."""
    return not dtype.is_complex and op in ("qr", "eigvalsh")


def launches(
    nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int
) -> list[NativeLaunch] | None:
    """The launch of a call; None for one that is left to Python."""
    if not _is_taken(nodes, call) or slots.is_portable:
        return None
    node, (value, layout) = nodes[call.node], call.operands[0]
    rows, columns = layout.shape[-2:]
    batch, work = numel(layout.shape[:-2]), rows * columns * min(rows, columns)
    eliminates = is_eliminated(nodes[value].dtype, node.op)
    is_parted = is_shared(node.op, work) if eliminates else is_blocked(node.op, nodes[value].dtype, batch, rows, columns)
    items = threads if batch == 1 and is_parted else batch
    workers = min(threads, items) if batch * (work + OVERHEAD) > PARALLEL_COST else 1
    routine = Routine(nodes, call, slots, workers)
    ROUTINES[node.op](routine, rows, columns)
    limits = blas_threads()
    most = FIXED if are_deterministic_algorithms_enabled() else threads
    blas = most if workers == 1 and work >= BY_BLAS else 1
    symbol = _source(nodes, call).symbol
    return [
        NativeLaunch(addresses[symbol], [
            Block((tuple(steps), len(steps), blas, *limits, FAULT, call.node), batch) for steps in parts if steps
        ], workers)
        for parts in routine.stages if any(parts)
    ]


def _is_taken(nodes: Sequence[Node], call: HostCall) -> bool:
    node, (value, _) = nodes[call.node], call.operands[0]
    sizes = [numel(layout.shape) for _, layout in call.operands]
    pivots = node.attrs.get("pivot", True)
    return bool(pivots and all(sizes) and node.nbytes) and nodes[value].dtype.name in LETTERS


# ---- elimination ----
def _eliminated(r: Routine, lu: BatchPointer, n: int) -> BatchPointer:
    """Factor the transpose of the first operand into `lu`; returns the pivots."""
    pivots = r.integers(n)
    r.copy(r.operands[0], lu, (n, n))
    info = r.call("getrf", n, n, lu, n, pivots)
    if r.node.op in ("inv", "solve"):
        r.step("check", info)
    return pivots


def _factors(r: Routine, n: int) -> Factors:
    factors = Factors(r, (n, n))
    factors.factor(r.operands[0], wants_l=r.node.op in ("inv", "solve"))
    if r.node.op in ("inv", "solve"):
        factors.check()
    return factors


def _inv(r: Routine, n: int, _: int) -> None:
    if is_eliminated(r.dtype, "inv"):
        _factors(r, n).invert()
        return
    pivots = _eliminated(r, r.out, n)
    r.call("getri", n, r.out, n, pivots, WORK, LWORK)
    r.step("tidy", r.out, n * n)


def _solve(r: Routine, n: int, _: int) -> None:
    width = r.node.shape[-1]
    if is_eliminated(r.dtype, "solve"):
        _factors(r, n).solve(r.operands[1], width)
        return
    lu = r.scratch(n * n)
    right = r.out if width == 1 else r.scratch(n * width)
    pivots = _eliminated(r, lu, n)
    r.copy(r.operands[1], right, (n, width), transposes=True)
    r.call("getrs", "T", n, width, lu, n, pivots, right, n)
    if width > 1:
        r.copy_columns(right, r.out, (n, width))


def _determinant(r: Routine, n: int, _: int) -> None:
    if is_eliminated(r.dtype, r.node.op):
        factors = _factors(r, n)
        factors.after()
        data, pivots, row = factors.data, factors.pivots, factors.row
    else:
        data, row = r.scratch(n * n), n
        pivots = _eliminated(r, data, n)
    r.step("logarithm" if r.node.op == "slogdet" else "product", data, pivots, r.out, n, (row + 1) * r.size)


def _lu_factor(r: Routine, m: int, n: int) -> None:
    k = min(m, n)
    if is_eliminated(r.dtype, "lu_factor_ex"):
        factors = Factors(r, (m, n))
        factors.factor(r.operands[0])
        pivots, info = factors.pivots, factors.info
        if r.node.attrs["check"]:
            factors.check()
        factors.write()
    else:
        data, pivots = r.scratch(m * n), r.integers(k)
        r.copy(r.operands[0], data, (m, n), transposes=True)
        info = r.call("getrf", m, n, data, m, pivots)
        if r.node.attrs["check"]:
            r.step("check", info)
        r.copy_columns(data, r.out, (m, n))
    r.step("numbers", pivots, r.out.at(m * n * r.size), k)
    r.step("numbers", info, r.out.at((m * n + k) * r.size), 1)


# ---- triangles ----
def _solve_triangular(r: Routine, n: int, _: int) -> None:
    """Solve T x = b by BLAS, which sees the transposes: x^T T^T = b^T."""
    a, b = r.operands
    width, attrs = r.node.shape[-1], r.node.attrs
    if is_eliminated(r.dtype, "solve_triangular"):
        solve_triangular(r, n, width, upper=attrs["upper"], unit=attrs["unit"])
        return
    r.copy(b, r.out, (n, width))
    triangle, diagonal = "L" if attrs["upper"] else "U", "U" if attrs["unit"] else "N"
    r.blas("trsm", "R", triangle, "N", diagonal, width, n, 1.0, a, n, r.out, width)


def _cholesky(r: Routine, n: int, _: int) -> None:
    """The lower factor: by LAPACK, the transpose of the upper one of the transpose, where more than one thread pays."""
    if is_eliminated(r.dtype, "cholesky_ex") and n**3 < BY_BLAS:
        info = cholesky(r, n)
    else:
        r.copy(r.operands[0], r.out, (n, n), LOWER)
        info = r.call("potrf", "U", n, r.out, n)
    if r.node.attrs["check"]:
        r.step("check", info)
    r.step("numbers", info, r.out.at(n * n * r.size), 1)


# ---- orthogonal factors ----
def _qr(r: Routine, m: int, n: int) -> None:
    k = min(m, n)
    inner = m if r.node.attrs["complete"] else k
    if is_blocked("qr", r.dtype, r.batch, m, n):
        factored = Reflections(r, (m, n), k, wants_q=True)
        factored.copy_rows(r.operands[0], n)
        factored.factor()
        factored.expand(inner)
        r.part(concurrent=True)
        r.copy_columns(factored.data, r.out.at(m * inner * r.size), (inner, n), UPPER, column=m)
        return
    scales = r.scratch(k)
    if is_reflected(r.dtype, "qr") and fits_cache(r.dtype, r.batch, m, max(n, inner)):
        lanes = tile_of(r.dtype.name).lanes
        row, v_row = padded(max(n, inner), lanes), padded(m, lanes)
        data, vectors, line = r.scratch(m * row), r.scratch(k * v_row), r.scratch(row)
        r.step("factor", r.operands[0], data, vectors, scales, line, m, n, row, v_row)
        r.copy(data, r.out.at(m * inner * r.size), (inner, n), UPPER, from_row=row)
        r.step("expand", data, vectors, scales, line, m, inner, k, row, v_row)
        r.copy(data, r.out, (m, inner), from_row=row)
        return
    data = r.scratch(m * max(n, inner))
    r.copy(r.operands[0], data, (m, n), transposes=True)
    r.call("geqrf", m, n, data, m, scales, WORK, LWORK)
    r.copy_columns(data, r.out.at(m * inner * r.size), (inner, n), UPPER, column=m)
    r.call("ungqr" if r.dtype.is_complex else "orgqr", m, inner, k, data, m, scales, WORK, LWORK)
    r.copy_columns(data, r.out, (m, inner))


def _geqrf(r: Routine, m: int, n: int) -> None:
    data, scales = r.scratch(m * n), r.out.at(m * n * r.size)
    r.copy(r.operands[0], data, (m, n), transposes=True)
    r.call("geqrf", m, n, data, m, scales, WORK, LWORK)
    r.copy_columns(data, r.out, (m, n))


def _least_squares(r: Routine, m: int, n: int) -> None:
    if is_blocked("least_squares", r.dtype, r.batch, m, n):
        least_squares(r, m, n)
    a, b = r.operands
    width, rows = (r.node.shape[-1] - 1) // n, max(m, n)
    data, right, order = r.scratch(m * n), r.scratch(rows * width), r.integers(n)
    r.copy(a, data, (m, n), transposes=True)
    if rows > m:
        r.step("zero", right, rows * width * r.size)
    r.copy(b, right, (m, width), transposes=True, row=rows)
    r.step("zero", order, 4 * n)  # an entry that is not 0 keeps its column at the front
    reals = [r.reals(2 * n)] if r.dtype.is_complex else []
    bound: float = r.node.attrs["rcond"]
    rank = r.integers()
    r.call("gelsy", m, n, width, data, m, right, rows, order, bound, rank, WORK, LWORK, *reals)
    r.copy_columns(right, r.out, (n, width), column=rows)
    r.step("numbers", rank, r.out.at(n * width * r.size), 1)


# ---- eigenvalues, singular values ----
def _values(r: Routine, count: int, first: int = 0) -> tuple[BatchPointer, Callable[[], None]]:
    """The memory for a routine's real values from number `first` on, and the step that widens them into the result."""
    there = r.out.at(first * r.size)
    if not r.dtype.is_complex:
        return there, lambda: None
    reals = r.reals(count)
    return reals, lambda: r.step("reals", reals, there, count)


def _eigvalsh(r: Routine, n: int, _: int) -> None:
    """The eigenvalues of the tridiagonal form; those of larger or complex matrices by LAPACK alone."""
    row = padded(n, tile_of(r.dtype.name).lanes) if is_reflected(r.dtype, "eigvalsh") else 0
    if not row or n * row * r.size > second_cache_bytes():
        _eigh(r, n, n)
        return
    data, beside, lines, factor = r.scratch(n * row), r.scratch(n), r.scratch(4 * row), r.scratch(1)
    r.step("mirror", r.operands[0], data, factor, n, row, int(r.node.attrs["UPLO"] == "U"))
    r.step("tridiagonal", data, r.out, beside, lines, n, row)
    r.step("check", r.call("sterf", n, r.out, beside))
    r.step("rescale", r.out, factor, n)


def _eigh(r: Routine, n: int, _: int) -> None:
    data, vectors = r.scratch(n * n), r.node.op == "eigh"
    triangle: str = r.node.attrs["UPLO"]
    values, move = _values(r, n)
    r.copy(r.operands[0], data, (n, n), transposes=vectors)
    if not vectors:  # the transpose has the same
        triangle = "U" if triangle == "L" else "L"
    work: list[Argument] = [WORK, LWORK, *([RWORK, LRWORK] if r.dtype.is_complex else []), IWORK, LIWORK]
    name = "heevd" if r.dtype.is_complex else "syevd"
    r.step("check", r.call(name, "V" if vectors else "N", triangle, n, data, n, values, *work))
    move()
    if vectors:
        r.copy_columns(data, r.out.at(n * r.size), (n, n))


def _svd(r: Routine, m: int, n: int) -> None:
    k, full = min(m, n), r.node.attrs["full"]
    rows, columns = (m, n) if full else (k, k)  # vectors on the left, and on the right
    data, left, right = r.scratch(m * n), r.scratch(m * rows), r.scratch(columns * n)
    values, move = _values(r, k, m * rows)
    r.copy(r.operands[0], data, (m, n), transposes=True)
    _singular(r, "A" if full else "S", (m, n), data, values, left, right, columns)
    move()
    r.copy_columns(left, r.out, (m, rows))
    r.copy_columns(right, r.out.at((m * rows + k) * r.size), (columns, n))


def _svdvals(r: Routine, m: int, n: int) -> None:
    """The transpose has the same singular values."""
    data, none = r.scratch(m * n), r.scratch(1)
    values, move = _values(r, min(m, n))
    r.copy(r.operands[0], data, (m, n))
    _singular(r, "N", (n, m), data, values, none, none, 1)
    move()


def _singular(
    r: Routine, job: str, shape: tuple[int, int], data: BatchPointer, values: BatchPointer, left: BatchPointer,
    right: BatchPointer, columns: int,
) -> None:
    (m, n), k = shape, min(shape)
    reals = [r.reals(max(5 * k * k + 7 * k, 2 * max(m, n) * k + 2 * k * k + k))] if r.dtype.is_complex else []
    vectors = (left, 1, right, 1) if job == "N" else (left, m, right, columns)
    r.step("check", r.call("gesdd", job, m, n, data, m, values, *vectors, WORK, LWORK, *reals, r.integers(8 * k)))


ROUTINES: dict[str, Callable[[Routine, int, int], None]] = {
    "inv": _inv, "solve": _solve, "det": _determinant, "slogdet": _determinant, "lu_factor_ex": _lu_factor,
    "solve_triangular": _solve_triangular, "cholesky_ex": _cholesky, "qr": _qr, "geqrf": _geqrf,
    "least_squares": _least_squares, "eigh": _eigh, "eigvalsh": _eigvalsh, "svd": _svd, "svdvals": _svdvals,
}
