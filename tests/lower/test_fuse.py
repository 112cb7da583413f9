"""What runs together: fused functions are one kernel, updates of several parameters one stage."""

import numpy as np
import pytest

import genesis
from genesis.execution.flush import flush
from genesis.execution.plan import plan_for
from genesis.lower.build import KernelCall
from genesis.tensor.dispatch import array_of
from genesis.tensor.owned_memory import FEW
from genesis.tracing.state import current_trace


@pytest.fixture(autouse=True)
def nothing_is_pending():
    """What another test left to be computed would be a part of these programs."""
    flush(current_trace())


def normal(*shape):
    return genesis.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def stages(*outputs):
    """The kernels of each stage of the program that computes `outputs`."""

    schedule = plan_for(array_of(outputs[0]).trace).lowered.schedule
    return [[call.kernel for call in stage if isinstance(call, KernelCall)] for stage in schedule.stages]


FUSED = {
    "chain": lambda x: genesis.silu(x * 2.5 + 1),
    "chain and sum": lambda x: genesis.exp(x * 2.5).sum(),
    "chain and row sums": lambda x: (genesis.exp(x) + x).sum(1),
    "softmax": lambda x: genesis.softmax(x, 1),
    "log_softmax": lambda x: genesis.log_softmax(x, 1),
    "layer_norm": lambda x: genesis.layer_norm(x, (100,)),
    "rms_norm": lambda x: genesis.rms_norm(x, (100,)),
    "cross_entropy": lambda x: genesis.cross_entropy(x, genesis.tensor([3] * 200)),
    "lerp": lambda x: genesis.lerp(x, normal(200, 100), 0.3),
    "lerp by a tensor": lambda x: genesis.lerp(x, normal(200, 100), normal()),
    "values that are joined": lambda x: genesis.cat((x.exp(), x.sin(), x.exp() * x.sin()), 1),
    "transposed operand": lambda x: x + normal(100, 200).T,
}


@pytest.fixture
def one_thread():
    before = genesis.get_num_threads()
    genesis.set_num_threads(1)
    yield
    genesis.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", FUSED)
def test_is_one_kernel(name):
    y = FUSED[name](normal(200, 100))
    assert [len(stage) for stage in stages(y)] == [1]


def test_updates_of_several_parameters_are_one_stage():
    shapes = [(30, 20), (20,), (20, 10), (10,)]
    parameters = [normal(*shape) for shape in shapes]
    updated = [p - 0.1 * genesis.sign(p) for p in parameters]
    assert [len(stage) for stage in stages(*updated)] == [4]


def test_a_group_stays_convex():
    """`total` needs a product of `x`, and the chain's end needs both: one loop cannot hold the chain."""
    x = normal(16, 16)
    first = genesis.exp(x)
    through = first @ first
    last = first + through
    assert len(stages(last)) == 3
    np.testing.assert_allclose(last.numpy(), np.exp(x.numpy()) + np.exp(x.numpy()) @ np.exp(x.numpy()), rtol=1e-5)


def test_single_numbers_part_no_kernel():
    x, w = normal(200, 100), normal()
    y = x * 2 + x.exp()
    z = y * (w.abs().sqrt() + 1)  # computed from `w` alone, later than `y`
    del y
    assert [len(stage) for stage in stages(z)] == [1]
    a, b = x.numpy(), w.numpy()
    np.testing.assert_allclose(z.numpy(), (a * 2 + np.exp(a)) * (np.sqrt(abs(b)) + 1), rtol=1e-5, atol=1e-6)


def test_single_numbers_of_a_total_wait_for_it():
    x, y = normal(20, 10), normal(30, 10)
    total = x.sum()
    scale = total * total + 1
    z = (y + scale) * (y * total).sum()
    a, b = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
    np.testing.assert_allclose(z.numpy(), (b + a.sum() ** 2 + 1) * (b * a.sum()).sum(), rtol=1e-4)


def test_kernels_do_not_grow_without_bound():
    y = x = normal(8)
    for k in range(400):
        y = genesis.tanh(y) + x * (k + 0.5)
    assert max(len(kernel.instructions) for stage in stages(y) for kernel in stage) < 400


def test_the_gradients_of_a_norm_are_one_pass_over_its_rows():
    """Those of weight and bias are sums of columns, taken on the way."""
    x, g = normal(60, 300), normal(60, 300)
    weight, bias = (genesis.ones(300, requires_grad=True) for _ in range(2))
    x.requires_grad_()
    y = genesis.layer_norm(x, (300,), weight, bias)
    flush(current_trace())
    y.backward(g)
    (gradients,) = [kernel for stage in stages(x.grad, weight.grad, bias.grad) for kernel in stage]
    assert [i.level for i in gradients.instructions if i.name == "store"] == ["column", "column", "full"]


def test_what_is_put_into_a_value_that_nobody_else_reads_is_put_into_its_memory():
    x = normal(4, FEW)  # rows that are not written at once
    y = x.clone()
    for row in range(4):
        y[row] = x[row] * row
    assert sum(len(stage) for stage in stages(y)) == 5  # a copy of `x`, and what is put into it
    np.testing.assert_array_equal(y.numpy(), x.numpy() * np.arange(4, dtype=np.float32)[:, None])


def test_what_is_put_over_a_value_that_is_read_is_put_into_a_copy():
    x = normal(4, 100)
    y = x.clone()
    y[0] = x[1]
    before = y.sum()
    y[1] = y[0] + y[2]
    after = y * 1
    expected = x.numpy().copy()
    expected[0] = expected[1]
    assert abs(before.item() - expected.sum()) < 1e-3
    expected[1] = expected[0] + expected[2]
    np.testing.assert_array_equal(after.numpy(), expected)


def test_a_product_with_windows_shares_its_kernel_with_nothing_of_its_size():
    x, weights = normal(2, 4, 20, 20), [normal(4, 4, 3, 3) * n for n in range(1, 4)]
    products = [kernel for stage in stages(*(genesis.nn.functional.conv2d(x, w) for w in weights)) for kernel in stage
                if kernel.is_product]
    assert len(products) == 3


def test_rows_of_a_pending_result_are_stored_by_kernels_of_few_stores():
    y = genesis.tensor(np.ones((90, 7), np.float32)) * 2
    rows = list(y)
    plan = plan_for(array_of(y).trace)
    calls = [call for stage in plan.lowered.schedule.stages for call in stage if isinstance(call, KernelCall)]
    assert sum(len(call.writes) for call in calls) == 1 + len(rows) and max(len(call.writes) for call in calls) <= 16


def test_weights_of_a_single_query_are_computed_once_each():
    query, keys = normal(1, 2, 1, 32), normal(1, 2, 300, 32)
    kernels = [k for stage in stages(genesis.scaled_dot_product_attention(query, keys, keys)) for k in stage]
    with_exponentials = [kernel for kernel in kernels if "exp" in [i.name for i in kernel.instructions]]
    assert len(with_exponentials) == 1, "not again in the sum over keys"


def test_what_many_rows_read_is_computed_once():
    x, row = normal(40, 30), normal(30)
    kernels = [k for stage in stages(x * row.sin()) for k in stage]
    (computed,) = [kernel for kernel in kernels if "sin" in [i.name for i in kernel.instructions]]
    assert len(computed.axes) == 1, "not again for each of 40 rows"
    (kernel,) = [k for stage in stages(x * (row + 1)) for k in stage]
    assert "add" in [i.name for i in kernel.instructions], "a sum is cheaper than a pass over memory"
