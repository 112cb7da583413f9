"""Loads and stores across the lanes go through tiles: values as NumPy's, no lane-by-lane access, one kernel for all sizes."""

import ctypes

import numpy as np
import pytest

import genesis
from genesis.codegen.cpu.emit import emit_kernel
from genesis.codegen.cpu.tiling import vector_bytes
from genesis.codegen.cpu.transpose import transposition
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.lower.listing import listing
from genesis.runtime.kernel_cache import get_or_compile
from genesis.tensor.dispatch import array_of
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
# Shorter than a square and longer, one element beside a square's edge and a block's, several blocks.
SIZES = [(8, 200), (16, 16), (17, 31), (64, 65), (63, 9), (130, 129), (200, 257)]


def _random(*shape):
    return RANDOM.integers(-9, 10, shape).astype(np.float32)  # sums are exact


def _calls(y):
    stages = plan_for(array_of(y).trace).lowered.schedule.stages
    return [call for stage in stages for call in stage if isinstance(call, KernelCall)]


def _neither_gathers_nor_scatters(kernel):
    return not any(way in emit_kernel(kernel, 16) for way in ("gathered", "masked.scatter"))


CLAIMS = {
    "a copy": lambda f, x, y, row: x.T + 0,
    "several turned operands, and what lies straight": lambda f, x, y, row: (x.T * 2 + y) * x.T + row,
    "a rotated copy": lambda f, x, y, row: f.rot90(x),
    "rotated the other way, beside what lies straight": lambda f, x, y, row: f.rot90(x, 3) * y + row,
    "sums of rotated rows": lambda f, x, y, row: f.rot90(x).sum(1),
    "sums of rotated columns": lambda f, x, y, row: (f.rot90(x, 3) * y).sum(0),
    "a turned result": lambda f, x, y, row: (x * x + 1).T + 0,
    "two results": lambda f, x, y, row: f.stack([x.T + y, y - x.T]),
    "sums of rows": lambda f, x, y, row: (x.T + y).sum(1),
    "sums of columns": lambda f, x, y, row: (x.T * y + row).sum(0),
    "rows that are passed over twice": lambda f, x, y, row: (x.T + y) - (x.T + y).max(1)[:, None] if f is np else (
        x.T + y) - (x.T + y).amax(1)[:, None],
    "everything": lambda f, x, y, row: (x.T * y + y).sum(),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_turned_operands(claim):
    compute = CLAIMS[claim]
    for rows, columns in SIZES:
        x, y, row = _random(rows, columns), _random(columns, rows), _random(rows)
        result = compute(genesis, *map(genesis.tensor, (x, y, row)))
        assert_close(result.numpy(), compute(np, x, y, row))


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "uint8", "bool", "int16", "complex64", "complex128"])
def test_elements_of_every_size_are_moved_as_they_are(dtype):
    for rows, columns in SIZES:
        numbers = RANDOM.integers(0, 2 if dtype == "bool" else 100, (rows, columns))
        x = genesis.tensor(numbers).to(getattr(genesis, dtype))
        if "complex" in dtype:
            x, numbers = x * (1 - 2j), numbers * (1 - 2j)
        assert np.array_equal(x.detach().clone().t().contiguous().tolist(), numbers.T)


def test_bits_of_nans_survive():
    bits = RANDOM.integers(0, 1 << 32, (70, 90), dtype=np.uint64).astype(np.uint32)
    turned = genesis.tensor(bits.view(np.float32)).t().contiguous().numpy()
    assert np.array_equal(turned.view(np.uint32), bits.T)


def test_random_permutations_of_slices():
    for _ in range(40):
        rank = RANDOM.integers(2, 6)
        array = _random(*RANDOM.choice([1, 2, 5, 9, 16, 21], rank))
        slices = tuple(slice(RANDOM.integers(0, 2) if extent > 2 else 0, None) for extent in array.shape)
        order = RANDOM.permutation(rank)
        found = genesis.tensor(array)[slices].permute(*map(int, order)).contiguous()
        assert np.array_equal(found.numpy(), array[slices].transpose(order))


def test_writes_through_a_turned_view():
    a, b = _random(100, 77), _random(77, 100)
    x, y = genesis.tensor(a), genesis.tensor(b)
    y.t().copy_(x)
    y.t()[:, 5:60] *= 2
    b.T[:] = a
    b.T[:, 5:60] *= 2
    assert np.array_equal(y.numpy(), b)


def test_turned_kernels_neither_gather_nor_scatter():
    x, y = genesis.tensor(_random(40, 50)), genesis.tensor(_random(50, 40))
    for value in (x.t() + y, (x * 2 + x).t().contiguous(), (x.t() + y).sum(1), (x.t() + y).softmax(1)):
        call = _calls(value)[-1]
        assert call.kernel.tiled is not None and "tiled with lanes" in listing(call)
        assert _neither_gathers_nor_scatters(call.kernel)


def test_one_kernel_serves_all_sizes():
    texts = {_calls(genesis.tensor(_random(*size)).t() * 2)[0].kernel.text for size in SIZES if min(size) > 15}
    assert len(texts) == 1


def test_a_few_rows_are_no_tile():
    [call] = _calls(genesis.tensor(_random(5, 100)).t() * 2)
    assert call.kernel.tiled is None


@pytest.mark.parametrize("register", [16, 32, 64])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_transposition_with_registers_of_any_size(register, size, monkeypatch):
    monkeypatch.setattr("genesis.codegen.cpu.transpose.vector_bytes", lambda: register)
    if register > vector_bytes():
        pytest.skip("this processor has no such registers")
    numbers = [ctypes.c_void_p if n in (0, 2) else ctypes.c_int64 for n in range(7)]
    function = ctypes.CFUNCTYPE(None, *numbers)(get_or_compile([transposition(size)])[0])
    for rows, columns in ((1, 1), (16, 16), (16, 40), (33, 18), (70, 17), (5, 70)):
        source = RANDOM.integers(0, 256, (rows, columns + 3, size), dtype=np.uint8)
        target = np.zeros((columns, rows + 2, size), np.uint8)
        function(source.ctypes.data, columns + 3, target.ctypes.data, rows + 2, rows, columns, 0)
        assert np.array_equal(target[:, :rows], source[:, :columns].swapaxes(0, 1))
        assert not target[:, rows:].any()
