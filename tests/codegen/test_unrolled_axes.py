"""Short last axes run as taps of the axis before them: values as NumPy's and torch's, no lane-by-lane access."""

import numpy as np
import pytest
import torch

import genesis
from genesis.codegen.cpu.emit import emit_kernel
from genesis.codegen.cpu.tiling import blocks_of, width_of
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.tensor.dispatch import array_of
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
CLAIMS = {
    "a row is added to each": lambda f, x, row, column: x * column + row,
    "rows are summed": lambda f, x, row, column: (x * column).sum(1),
    "columns are summed": lambda f, x, row, column: (x + column).sum(0),
    "everything is summed": lambda f, x, row, column: (x * x + row * row).sum(),  # of one sign: no cancellation
    "rows are normalised": lambda f, x, row, column: (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True),
    "the first greatest is found": lambda f, x, row, column: f.argmax(x + column, 1),
    "it is turned": lambda f, x, row, column: (x + column).T * 1,
    "it is turned round": lambda f, x, row, column: f.flip(x + column, (1,)),
    "one column is left out": lambda f, x, row, column: x[:, 1:] + column,
    "columns are put together": lambda f, x, row, column: f.stack([x[:, 0] * 2, x[:, 1] * 3], -1),
    "flags are stored": lambda f, x, row, column: (x > column) & (x > row),
}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("width", [2, 3, 4])
def test_rows_of_a_few_elements(claim, width):
    random = np.random.default_rng(width)  # whichever tests have run before
    for rows in (4, 7, 16, 33, 100):
        arrays = [random.normal(size=shape).astype(np.float32) for shape in ((rows, width), (width,), (rows, 1))]
        assert_close(CLAIMS[claim](genesis, *map(genesis.tensor, arrays)), CLAIMS[claim](torch, *map(torch.tensor, arrays)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("size", [(2, 2), (2, 3), (4, 2)], ids=str)
def test_the_first_of_equal_elements_of_turned_windows(size, dtype):
    random = np.random.default_rng(0)
    for counts in ((2, 3), (5, 8), (3, 17)):
        (a, b), (m, n) = size, counts
        image = random.integers(-1, 2, size=(3, b * n, a * m)).astype(dtype)
        if dtype is not np.int32:
            image[random.random(image.shape) < 0.2] = np.nan
            image[random.random(image.shape) < 0.2] = -np.inf
        found = []
        for lib in (np, genesis):
            x = image if lib is np else genesis.tensor(image)
            windows = x.swapaxes(1, 2).reshape(3, m, a, n, b).swapaxes(2, 3).reshape(3, m, n, a * b)
            found.append([np.asarray(windows.argmax(-1)), np.asarray(windows.argmin(-1))])
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "int64", "bool"])
def test_taps_of_any_dtype(dtype):
    x, y = (RANDOM.integers(0, 2, (50, width)) for width in (3, 1))
    sums = [(f.tensor(x).to(getattr(f, dtype)) + f.tensor(y).to(getattr(f, dtype))).tolist() for f in (genesis, torch)]
    assert sums[0] == sums[1]


def _calls(y):
    stages = plan_for(array_of(y).trace).lowered.schedule.stages
    return [call for stage in stages for call in stage if isinstance(call, KernelCall)]


def _kernels(y):
    return [call.kernel for call in _calls(y)]


def test_pooling_and_its_gradient_neither_gather_nor_scatter():
    x = genesis.tensor(RANDOM.normal(size=(2, 3, 32, 32)).astype(np.float32), requires_grad=True)
    x.sum().item()
    y = genesis.nn.functional.max_pool2d(x.relu(), 2)
    y.backward(genesis.ones_like(y))
    kernels = _kernels(x.grad)
    assert any(kernel.unrolled for kernel in kernels)
    assert not any(way in emit_kernel(k, 16) for k in kernels if k.unrolled for way in ("gathered", "masked.scatter"))


def test_neighbours_share_wide_loads_and_stores():
    def parts(x):
        return [x[:, k : k + 4 * 37 : 4] for k in (0, 1, 3, 2)]

    def combined(x):
        a, b, c, d = parts(x)
        return a * b - c * d

    def spread(library, x):
        y = library.zeros(3, 4 * 37)
        y[:, 0::4], y[:, 1::4], y[:, 3::4] = parts(x)[2] * 2, parts(x)[1] + 1, parts(x)[3] * parts(x)[0]
        return y

    values = RANDOM.normal(size=(3, 4 * 37 + 2)).astype(np.float32)
    *_, kernel = _kernels(combined(genesis.tensor(values) @ genesis.eye(values.shape[1])))
    assert emit_kernel(kernel, 8).count("load <32 x float>") == 1
    assert_close(genesis.compile(combined)(genesis.tensor(values)), combined(values))
    assert_close(genesis.compile(lambda x: spread(genesis, x))(genesis.tensor(values)), spread(torch, torch.tensor(values)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_other_element_is_read_and_written_in_vectors(dtype):
    for extent in (2, 31, 32, 33, 100):
        x = RANDOM.integers(0, 100, (5, extent + 1))
        found = []
        for f in (genesis, torch):
            given = f.tensor(x).to(getattr(f, dtype))
            y = given[:, 0:-1:2] + given[:, 1::2]
            z = f.zeros_like(given)
            z[:, 1::2] = y
            found.append((y.tolist(), z.tolist()))
        assert found[0] == found[1]
    y = genesis.ones(5, 100)[:, ::2] * 2
    assert not any("gathered" in emit_kernel(k, 16) for k in _kernels(y))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "bool", "int8"])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_rows_of_some_elements_apart_fill_vectors_together(step, dtype):
    x = RANDOM.integers(0, 2, (3, 8 * step, 4 * step))
    found = []
    for f in (genesis, torch):
        given = f.tensor(x).to(getattr(f, dtype))
        z = f.zeros_like(given)
        z[:, ::step, ::step], z[:, ::step, 1::step] = given[:, ::step, 1::step], given[:, 1::step, ::step]
        found.append(((given[:, ::step, ::step] == given[:, 1::step, 1::step]).tolist(), z.tolist()))
    assert found[0] == found[1]
    [call] = _calls(genesis.tensor(x.astype(np.float32))[:, ::step, ::step] * 2)
    assert blocks_of(call.kernel, call.extents) == {0: width_of(call.kernel) // 4}


def test_what_the_next_row_reads_is_prefetched_where_lanes_lie_apart():
    x = RANDOM.normal(size=(3, 4, 5, 100)).astype(np.float32)

    def halves(x, step):
        return x[:, 1:, ::2, : 100 // step * step : step] * 2

    for step, prefetches in ((1, False), (2, True)):  # to read
        kernels = _kernels(halves(genesis.tensor(x), step))
        assert any("i32 0, i32 3, i32 1)" in emit_kernel(k, 16) for k in kernels) is prefetches
        assert_close(halves(genesis.tensor(x), step), halves(torch.tensor(x), step))


def test_numbers_of_each_channel_do_not_turn_images_round():
    x, *each = (genesis.tensor(RANDOM.random(shape, np.float32)) for shape in ((3, 32, 16, 16), *((32,),) * 4))
    y = genesis.cat((genesis.nn.functional.batch_norm(x, *each), x), 1)
    assert all(kernel.tiled is None for kernel in _kernels(y))


def test_kernels_of_taps_serve_every_extent_of_the_other_axes():
    def texts(rows):
        y = genesis.ones(rows, 3) * genesis.tensor([[1.0, 2.0, 3.0]])
        return [kernel.text for kernel in _kernels(y)]

    assert texts(100) == texts(1001)
