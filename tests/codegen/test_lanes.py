"""Lanes: each method against NumPy, on a kernel of one vector."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from test_vector_math import compiled

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.partial_stores import store_apart, store_first
from genesis.codegen.cpu.registers import I64
from genesis.codegen.cpu.vector_math import random_bits

WIDTH = 16
SIGNED = ["int8", "int16", "int32", "int64"]
FLOATS = ["float32", "float64"]


def run(compute, sources: list[tuple[np.ndarray, str]], dtype: str, into: np.ndarray) -> np.ndarray:
    """compute(lanes, *values) over vectors of `sources` (arrays and their dtypes), stored as `dtype`."""

    def emit(b: Lanes, pointers: list[ir.Value], index: ir.Value) -> None:
        *inputs, target = pointers
        values = [
            b.load(b.element_pointer(pointer, index, name), name)
            for pointer, (_, name) in zip(inputs, sources, strict=True)
        ]
        b.store(compute(b, *values), b.element_pointer(target, index, dtype), dtype)

    kernel = compiled(emit, WIDTH, len(sources) + 1)
    kernel(*(array.ctypes.data for array, _ in sources), into.ctypes.data, into.size)
    return into


def integers(dtype: str, size: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    few = np.array([0, 1, 2, 3, 7, limits.max, limits.min, limits.min + 1, limits.max - 1], dtype)
    few = np.concatenate([few, -few])
    a, b = (rng.choice(few, size) for _ in range(2))
    a[::2], b[::4] = rng.integers(limits.min, limits.max, size // 2), rng.integers(limits.min, limits.max, size // 4)
    return a.astype(dtype), b.astype(dtype)


def floats(dtype: str, size: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    few = [0.0, -0.0, 1.0, -1.0, 3.0, 0.5, np.inf, -np.inf, np.nan]
    few += [np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
    a, b = (rng.choice(np.array(few, dtype), size) for _ in range(2))
    a[::2] = rng.standard_normal(size // 2) * 10.0 ** rng.uniform(-30, 30, size // 2)
    b[::3] = rng.standard_normal(b[::3].size) * 10.0 ** rng.uniform(-30, 30, b[::3].size)
    return a, b


@pytest.mark.parametrize("dtype", [*SIGNED, "uint8"])
def test_gcd_of_all_pairs_of_extremes_is_numpys(dtype: str) -> None:
    a, b = integers(dtype)
    gcd = run(lambda lanes, x, y: Arithmetic(lanes, dtype).gcd(x, y), [(a, dtype), (b, dtype)], dtype, np.empty_like(a))
    np.testing.assert_array_equal(gcd, np.gcd(a, b))


@pytest.mark.parametrize("dtype", [*SIGNED, "uint8"])
def test_integer_division_floors_and_never_traps(dtype: str) -> None:
    a, b = integers(dtype)
    with np.errstate(all="ignore"):
        quotient, rest = a // b, a % b
    source = [(a, dtype), (b, dtype)]
    got = run(lambda lanes, x, y: lanes.floor_divide(x, y, dtype), source, dtype, np.empty_like(a))
    np.testing.assert_array_equal(got[b != 0], quotient[b != 0])  # what is divided by 0 is no result
    got = run(lambda lanes, x, y: lanes.remainder(x, y, dtype), source, dtype, got)
    np.testing.assert_array_equal(got[b != 0], rest[b != 0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_fmod_is_exact_and_remainder_takes_the_divisors_sign(dtype: str) -> None:
    a, b = floats(dtype)
    with np.errstate(all="ignore"):
        want = np.fmod(a, b)
        python = np.where((want != 0) & ((want < 0) != (b < 0)), want + b, want)
    source = [(a, dtype), (b, dtype)]
    got = run(lambda lanes, x, y: lanes.fmod(x, y), source, dtype, np.empty_like(a))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))
    got = run(lambda lanes, x, y: lanes.remainder(x, y, dtype), source, dtype, got)
    np.testing.assert_array_equal(got, python)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_floor_division_agrees_with_numpy(dtype: str) -> None:
    a, b = floats(dtype)
    with np.errstate(all="ignore"):
        want = np.floor_divide(a, b)
    got = run(lambda lanes, x, y: lanes.floor_divide(x, y, dtype), [(a, dtype), (b, dtype)], dtype, np.empty_like(a))
    with np.errstate(all="ignore"):
        near = np.isfinite(want) & (np.abs(want) > 2.0 ** np.finfo(dtype).nmant)
    np.testing.assert_array_equal(got[~near], want[~near])
    np.testing.assert_allclose(got[near], want[near], rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extrema_propagate_nan(name: str, dtype: str) -> None:
    a, b = floats(dtype)
    got = run(lambda lanes, x, y: getattr(lanes, name)(x, y), [(a, dtype), (b, dtype)], dtype, np.empty_like(a))
    np.testing.assert_array_equal(got, getattr(np, name)(a, b))


@pytest.mark.parametrize("predicate", ["<", "<=", "==", "!=", ">", ">="])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_comparisons_agree_with_numpy(predicate: str, dtype: str) -> None:
    a, b = floats(dtype) if dtype in FLOATS else integers(dtype)
    want = {"<": a < b, "<=": a <= b, "==": a == b, "!=": a != b, ">": a > b, ">=": a >= b}[predicate]
    source = [(a, dtype), (b, dtype)]
    got = run(lambda lanes, x, y: lanes.compare(predicate, x, y, dtype), source, "bool", np.empty(a.size, bool))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("source", [*SIGNED, "uint8", "bool", *FLOATS])
@pytest.mark.parametrize("target", [*SIGNED, "uint8", "bool", *FLOATS])
def test_conversion_agrees_with_numpy_in_range(source: str, target: str) -> None:
    if source in FLOATS:
        a = np.concatenate([np.random.default_rng(0).uniform(-100, 100, 1022), [0.0, -0.0]]).astype(source)
        a = np.abs(a) if target == "uint8" else a
    else:
        a = integers("uint8" if source == "bool" else source)[0]
        a = (a & 1).astype(bool) if source == "bool" else a
    got = run(lambda lanes, x: lanes.convert(x, source, target), [(a, source)], target, np.empty(a.size, target))
    np.testing.assert_array_equal(got, a.astype(target))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int32", "int64", "uint32", "uint64"])
def test_conversion_of_floats_saturates_and_nan_is_zero(source: str, target: str) -> None:
    ends = [sign * (2.0**bits + add) for bits in (31, 32, 53, 63, 64) for sign in (1, -1) for add in (-1, -0.5, 0, 1)]
    a = np.array([np.nan, np.inf, -np.inf, 2.5, -2.5, 1e30, -1e30, -0.0, *ends], source)
    a = np.resize(np.concatenate([a, np.nextafter(a, 0, dtype=source)]), 96)
    got = run(lambda lanes, x: lanes.convert(x, source, target), [(a, source)], target, np.empty(a.size, target))
    least, most = np.iinfo(target).min, np.iinfo(target).max
    want = [0 if np.isnan(x) else int(np.clip(x, float(least), float(most))) for x in a.tolist()]
    np.testing.assert_array_equal(got, np.array([min(max(x, least), most) for x in want], target))


def bfloat16_reference(x: np.ndarray) -> np.ndarray:
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), ((bits >> 16) | 0x40).astype(np.uint16), rounded)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_small_floats_round_to_even_on_the_way_to_memory(dtype: str) -> None:
    patterns = np.random.default_rng(0).integers(0, 2**32, 1 << 16, dtype=np.uint32)
    x = np.concatenate([patterns.view(np.float32), np.linspace(-7e4, 7e4, 4096, dtype=np.float32)])
    with np.errstate(all="ignore"):
        want = x.astype(np.float16).view(np.uint16) if dtype == "float16" else bfloat16_reference(x)
    stored = run(lambda lanes, v: v, [(x, "float32")], dtype, np.empty(x.size, np.uint16))
    np.testing.assert_array_equal(stored[~np.isnan(x)], want[~np.isnan(x)])
    loaded = run(lambda lanes, v: v, [(stored, dtype)], "float32", np.empty_like(x))
    rounded = run(lambda lanes, v: lanes.round_to(dtype, v), [(x, "float32")], "float32", np.empty_like(x))
    np.testing.assert_array_equal(loaded, rounded)
    assert np.isnan(loaded[np.isnan(x)]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "float16"])
def test_masked_tail_touches_nothing_beyond_it(dtype: str) -> None:
    memory = np.dtype(dtype)
    source, target = np.ones(WIDTH, memory), np.zeros(WIDTH, memory)

    def emit(b: Lanes, pointers: list[ir.Value], index: ir.Value) -> None:
        mask = b.first_lanes(ir.Constant(I64, 11))
        b.store(b.load(pointers[0], dtype, mask), pointers[1], dtype, mask)

    compiled(emit, WIDTH, 2)(source.ctypes.data, target.ctypes.data, WIDTH)
    np.testing.assert_array_equal(target, np.arange(WIDTH) < 11)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "int8"])
def test_stores_without_masks_write_the_first_elements_alone(dtype: str) -> None:
    def emit(b: Lanes, pointers: list[ir.Value], index: ir.Value) -> None:
        source, first, apart = pointers
        x = b.load(b.element_pointer(source, index, dtype), dtype)
        count = b.builder.sub(b.builder.udiv(index, I64(WIDTH)), I64(1))
        store_first(b.builder, x, b.element_pointer(first, index, dtype), count)
        target = b.element_pointer(apart, b.builder.mul(index, I64(3)), dtype)
        store_apart(b.builder, {0: x, 2: b.add(x, x)}, target, 3, b.first_lanes(count))

    counts = np.arange(-1, WIDTH + 2)
    source = np.arange(counts.size * WIDTH).reshape(-1, WIDTH).astype(dtype)
    first, apart = np.zeros_like(source), np.zeros((*source.shape, 3), dtype)
    compiled(emit, WIDTH, 3)(source.ctypes.data, first.ctypes.data, apart.ctypes.data, source.size)
    wanted = np.where(np.arange(WIDTH) < counts[:, None], source, 0)
    np.testing.assert_array_equal(first, wanted)
    np.testing.assert_array_equal(apart, np.stack([wanted, np.zeros_like(wanted), 2 * wanted], axis=-1))


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
def test_gather_and_scatter_follow_offsets_and_mask(dtype: str) -> None:
    memory = np.dtype({"bfloat16": "uint16"}.get(dtype, dtype))
    source = np.arange(3 * WIDTH).astype(memory) if dtype != "bfloat16" else np.full(3 * WIDTH, 0x3F80, np.uint16)
    target = np.zeros(2 * WIDTH, memory)

    def emit(b: Lanes, pointers: list[ir.Value], index: ir.Value) -> None:
        mask = b.first_lanes(ir.Constant(I64, 13))
        value = b.gather(pointers[0], b.multiply(b.lane_index(), 3), dtype, mask)
        b.scatter_store(value, pointers[1], b.multiply(b.lane_index(), 2), dtype, mask)

    compiled(emit, WIDTH, 2)(source.ctypes.data, target.ctypes.data, WIDTH)
    want = np.zeros_like(target)
    want[: 2 * 13 : 2] = source[: 3 * 13 : 3]
    np.testing.assert_array_equal(target, want)


@pytest.mark.parametrize("method", ["add", "multiply", "minimum", "maximum", "and", "or"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_reductions_over_the_lanes(method: str, dtype: str) -> None:
    if (method in ("and", "or") and dtype == "float32") or (method in ("add", "multiply") and dtype == "bool"):
        pytest.skip("no such reduction")
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 200, WIDTH).astype(dtype)
    combine = f"logical_{method}" if method in ("and", "or") else method
    options = {"dtype": dtype} if method in ("minimum", "maximum") else {}
    got = run(
        lambda b, v: b.horizontal_reduce(partial(getattr(b, combine), **options), v), [(x, dtype)], dtype, np.empty_like(x))
    function = {"and": np.bitwise_and, "or": np.bitwise_or}.get(method) or getattr(np, method)
    want = function.reduce(x, dtype=x.dtype)
    np.testing.assert_allclose(got, np.full_like(x, want), rtol=1e-6)


def threefry(key: tuple[int, int], counters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The two words for each of `counters` (n, 2)."""
    words = [np.ascontiguousarray(column) for column in counters.astype(np.uint32).T]
    results = []
    for word in range(2):
        results.append(
            run(
                lambda b, x, y, word=word: random_bits.threefry2x32(
                    b, b.constant("uint32", key[0]), b.constant("uint32", key[1]), x, y
                )[word],
                [(column, "uint32") for column in words], "uint32", np.empty_like(words[0]),
            )
        )  # fmt: skip
    return results[0], results[1]


@pytest.mark.parametrize(
    ("key", "counter", "want"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_known_answers_of_random123(key, counter, want) -> None:
    first, second = threefry(key, np.tile(np.array(counter, np.uint32), (WIDTH, 1)))
    assert (int(first[3]), int(second[3])) == want


def test_uniforms_fill_the_half_open_unit_interval() -> None:
    first, second = threefry((1, 2), np.stack([np.arange(1 << 16), np.zeros(1 << 16)], 1))
    first[:2], second[:2] = (0, 0xFFFFFFFF), (0, 0xFFFFFFFF)
    single = run(random_bits.uniform_float32, [(first, "uint32")], "float32", np.empty(first.size, np.float32))
    bits = [(first, "uint32"), (second, "uint32")]
    double = run(random_bits.uniform_float64, bits, "float64", np.empty(first.size))
    np.testing.assert_array_equal(single, (first >> 8) * np.float32(2.0**-24))
    np.testing.assert_array_equal(double, ((first >> 5) * 2.0**26 + (second >> 6)) * 2.0**-53)
    assert single.min() == double.min() == 0 and single.max() == 1 - 2.0**-24 and double.max() == 1 - 2.0**-53


def test_normals_have_unit_variance_and_stay_finite() -> None:
    first, second = threefry((3, 4), np.stack([np.arange(1 << 16), np.zeros(1 << 16)], 1))
    first[:2] = (0, 0xFFFFFFFF)
    bits = [(first, "uint32"), (second, "uint32")]
    draws = run(random_bits.normal_float32, bits, "float32", np.empty(first.size, np.float32))
    assert np.isfinite(draws).all() and abs(draws.mean()) < 0.02 and abs(draws.std() - 1) < 0.02
    assert abs(draws).max() <= math.sqrt(-2 * math.log(2.0**-24)) + 1e-5
