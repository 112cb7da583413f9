"""Every function of the vector math library against mpmath (float64) or a float64 reference (float32), in ulp.

`python tests/codegen/test_vector_math.py` prints the table of errors and speeds; with `--all-floats` each unary
float32 function meets all 2^32 arguments (`--all-floats=101`: every 101st).
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from functools import partial

import mpmath
import numpy as np
import pytest
import scipy.special
from llvmlite import binding

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import I64, POINTER
from genesis.codegen.cpu.vector_math import FUNCTIONS

binding.initialize_native_target()
binding.initialize_native_asmprinter()

WIDTH = {"float32": 16, "float64": 8}


def vanishing(scipy: Callable[..., np.ndarray], limit: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """SciPy's J or Y, which is NaN at infinity, with its limit there."""
    return lambda x: np.where(np.isinf(x), limit(x), scipy(x))


BESSEL = {
    "bessel_j0": vanishing(scipy.special.j0, np.zeros_like),
    "bessel_j1": vanishing(scipy.special.j1, lambda x: np.copysign(0, x)),
    **{f"bessel_y{n}": vanishing(function, lambda x: np.where(x < 0, np.nan, 0))
       for n, function in enumerate((scipy.special.y0, scipy.special.y1))},
}
AIRY = {name: lambda x, slope=slope: scipy.special.airy(x)[slope] for slope, name in enumerate(("airy_ai", "airy_slope"))}


def of_tiny(scipy: Callable[..., np.ndarray], limit: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """SciPy's K, which is infinite at subnormal numbers, with its limit at 0 there."""
    return lambda x: np.where((x > 0) & (x < 1e-300), limit(x), scipy(x))


MODIFIED = {  # where SciPy has NaN at infinity, and no -0.0
    "i0": lambda x: np.where(np.isinf(x), np.inf, scipy.special.i0(x)), "i0e": scipy.special.i0e,
    "i1": lambda x: np.where(np.isinf(x), x, np.copysign(scipy.special.i1(x), x)),
    "i1e": lambda x: np.copysign(scipy.special.i1e(x), x),
    **{f"{scaled}modified_bessel_k{n}": of_tiny(getattr(scipy.special, f"k{n}{ending}"), limit)
       for scaled, ending in (("", ""), ("scaled_", "e"))
       for n, limit in enumerate((lambda x: np.log(2) - np.euler_gamma - np.log(x), lambda x: 1 / x))},
}
BOUND = {"pow": 4.0, "lgamma": 6.0,
         **dict.fromkeys(("erfinv", "erfcx", "ndtri", "log_ndtr", *MODIFIED), 4.0),
         **dict.fromkeys(("digamma", "trigamma", "i0", "i1"), 8.0), **dict.fromkeys(BESSEL, 16.0), "airy_ai": 16.0,
         "airy_slope": 24.0}
# Where errors are in ulp of this at least: near zeros that no formula has exactly.
LEAST = {
    "lgamma": lambda x: np.where(x < 0, np.clip(scipy.special.gammaln(1 - x.astype(float)), 1, 1e300), 0),
    "digamma": np.ones_like,
    "trigamma": lambda x: np.where(x < 0, 10, 0),
    **dict.fromkeys(BESSEL, lambda x: 1 / (1 + np.sqrt(abs(x.astype(float))))),
    **{name: lambda x, power=power: np.where(x < 0, np.maximum(abs(x.astype(float)), 1) ** power / 2, 0)
       for name, power in (("airy_ai", -0.25), ("airy_slope", 0.25))},
}
# The largest finite arguments: where the references are slow, or of fewer digits.
FURTHEST = {"erfcx": 1e6, "log_ndtr": 1e6, "trigamma": 1e3, **dict.fromkeys((*BESSEL, *MODIFIED), 500.0),
            **dict.fromkeys(AIRY, 100.0)}
ENGINES: list[binding.ExecutionEngine] = []  # kept alive: compiled code dies with its engine


def compiled(emit: Callable[[Lanes, list[ir.Value], list[ir.Value], ir.Value], None], width: int, pointers: int):
    """A C function (pointer.., count) that runs `emit(lanes, pointers, index)` for index in 0, width, .. < count."""
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VOID, [POINTER] * pointers + [I64]), "kernel")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    entry, loop, done = builder.block, function.append_basic_block("loop"), function.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    index = builder.phi(I64)
    emit(Lanes(builder, width), list(function.args[:-1]), index)
    following = builder.add(index, ir.Constant(I64, width))
    index.add_incoming(ir.Constant(I64, 0), entry)
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, function.args[-1]), loop, done)
    builder.position_at_end(done)
    builder.ret_void()

    target = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=2
    )
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    passes = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(speed_level=1))
    passes.getModulePassManager().run(parsed, passes)
    engine = binding.create_mcjit_compiler(parsed, target)
    engine.finalize_object()
    ENGINES.append(engine)
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * pointers, ctypes.c_int64)
    return prototype(engine.get_function_address("kernel"))


def elementwise(name: str, dtype: str, arity: int = 1, width: int | None = None) -> Callable[..., np.ndarray]:
    """FUNCTIONS[name] as a function of arrays (whose length is padded to the width)."""
    lane_count = width or WIDTH[dtype]

    def emit(b: Lanes, pointers: list[ir.Value], index: ir.Value) -> None:
        *sources, target = (b.element_pointer(pointer, index, dtype) for pointer in pointers)
        b.store(FUNCTIONS[name](b, *(b.load(source, dtype) for source in sources), dtype=dtype), target, dtype)

    kernel = compiled(emit, lane_count, arity + 1)

    def run(*arguments: np.ndarray, into: np.ndarray | None = None) -> np.ndarray:
        size = arguments[0].size
        padded = -size % lane_count
        arrays = [np.pad(a, (0, padded)) if padded else a for a in arguments]
        result = np.empty_like(arrays[0]) if into is None else into
        kernel(*(a.ctypes.data for a in arrays), result.ctypes.data, result.size)
        return result[:size]

    return run


# ---- references ----


def sigmoid_reference(x):
    return 1 / (1 + mpmath.exp(-x))


def normal_quantile(p):
    """SciPy's, after two steps of Newton's."""
    x = mpmath.mpf(float(scipy.special.ndtri(p)))
    for _ in range(2):
        x -= (mpmath.ncdf(x) - p) / mpmath.npdf(x)
    return x


MPMATH = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.mpf(2) ** x, "expm1": mpmath.expm1, "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2), "log10": mpmath.log10, "log1p": mpmath.log1p,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan,
    "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh, "asinh": mpmath.asinh, "acosh": mpmath.acosh,
    "atanh": mpmath.atanh, "erf": mpmath.erf, "erfc": mpmath.erfc, "sigmoid": sigmoid_reference,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x), "erfinv": mpmath.erfinv, "pow": mpmath.power, "atan2": mpmath.atan2,
    "log1pexp": lambda x: mpmath.log1p(mpmath.exp(x)), "lgamma": mpmath.loggamma, "digamma": mpmath.digamma,
    "nextafter": lambda x, y: mpmath.mpf(float(np.nextafter(x, y))),
    "frexp": lambda x: mpmath.mpf(float(np.frexp(x)[0])), "frexp_exponent": lambda x: mpmath.mpf(int(np.frexp(x)[1])),
    "trigamma": lambda x: mpmath.psi(1, x), "erfcx": lambda x: mpmath.exp(mpmath.mpf(x) ** 2) * mpmath.erfc(x),
    "ndtri": normal_quantile,
    "log_ndtr": lambda x: mpmath.log(mpmath.ncdf(x)) if x < 0 else mpmath.log1p(-mpmath.ncdf(-x)),
    **{f"bessel_{name}{n}": partial(function, n) for name, function in (("j", mpmath.besselj), ("y", mpmath.bessely))
       for n in (0, 1)},
    **{f"i{n}": partial(mpmath.besseli, n) for n in (0, 1)},
    **{f"i{n}e": lambda x, n=n: mpmath.besseli(n, x) * mpmath.exp(-abs(x)) for n in (0, 1)},
    **{f"modified_bessel_k{n}": partial(mpmath.besselk, n) for n in (0, 1)},
    **{f"scaled_modified_bessel_k{n}": lambda x, n=n: mpmath.besselk(n, x) * mpmath.exp(x) for n in (0, 1)},
    "airy_ai": mpmath.airyai, "airy_slope": partial(mpmath.airyai, derivative=1),
}  # fmt: skip
NUMPY = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "sigmoid": scipy.special.expit, "rsqrt": lambda x: 1 / np.sqrt(x),
    "log1pexp": lambda x: np.logaddexp(0, x), "pow": np.power, "atan2": np.arctan2, "nextafter": np.nextafter,
    "erfinv": lambda x: np.where(x == 0, x, scipy.special.erfinv(x)),  # SciPy's has no -0.0
    # of subnormal numbers SciPy has infinity, and of -inf the same
    "lgamma": lambda x: np.where(
        (abs(x) < 1e-300) & (x != 0), -np.log(abs(x)), np.where(np.isneginf(x), np.inf, scipy.special.gammaln(x))),
    "digamma": scipy.special.digamma, "trigamma": partial(scipy.special.polygamma, 1),
    "frexp": lambda x: np.frexp(x)[0], "frexp_exponent": lambda x: np.frexp(x)[1].astype(x.dtype),
    **{name: getattr(scipy.special, name) for name in ("erfcx", "ndtri", "log_ndtr")}, **BESSEL, **MODIFIED, **AIRY,
}  # fmt: skip
ARITY = {"pow": 2, "atan2": 2, "nextafter": 2, "zeta": 2, "igamma": 2, "igammac": 2}


def numpy_reference(name: str) -> Callable[..., np.ndarray]:
    return NUMPY.get(name) or getattr(np, name)


def error_in_ulp(got: np.ndarray, want: np.ndarray, dtype: str) -> np.ndarray:
    """|got - want| in units of the last place of `want`; infinite where just one of them is NaN."""
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.where(np.isfinite(want), want, 0))[1]
        spacing = np.ldexp(1.0, np.maximum(exponent.astype(np.int64), limits.minexp + 1) - limits.nmant - 1)
        rounded = want.astype(dtype)
        error = np.abs((got.astype(np.longdouble) - want) / spacing)
        error = np.where((got == rounded) & np.isinf(got), 0.0, error)
        error = np.where(np.isnan(got) & np.isnan(want), 0.0, error)
        return np.where(np.isnan(error), np.inf, error).astype(np.float64)


def float64_reference(name: str, columns: list[np.ndarray]) -> np.ndarray:
    """mpmath's value as longdouble at finite arguments; NumPy's limits elsewhere."""
    with np.errstate(all="ignore"):
        limits = numpy_reference(name)(*columns)
    want = limits.astype(np.longdouble)
    with mpmath.workprec(140):
        for i, row in enumerate(zip(*columns, strict=True)):
            if not (np.all(np.isfinite(row)) and np.isfinite(limits[i])) or limits[i] == 0 or want[i] == limits[i] == 1:
                continue
            value = MPMATH[name](*map(float, row))
            if isinstance(value, mpmath.mpc):
                continue
            head = float(value)
            want[i] = np.longdouble(head) + np.longdouble(float(value - head)) if abs(head) > 1e-290 else float(value)
    return want


# ---- arguments ----


def edges(dtype: str) -> np.ndarray:
    limits = np.finfo(dtype)
    positive = [0, limits.smallest_subnormal, limits.smallest_subnormal * 3, limits.tiny, limits.max, np.inf, np.nan]
    positive += [limits.tiny / 2, limits.eps, 0.5, 1, 1 - limits.epsneg, 1 + limits.eps, 2, 3, 10, 100, 1000]
    positive += [2.0**k for k in range(-20, 64, 3)] + [k * np.pi / 2 for k in range(1, 40)]
    positive += [np.log(limits.max), np.log(limits.tiny)]
    positive += [np.log(float(limits.smallest_subnormal)), 88.7, 103.9, 709.78, 745.1, 710.4, 1e30, limits.max / 2]
    values = np.array(positive, dtype)
    values = np.concatenate([values, np.nextafter(values, np.array(4, dtype))])
    return np.concatenate([values, -values])


def samples(name: str, dtype: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Bit patterns of the whole range, everyday magnitudes, and edges; for two arguments, also all pairs of edges."""
    rng = np.random.default_rng(seed)
    integer = np.uint32 if dtype == "float32" else np.uint64
    columns = []
    for _ in range(ARITY.get(name, 1)):
        patterns = rng.integers(0, np.iinfo(integer).max, count // 2, dtype=integer, endpoint=True).view(dtype)
        everyday = (rng.standard_normal(count // 2) * 10.0 ** rng.uniform(-3, 2, count // 2)).astype(dtype)
        columns.append(np.concatenate([patterns, everyday]))
    if len(columns) == 1:
        column = np.concatenate([columns[0], edges(dtype)])
        return [column[~((abs(column) > FURTHEST.get(name, np.inf)) & np.isfinite(column))]]
    few = edges(dtype)[::3]
    pairs = np.meshgrid(few, few)
    close_to_one = (1 + rng.standard_normal(count // 4) * 1e-3).astype(dtype)
    exponent = (rng.standard_normal(count // 4) * 2e5).astype(dtype)
    extras = (close_to_one, exponent)
    return [np.concatenate([c, p.ravel(), e]) for c, p, e in zip(columns, pairs, extras, strict=True)]


def worst_error(name: str, dtype: str, count: int) -> tuple[float, tuple]:
    columns = samples(name, dtype, count)
    return worst_of(name, dtype, elementwise(name, dtype, len(columns)), columns)


def worst_of(
    name: str, dtype: str, function: Callable[..., np.ndarray], columns: list[np.ndarray]
) -> tuple[float, tuple]:
    got = function(*columns)
    if dtype == "float32":
        with np.errstate(all="ignore"):
            want = numpy_reference(name)(*(c.astype(np.float64) for c in columns))
    else:
        want = float64_reference(name, columns)
    error = error_in_ulp(got, want, dtype)
    if name in LEAST:
        error = np.where(np.isfinite(want), np.minimum(error, np.abs(got - want) / np.maximum(
            LEAST[name](columns[0]) * np.finfo(dtype).eps, 1e-300)), error)
    signs = ~np.isnan(got) & (want == 0) & (np.signbit(got) != np.signbit(want))
    error = np.where(signs, np.inf, error)
    worst = int(np.argmax(error))
    return float(error[worst]), (*(c[worst] for c in columns), got[worst], want[worst])


COUNT = {"float32": 100_000, "float64": 1_000}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {"nextafter", "zeta", "igamma", "igammac"}))  # tested below
def test_error_stays_within_the_stated_bound(name: str, dtype: str) -> None:
    slow = dtype == "float64" and name in (*BESSEL, *MODIFIED, *AIRY)  # in mpmath
    error, where = worst_error(name, dtype, 200 if slow else COUNT[dtype])
    assert error <= BOUND.get(name, 2.0), f"{name} {dtype}: {error:.3f} ulp at {where}"


def test_erfc_stays_within_two_ulp_where_it_is_small_beside_one() -> None:
    error, where = worst_of("erfc", "float64", elementwise("erfc", "float64"), [np.linspace(0.7, 1.1, 4000)])
    assert error <= 2.0, where


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1.0), ("float64", 8.0)])
def test_zeta_is_mpmaths_of_terms_from_before_and_after_0(dtype: str, bound: float) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([1 + 10.0 ** rng.uniform(-4, 2, 100), rng.integers(2, 20, 60)]).astype(dtype)
    q = np.concatenate([10.0 ** rng.uniform(-2, 1.3, 100), -rng.uniform(0, 30, 50), -(10.0 ** rng.uniform(-6, 0, 10))])
    q = q.astype(dtype)
    with mpmath.workprec(400):  # of small sums it has an absolute error
        terms = [[mpmath.mpf(float(b) + k) ** -float(a) for k in range(max(0, int(-b) + 1))] for a, b in zip(x, q, strict=True)]
        found = [float(mpmath.fsum(t) + mpmath.zeta(float(a), mpmath.mpf(float(b)) + len(t)))
                 for t, a, b in zip(terms, x, q, strict=True)]
        largest = [float(max([0, *map(abs, t)])) for t in terms]
    want, limits = np.array(found), np.finfo(dtype)
    kept = (np.abs(want) > 1e3 * limits.tiny) & (np.abs(want) < limits.max)
    got = elementwise("zeta", dtype, 2)(x, q)
    unit = np.maximum(np.abs(want), largest) * limits.eps
    assert (np.abs(got - want) <= bound * unit)[kept].all()
    ends = np.array([1, 0.5, np.nan, 2, 3, 2.5, 3, 1e20, np.inf]), np.array([2.0, 2, 0, 0, -4, -0.5, np.inf, 1.5, 0.5])
    ended = elementwise("zeta", dtype, 2)(*[end.astype(dtype) for end in ends])
    np.testing.assert_array_equal(ended, [np.inf, np.nan, np.inf, np.inf, np.inf, np.nan, 0, 0, np.inf])


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 0.51), ("float64", 20.0)])
@pytest.mark.parametrize("upper", [False, True])
def test_incomplete_gamma_functions_are_mpmaths(dtype: str, bound: float, upper: bool) -> None:
    """By each formula: series, fraction, small numbers, and large ones near each other. Errors of tails grow as their
    logarithms do."""
    rng = np.random.default_rng(0)
    a = np.concatenate([10.0 ** rng.uniform(*ends, 40) for ends in ((-6, 0), (-1, 1), (1, 2.9), (3, 4))])
    x = a + a * np.where(a < 1e3, rng.uniform(-0.9, 3, 160), rng.uniform(-3, 3, 160) / np.sqrt(a))
    x[:20] = 10.0 ** rng.uniform(-3, 1, 20)
    a, x = a.astype(dtype), x.astype(dtype)
    got = elementwise("igammac" if upper else "igamma", dtype, 2)(a, x)
    with mpmath.workprec(140):
        ends = [(mpmath.mpf(float(v)), mpmath.inf) if upper else (0, mpmath.mpf(float(v))) for v in x]
        want = [mpmath.gammainc(float(b), *end, regularized=True) for b, end in zip(a, ends, strict=True)]
        error = np.array([float(abs(float(y) / w - 1)) for y, w in zip(got, want, strict=True)])
        size = np.array([1 + float(-mpmath.log(w)) * (dtype == "float64") for w in want])
    limits = np.finfo(dtype)
    kept = np.array(want, float) > limits.tiny
    assert kept.sum() > 120 and (error <= bound * limits.eps * size)[kept].all(), (error / size)[kept].max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_terms_of_zeta_on_both_sides_of_0_cancel_exactly(dtype: str) -> None:
    x = np.array([3, 11, 31], dtype)
    zeta = elementwise("zeta", dtype, 2)
    np.testing.assert_array_equal(zeta(x, np.full_like(x, -1.5)), zeta(x, np.full_like(x, 2.5)))


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "erf", "pow"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_depend_on_neither_width_nor_lane_nor_splatting(name: str, dtype: str) -> None:
    columns = [column[:1024] for column in samples(name, dtype, 2048)]
    arity = len(columns)

    def emit_uniform(b: Lanes, pointers: list[ir.Value], index: ir.Value) -> None:
        *sources, target = (b.element_pointer(pointer, index, dtype) for pointer in pointers)
        values = [b.load_uniform(source, dtype) for source in sources]
        b.store_uniform(FUNCTIONS[name](b, *values, dtype=dtype), target, dtype)

    uniform = np.empty_like(columns[0])
    compiled(emit_uniform, 1, arity + 1)(*(c.ctypes.data for c in columns), uniform.ctypes.data, uniform.size)
    for width in (4, 8, 16, 32):
        np.testing.assert_array_equal(elementwise(name, dtype, arity, width)(*columns), uniform)


def speed(name: str, dtype: str) -> float:
    """Nanoseconds an element, from cache."""
    rng = np.random.default_rng(0)
    size = 1 << 14
    columns = [np.abs(rng.standard_normal(size)).astype(dtype) for _ in range(ARITY.get(name, 1))]
    run, target = elementwise(name, dtype, len(columns)), np.empty(size, dtype)
    times = []
    for _ in range(100):
        start = time.perf_counter()
        run(*columns, into=target)
        times.append(time.perf_counter() - start)
    return min(times) / size * 1e9


def worst_over_all_floats(name: str, stride: int = 1, chunk: int = 1 << 22) -> tuple[float, tuple]:
    """Every `stride`-th of the 2^32 float32 arguments of a unary function."""
    function = elementwise(name, "float32")
    starts = range(0, 1 << 32, chunk * stride)
    patterns = (np.arange(start, min(start + chunk * stride, 1 << 32), stride, dtype=np.uint64) for start in starts)
    return max(
        (worst_of(name, "float32", function, [p.astype(np.uint32).view(np.float32)]) for p in patterns),
        key=lambda found: found[0],
    )


def main() -> None:
    strides = [argument.partition("=")[2] for argument in sys.argv[1:] if argument.startswith("--all-floats")]
    names = [argument for argument in sys.argv[1:] if argument in FUNCTIONS] or sorted(FUNCTIONS)
    for name in names if strides else ():
        if ARITY.get(name, 1) == 1:
            print(name, *worst_over_all_floats(name, int(strides[0] or 1)), flush=True)
    if strides:
        return
    print("function  dtype    max ulp  ns/element  worst at")
    for name in names:
        for dtype in ("float32", "float64"):
            error, where = worst_error(name, dtype, COUNT[dtype])
            print(f"{name:9s} {dtype} {error:8.3f} {speed(name, dtype):11.3f}  {tuple(map(str, where))}", flush=True)


if __name__ == "__main__":
    main()


@pytest.mark.parametrize("name", ["i0", "i1"])
def test_what_grows_beyond_all_numbers_is_infinite_however_far(name):
    far = np.array([715, 1e3, 1e9, 1e20, 1e300])
    np.testing.assert_array_equal(elementwise(name, "float64")(far), np.full(5, np.inf))
    np.testing.assert_array_equal(elementwise(name, "float64")(-far), np.full(5, np.inf if name == "i0" else -np.inf))
