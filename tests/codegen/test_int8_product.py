"""The kernel of products with int8 weights: to the bit what integers come to, at any size, on any number of threads."""

import numpy as np
import pytest

import genesis
from genesis.execution.plan import plan_for
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tracing.state import current_trace

SIZES = [(1, 64, 32), (2, 1, 1), (3, 15, 2), (4, 16, 3), (5, 17, 5), (6, 33, 47), (7, 100, 18), (8, 31, 1), (9, 129, 33),
         (70, 48, 40), (2, 0, 3), (0, 4, 4), (2, 3, 0)]


def operands(rows, terms, columns, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.integers(-128, 128, (columns, terms), np.int8)
    return rng.normal(size=(rows, terms)).astype(np.float32), weight, *rng.normal(size=(2, columns)).astype(np.float32)


def product(*arrays):
    return call(OPERATIONS["linear_dynamic"], tuple(map(genesis.tensor, arrays)))


def by_integers(x, weight, scale, bias=None):
    """Sums of int64, each row's levels one by one."""
    found = np.zeros((len(x), len(weight)), np.float32)
    for number, row in enumerate(x):
        largest = np.abs(row).max(initial=np.float32(0))
        levels = np.rint(row * (np.float32(127) / largest)) if largest else np.zeros_like(row)
        sums = weight.astype(np.int64) @ levels.astype(np.int64)
        found[number] = sums.astype(np.float32) * scale * (largest / np.float32(127))
    return found if bias is None else found + bias


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_size_is_exact(sizes):
    x, weight, scale, bias = operands(*sizes)
    np.testing.assert_array_equal(product(x, weight, scale).numpy(), by_integers(x, weight, scale), strict=True)
    np.testing.assert_array_equal(product(x, weight, scale, bias).numpy(), by_integers(x, weight, scale, bias), strict=True)


def test_the_largest_sums_fit():
    terms = 132_104
    x, weight = np.full((1, terms), -3, np.float32), np.full((1, terms), -128, np.int8)
    wanted = np.float32(terms * 128 * 127) * (np.float32(3) / np.float32(127))
    assert product(x, weight, np.ones(1, np.float32)).item() == wanted
    with pytest.raises(ValueError, match="132105 terms may exceed int32; want at most 132104"):
        product(np.zeros((1, terms + 1), np.float32), np.zeros((1, terms + 1), np.int8), np.ones(1, np.float32))


def test_any_number_of_threads_gives_the_same():
    arrays = operands(100, 1200, 300)
    before, found = genesis.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            genesis.set_num_threads(threads)
            found.append(product(*arrays).numpy().copy())
    finally:
        genesis.set_num_threads(before)
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


def test_rows_that_are_zero_tiny_or_not_finite():
    x = np.ones((6, 20), np.float32)
    x[0], x[1], x[2, 3], x[3, 4], x[4] = 0, 1e-40, np.nan, -np.inf, 1e30
    _, weight, scale, bias = operands(1, 20, 5)
    found = product(x, weight, scale, bias).numpy()
    assert (found[:2] == bias).all() and np.isnan(found[2:4]).all()
    np.testing.assert_array_equal(found[4:], by_integers(x[4:], weight, scale, bias))
    with genesis.eager():
        np.testing.assert_array_equal(product(x, weight, scale, bias).numpy(), found)


def test_one_program_computes_it_with_what_surrounds_it():
    x, weight, scale, bias = operands(40, 6, 50)
    parts = [genesis.tensor(part) for part in (weight, scale, bias)]
    y = call(OPERATIONS["linear_dynamic"], (genesis.tensor(x.T.copy()).T[::2] * 2, *parts)).relu()
    assert len(plan_for(current_trace()).segments) == 1
    np.testing.assert_array_equal(y.numpy(), np.maximum(by_integers(x[::2] * 2, weight, scale, bias), 0))


@pytest.mark.parametrize(("change", "message"), [
    ({0: np.float64}, "input is of dtype float64; want float32"), ({1: np.int32}, "the weight is of dtype int32; want int8"),
    ({2: np.float16}, "scale is of dtype float16; want float32"),
])
def test_other_dtypes_are_refused(change, message):
    arrays = [array.astype(change.get(n, array.dtype)) for n, array in enumerate(operands(2, 3, 4))]
    with pytest.raises(TypeError, match=message):
        product(*arrays)


def test_shapes_that_do_not_fit_are_refused():
    x, weight, scale, bias = operands(2, 3, 4)
    with pytest.raises(ValueError, match=r"input \(2, 2\) does not fit weight \(4, 3\); want input \(.., 3\)"):
        product(x[:, 1:], weight, scale)
    with pytest.raises(ValueError, match=r"want the shape \(4,\)"):
        product(x, weight, scale, bias[1:])


def test_a_batch_has_weights_of_its_own():
    arrays = [operands(5, 19, 6, seed) for seed in range(3)]
    found = genesis.vmap(lambda *parts: call(OPERATIONS["linear_dynamic"], parts))(
        *[genesis.tensor(np.stack(parts)) for parts in zip(*arrays, strict=True)])
    assert all(segment.host is None for segment in plan_for(current_trace()).segments)
    np.testing.assert_array_equal(found.numpy(), np.stack([by_integers(*parts) for parts in arrays]))


def test_what_it_comes_after_is_written_in_place():
    x, weight, scale, _ = operands(1, 64, 3)
    parts, cache = [genesis.tensor(part) for part in (weight, scale)], genesis.zeros(2000, 64)

    def step(x):
        cache[-1:] = x
        return call(OPERATIONS["linear_dynamic"], (cache[-1:], *parts))

    compiled = genesis.compile(step)
    for _ in range(3):
        compiled(genesis.tensor(x)).tolist()
    place = cache.data_ptr()
    np.testing.assert_array_equal(compiled(genesis.tensor(2 * x)).numpy(), by_integers(2 * x, weight, scale))
    assert cache.data_ptr() == place and cache[-1].tolist() == (2 * x[0]).tolist()
