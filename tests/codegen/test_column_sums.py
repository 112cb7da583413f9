"""Sums of columns taken on the way, by a kernel that passes over rows."""

import numpy as np
import pytest

import genesis
from genesis.execution.flush import flush
from genesis.execution.plan import plan_for
from genesis.tensor.dispatch import array_of
from genesis.tracing.state import current_trace

SHAPES = [(64, 5), (40, 16), (301, 130), (4, 16, 33), (1000, 2)]


def kernels(*outputs):
    stages = plan_for(array_of(outputs[0]).trace).lowered.schedule.stages
    return [call.kernel for stage in stages for call in stage]


@pytest.fixture(autouse=True)
def nothing_is_pending():
    flush(current_trace())


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_and_columns_are_summed_in_one_pass(shape, threads):
    genesis.set_num_threads(threads)
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    others = tuple(range(x.ndim - 1))
    ours = genesis.tensor(x)
    columns, rows = ours.sum(others), (ours * ours).sum(-1)
    normal, twice = ours / rows[..., None], columns * 2 + 1
    (kernel,) = kernels(columns, rows, normal, twice)
    assert kernel.has_totals
    wide = x.astype(np.float64)
    sums, squares = wide.sum(others), (wide * wide).sum(-1)
    for have, want in ((columns, sums), (rows, squares), (normal, wide / squares[..., None]), (twice, sums * 2 + 1)):
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bfloat16"])
@pytest.mark.parametrize("shape", [(1030, 515), (5000, 130), (3, 1700, 128)])
def test_columns_of_a_large_matrix_alone_are_summed_row_by_row(shape, dtype, threads):
    genesis.set_num_threads(threads)
    x = np.random.default_rng(0).integers(-4, 5, shape)
    ours = genesis.tensor(x.astype(np.float64)).to(getattr(genesis, dtype))
    others = tuple(range(x.ndim - 1))
    columns = (ours + 1).sum(others)
    (kernel,) = kernels(columns)
    assert kernel.has_totals
    want = (x + 1).sum(others)
    np.testing.assert_array_equal(columns.to(genesis.float64).numpy(), genesis.tensor(want).to(columns.dtype).double().numpy())


def test_columns_of_what_lies_turned_or_is_narrow_are_summed_as_before():
    x = np.random.default_rng(0).normal(size=(1200, 900))
    turned = genesis.tensor(x).t()
    narrow = genesis.tensor(x).reshape(-1, 6)
    for ours, want in ((turned, x.T), (narrow, x.reshape(-1, 6))):
        columns = ours.sum(0)
        (kernel,) = kernels(columns)
        assert not kernel.has_totals
        np.testing.assert_allclose(columns.numpy(), want.sum(0), atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "int32", "float16", "bfloat16"])
def test_columns_of_every_dtype(dtype):
    x = np.random.default_rng(0).integers(-4, 5, (64, 70))
    ours = genesis.tensor(x.tolist(), dtype=getattr(genesis, dtype))
    rows, columns = ours.sum(1), ours.sum(0)
    assert len(kernels(rows, columns)) == 1
    np.testing.assert_array_equal(rows.to(genesis.float64).numpy(), x.sum(1))
    np.testing.assert_array_equal(columns.to(genesis.float64).numpy(), x.sum(0))


@pytest.mark.parametrize("turned", [False, True])
def test_products_with_a_vector_are_taken_in_the_pass_over_the_matrix(turned):
    h, v = (np.random.default_rng(0).normal(size=shape) for shape in ((60, 20), (60, 1)))
    ours = genesis.tensor(h.T.copy()).T if turned else genesis.tensor(h)
    exp, row = genesis.exp(ours), genesis.tensor(v).T
    outputs = exp.T @ row.T, row @ exp, exp.sum(0)
    assert len(kernels(*outputs)) == 1
    for have, want in zip(outputs, (np.exp(h).T @ v, v.T @ np.exp(h), np.exp(h).sum(0)), strict=True):
        np.testing.assert_allclose(have.numpy(), want)


@pytest.mark.parametrize(("shape", "pass_by_rows"), [((4096, 256), True), ((256, 4096), True), ((200_000, 4), False)])
def test_a_row_times_a_large_matrix_is_summed_row_by_row_if_rows_are_wide(shape, pass_by_rows):
    a, x = np.random.default_rng(0).normal(size=shape), np.random.default_rng(1).normal(size=(1, shape[0]))
    matrix, row = genesis.tensor(a), genesis.tensor(x)
    for multiply in (lambda: row @ matrix, lambda: matrix.T @ row.T):
        product = multiply()
        (kernel,) = kernels(product)
        assert kernel.has_totals == pass_by_rows
        np.testing.assert_allclose(product.numpy().ravel(), (x @ a).ravel(), atol=1e-9)


def test_whoever_reads_sums_of_columns_row_by_row_waits_for_them():
    x = np.random.default_rng(0).normal(size=(50, 20))
    ours = genesis.tensor(x)
    rows, columns = ours.sum(1), ours.sum(0)
    y = ours / columns + rows[:, None]
    np.testing.assert_allclose(y.numpy(), x / x.sum(0) + x.sum(1)[:, None])
    z = (ours - ours.sum(0)).sum(1)  # rows of what columns were taken off
    np.testing.assert_allclose(z.numpy(), (x - x.sum(0)).sum(1), atol=1e-12)


def test_a_transposed_matrix_has_its_rows_where_it_lies():
    x = np.random.default_rng(0).normal(size=(60, 40)).astype(np.float32)
    ours = genesis.tensor(x).T
    np.testing.assert_allclose((ours.sum(1) + 0, ours.sum(0))[0].numpy(), x.T.sum(1), rtol=1e-4, atol=1e-5)
    rows, columns = ours.sum(1), ours.sum(0)
    for have, want in ((rows, x.T.sum(1)), (columns, x.T.sum(0))):
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 3])
def test_columns_of_a_large_array_are_summed_by_the_rows_that_are_written(threads):
    genesis.set_num_threads(threads)
    x = np.random.default_rng(0).normal(size=(8, 100, 700)).astype(np.float32)
    written = genesis.tensor(x) * 2 - 1
    columns = written.sum((0, 1))
    (kernel,) = kernels(written, columns)
    assert [i.level for i in kernel.instructions if i.name == "store"] == ["full", "column"]
    assert kernel.lane_is_reduced  # lanes run along rows, as they lie in memory
    np.testing.assert_array_equal(written.numpy(), x * 2 - 1)
    np.testing.assert_allclose(columns.numpy(), (x.astype(np.float64) * 2 - 1).sum((0, 1)), rtol=1e-5, atol=1e-3)


def test_one_text_serves_every_size():
    def texts(shape):
        x = genesis.tensor(np.ones(shape, np.float32))
        outputs = x.sum(1), x.sum(0)
        return [kernel.text for kernel in kernels(*outputs)]

    assert texts((64, 30)) == texts((200, 111))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sums_of_tensors_of_all_sizes_are_taken_side_by_side(threads):
    genesis.set_num_threads(threads)
    arrays = [np.random.default_rng(n).normal(size=n) for n in (3, 70_000, 4097, 20_000)]
    totals = [genesis.tensor(a).sum() for a in arrays]
    assert [len(stage) for stage in plan_for(array_of(totals[0]).trace).lowered.schedule.stages] == [4]
    np.testing.assert_allclose([t.item() for t in totals], [a.sum() for a in arrays], rtol=1e-12, atol=1e-12)
