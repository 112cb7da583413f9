"""Kernels: one text for all sizes and values, and IEEE's answers from fused reductions."""

import numpy as np
import pytest

import genesis
from genesis.codegen.cpu import program
from genesis.codegen.cpu.emit import emit_kernel
from genesis.execution import flush
from genesis.execution.plan import key_of, new_plan, plan_for
from genesis.lower.build import KernelCall
from genesis.tensor.dispatch import array_of


def from_numpy(array):
    return genesis.from_numpy(np.asarray(array, np.float32))


def texts(y):
    """The texts of the kernels that compute `y`."""
    stages = plan_for(array_of(y).trace).lowered.schedule.stages
    return [call.kernel.text for stage in stages for call in stage if isinstance(call, KernelCall)]


FUNCTIONS = {
    "chain": lambda x: genesis.tanh(x) * 2.5 + x,
    "broadcast": lambda x: x + x[0],
    "transposed": lambda x: x.T * 2,
    "softmax": lambda x: genesis.softmax(x, 1),
    "column sums": lambda x: x.sum(0),
    "total": lambda x: (x * x).sum(),
    "slices": lambda x: x[1:, ::2] * 3,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_text_serves_every_size(name):
    short = (17, 19) if name == "transposed" else (3, 5)  # what is shorter is no tile
    small, large = (texts(FUNCTIONS[name](from_numpy(np.ones(shape)))) for shape in (short, (60, 111)))
    assert small == large


def test_a_text_does_not_depend_on_values():
    x = from_numpy(np.ones(5))
    first = texts(x * 2.5 + 7)
    second = texts(x * 0.125 + 3)
    assert first == second


def test_a_text_tells_integer_numbers_from_floats():
    """They are read from their words differently."""
    x = from_numpy(np.arange(5))
    np.testing.assert_array_equal((x + 3).numpy(), np.arange(5) + 3)
    np.testing.assert_array_equal((x + 2.5).numpy(), np.arange(5) + 2.5)


SIZES = [1, 15, 16, 17, 63, 64, 65, 4097]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_reductions_pass_on_what_is_not_finite(size, value):
    for place in {0, size // 2, size - 1}:
        x = np.zeros((3, size), np.float32)
        x[1, place] = value
        for ours, numpy in ((genesis.sum, np.sum), (genesis.amax, np.max), (genesis.amin, np.min), (genesis.prod, np.prod)):
            with np.errstate(invalid="ignore"):
                want = numpy(x, axis=1), numpy(x, axis=0), numpy(x)
            have = ours(from_numpy(x), 1), ours(from_numpy(x), 0), ours(from_numpy(x))
            for a, b in zip(have, want, strict=True):
                np.testing.assert_array_equal(a.numpy(), b)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 24, 31, 32, 33, 47, 48, 80, 100, 127, 128, 129, 191])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_what_is_left_of_a_row_is_reduced_whole(size, dtype):
    """In one register or in several, whatever follows the last whole vector."""
    x = np.random.default_rng(size).integers(-9, 9, (3, size)).astype(dtype)
    y = genesis.from_numpy(x)
    pairs = [(y.sum(1), x.sum(1)), (y.sum(0), x.sum(0)), (y.sum(), x.sum()), (y.amax(1), x.max(1)), (y.amin(0), x.min(0)),
             ((y.T * y.T).sum(0), (x.T.astype(dtype) * x.T).sum(0)), (y.any(1), x.any(1))]
    for have, want in pairs:
        np.testing.assert_array_equal(have.numpy(), want)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("find", ["argmax", "argmin"])
def test_of_equals_the_first_is_found(size, find):
    x = np.random.default_rng(size).integers(0, 3, (5, size)).astype(np.float32)
    for array, axis in ((x, 1), (x, 0), (x.T, 0), (x.T, 1), (x.T.copy(), 0), (x[:, ::-1], 1), (x.T, None), (x, None)):
        have = getattr(genesis, find)(genesis.from_numpy(array), axis)
        np.testing.assert_array_equal(have.numpy(), getattr(np, find)(array, axis=axis))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("find", ["argmax", "argmin"])
def test_the_first_nan_is_found(size, find):
    x = np.random.default_rng(size).integers(0, 3, (4, size)).astype(np.float32)
    x[:, size // 2] = np.nan
    x[:, -1] = np.nan
    for array, axis in ((x, 1), (x, 0), (x.T, 0)):
        have = getattr(genesis, find)(genesis.from_numpy(array), axis)
        np.testing.assert_array_equal(have.numpy(), getattr(np, find)(array, axis=axis))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_fused_sum_in_sixteen_bits_is_rounded_as_a_stored_one(dtype):
    x = genesis.from_numpy(np.random.default_rng(0).random((40, 300)).astype(np.float32)).to(getattr(genesis, dtype))
    fused = (x.sum(1, True) * 3 - x * 100).float().numpy()
    total = x.sum(1, True)
    total.numpy()
    np.testing.assert_array_equal(fused, (total * 3 - x * 100).float().numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_literal_in_sixteen_bits_is_rounded_as_a_stored_one(dtype):
    x = genesis.from_numpy(np.linspace(0, 9, 50, dtype=np.float32)).to(getattr(genesis, dtype))
    fused = (x * genesis.full((50,), 0.1, dtype=getattr(genesis, dtype))).float().numpy()
    literal = genesis.full((50,), 0.1, dtype=getattr(genesis, dtype))
    literal.numpy()
    np.testing.assert_array_equal(fused, (x * literal).float().numpy())


def test_lanes_run_along_the_rows_that_are_read_whatever_is_written_once_for_each():
    x = from_numpy(np.ones((300, 200)))
    assert all("axes [keep w0, reduce w1] lane 1" in text for text in texts(x.mean(1) + x.var(1)))


@pytest.mark.parametrize(("units", "axes"), [(10, "[reduce w0, keep w1] lane 1"), (500, "[keep w0, reduce w1] lane 1")])
def test_lanes_are_rows_where_rows_are_short_and_their_elements_are_shared(units, axes):
    x, w, b, v = (from_numpy(np.ones(shape)) for shape in ((100, 1), units, units, units))
    (text,) = texts((genesis.tanh(x * w + b) * v).sum(1))
    assert axes in text


@pytest.fixture
def every_output_past_the_caches(monkeypatch):
    def found(trace, handles):  # those made before know the real size
        return new_plan(trace, key_of(trace, tuple(dict.fromkeys(array.index for array in handles))))

    monkeypatch.setattr(program, "cache_bytes", lambda: 0)
    monkeypatch.setattr(flush, "find_plan", found)


@pytest.mark.usefixtures("every_output_past_the_caches")
@pytest.mark.parametrize("size", SIZES)
def test_what_goes_past_the_caches_arrives(size):
    array = np.random.default_rng(size).normal(size=(3, size + 1)).astype(np.float32)
    x = from_numpy(array)
    np.testing.assert_array_equal((x * 2).numpy(), array * 2)
    np.testing.assert_array_equal((x[:, 1:] * 2).numpy(), array[:, 1:] * 2)  # rows that begin anywhere
    np.testing.assert_allclose(genesis.softmax(x, 1).sum(1).numpy(), np.ones(3), rtol=1e-6)
    np.testing.assert_array_equal(genesis.cat([x, x + 1], 1).numpy(), np.concatenate([array, array + 1], 1))
    x = x + 0
    x *= 3  # written over what was read
    np.testing.assert_array_equal(x.numpy(), array * np.float32(3))


def kernels(y):
    stages = plan_for(array_of(y).trace).lowered.schedule.stages
    return [call.kernel for stage in stages for call in stage if isinstance(call, KernelCall)]


@pytest.mark.usefixtures("every_output_past_the_caches")
@pytest.mark.parametrize(("count", "past"), [(2, True), (12, False)])
def test_many_results_of_a_kernel_go_through_the_caches(count, past):
    array = np.random.default_rng(count).normal(size=(5, 67)).astype(np.float32)
    x = from_numpy(array)
    results = [x * number for number in range(2, count + 2)]
    [kernel] = kernels(results[0])
    assert ("nontemporal" in emit_kernel(kernel, 16)) is past
    for number, result in enumerate(results, 2):
        np.testing.assert_array_equal(result.numpy(), array * number)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_elementary_function_of_many_uses_is_compiled_once_and_called(dtype):
    data = np.array([0.3, -1.7, np.inf, np.nan, 2e5, -0.0] * 11, dtype)
    x, y = genesis.from_numpy(data), data.astype(np.float64)
    (few,) = [emit_kernel(kernel, 16) for kernel in kernels(genesis.sin(x) + 0.5)]
    many = x
    for _ in range(5):
        many = genesis.sin(many) + genesis.atan2(many, x)
        with np.errstate(invalid="ignore"):
            y = np.sin(y) + np.arctan2(y, data.astype(np.float64))
    (text,) = [emit_kernel(kernel, 16) for kernel in kernels(many)]
    assert "define internal" not in few and text.count("define internal") == 2
    np.testing.assert_allclose(many.numpy(), y, rtol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_of_many_uses_are_compiled_once_and_called_and_are_the_same(dtype):
    kind, draws = getattr(genesis, dtype), (genesis.randn, genesis.rand)
    found = []
    for alone in (True, False):
        genesis.manual_seed(3)
        drawn = [draw(37, dtype=kind) for _ in range(5) for draw in draws]
        total = drawn[0]
        if alone:
            [each.numpy() for each in drawn]
        for each in drawn[1:]:
            total = total + each * each
        if not alone:
            assert max(emit_kernel(kernel, 16).count("define internal") for kernel in kernels(total)) == 2
        found.append(total.numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("width", [5, 20])
def test_a_chunk_begins_and_ends_anywhere_in_a_nest_of_loops(width, monkeypatch):
    monkeypatch.setattr(program, "SHARES", 41)
    x, y = np.random.default_rng(0).normal(size=(2, 9, 12, 13, 8, width + 1)).astype(np.float32)
    a, b = from_numpy(x)[:, 1:, ::2, :7, :width], from_numpy(y)[:, :11, :7, 1:, 1:]
    found = ((a * b[:, :, :1] + b[:1]) * a[:, :, :, 2:3]).numpy()
    p, q = x[:, 1:, ::2, :7, :width], y[:, :11, :7, 1:, 1:]
    np.testing.assert_allclose(found, (p * q[:, :, :1] + q[:1]) * p[:, :, :, 2:3], 1e-6, 1e-6)
