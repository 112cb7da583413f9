"""Tensors on a GPU: made there, sent there and back, computed with, viewed, written to, differentiated."""

import copy
import io
import pickle

import numpy as np
import pytest

import genesis
from genesis.codegen.cuda import program as assembly
from genesis.execution.plan import plan_for
from genesis.tensor.dispatch import array_of
from tests.tolerances import assert_close

HERE, THERE = genesis.device("cpu"), genesis.device("cuda")

SQUARE = np.arange(12, dtype=np.float32).reshape(3, 4) / 4 - 1
COMPUTED = {
    "elementwise": lambda x: (x * 2 + 1).tanh() - x.abs().sqrt() / (x.exp() + 3),
    "complex": lambda x: genesis.complex(x, x + 1).exp() / genesis.complex(x, -x) * 1j,
    "parts": lambda x: (genesis.complex(x, x + 1)[1:, ::2] @ genesis.complex(x[:2, :2], -x[:2, :2])).abs().sum(),
    "complex32": lambda x: genesis.complex(x * 1e-5, x * 3e4).chalf() * (1 + 0.3j),
    "parts of complex32": lambda x: genesis.complex(x.half(), x.half() + 1).conj()[1:].imag.sum(),
    "numbers": lambda x: 1 - x**2 + 0.25 * x,
    "integers": lambda x: (x * 4).long() // 3 % 2,
    "comparison": lambda x: (x > 0) & (x < 1),
    "where": lambda x: genesis.where(x > 0, x, -x),
    "broadcast": lambda x: x + x[0] * x[:, :1],
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(1),
    "sum of columns": lambda x: x.sum(0, keepdim=True),
    "mean and var": lambda x: x.mean(0) + x.var(0),
    "max": lambda x: x.max(1).values,
    "argmax": lambda x: x.argmax(1),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "layer_norm": lambda x: genesis.nn.functional.layer_norm(x, (4,)),
    "cumsum": lambda x: x.cumsum(1),
    "transpose": lambda x: (x.T + 1).contiguous(),
    "slice": lambda x: x[1:, ::2] * 2,
    "cat": lambda x: genesis.cat([x, x[:1]]),
    "index": lambda x: x[genesis.tensor([2, 0], device=x.device)],
    "index list": lambda x: x[[2, 0], [1, 3]],
    "mask": lambda x: x[x > 0],
    "gather": lambda x: x.gather(1, genesis.tensor([[0], [3], [1]], device=x.device)),
    "scatter_add": lambda x: genesis.zeros(3, 2, device=x.device).scatter_add(1, (x > 0).long(), x),
    "index_add": lambda x: x.index_add(0, genesis.tensor([0, 0], device=x.device), x[1:]),
    "matmul": lambda x: x @ x.T,
    "batched matmul": lambda x: x.reshape(3, 2, 2) @ x.reshape(3, 2, 2).transpose(1, 2),
    "linear": lambda x: genesis.nn.functional.linear(x, x, x[:, 0]),
    "conv2d": lambda x: genesis.nn.functional.conv2d(x.reshape(1, 1, 3, 4), x[:2, :2].reshape(1, 1, 2, 2), padding=1),
    "max_pool2d": lambda x: genesis.nn.functional.max_pool2d(x.reshape(1, 1, 3, 4), 2, 1),
    "sort": lambda x: x.sin().sort(1).values,
    "nonzero": lambda x: (x > 0).nonzero(),
    "unique": lambda x: (x * 2).long().unique(),
    "float64": lambda x: x.double() / 3,
    "float16": lambda x: x.half() * 3,
    "bfloat16": lambda x: x.bfloat16() + 1,
    "bool": lambda x: x.bool().all(1),
    "empty": lambda x: x[:0] + 1,
    "0-d": lambda x: x[1, 1] * genesis.tensor(2.0),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_the_gpu_computes_what_the_cpu_computes(name):
    there = COMPUTED[name](genesis.tensor(SQUARE, device=THERE))
    assert there.device is THERE
    assert_close(there.cpu(), COMPUTED[name](genesis.tensor(SQUARE)))


MADE = {
    "tensor": lambda d: genesis.tensor([[1, 2], [3, 4]], device=d),
    "full": lambda d: genesis.full((2,), 7.5, device=d),
    "arange": lambda d: genesis.arange(5, device=d),
    "eye": lambda d: genesis.eye(3, device=d),
    "rand": lambda d: genesis.rand(5, device=d),
    "randn": lambda d: genesis.randn(5, device=d),
    "randint": lambda d: genesis.randint(10, (5,), device=d),
    "randperm": lambda d: genesis.randperm(5, device=d),
    "dropout": lambda d: genesis.nn.functional.dropout(genesis.ones(20, device=d), 0.5),
    "bernoulli": lambda d: genesis.bernoulli(genesis.full((8,), 0.5, device=d)),
    "multinomial": lambda d: genesis.multinomial(genesis.ones(4, device=d), 3),
    "init": lambda d: genesis.nn.init.xavier_uniform_(genesis.empty(2, 3, device=d)),
    "as_tensor": lambda d: genesis.as_tensor(np.ones(3), device=d),
}


@pytest.mark.parametrize("name", MADE)
def test_tensors_are_made_there_with_the_numbers_of_the_cpu(name):
    genesis.manual_seed(3)
    here = MADE[name](HERE)
    genesis.manual_seed(3)
    there = MADE[name](THERE)
    assert there.device is THERE and there.is_cuda
    assert_close(there.cpu(), here)


# ---- there and back ----


@pytest.mark.parametrize("dtype", [genesis.float32, genesis.float64, genesis.float16, genesis.bfloat16, genesis.int64,
                                   genesis.int8, genesis.uint8, genesis.bool])
def test_values_of_every_dtype_go_and_come(dtype):
    x = genesis.tensor([0, 1, 3, 1], dtype=dtype)
    assert x.to("cuda", non_blocking=True).cpu().tolist() == x.tolist() == x.cuda().tolist()


def test_what_is_larger_than_a_staging_buffer_goes_in_pieces():
    values = np.arange(2_500_000, dtype=np.float32)
    assert np.array_equal(genesis.tensor(values, device=THERE).cpu().numpy(), values)


def test_the_first_gpu_has_three_names():
    assert genesis.device("cuda:0") is THERE is genesis.device("cuda", 0)
    assert (THERE.type, THERE.index, repr(THERE)) == ("cuda", 0, "device(type='cuda', index=0)")
    with pytest.raises(ValueError, match="'cuda:1' is not available: the last one here is 'cuda:0'"):
        genesis.zeros(2, device="cuda:1")


def test_a_tensor_is_copied_only_if_it_has_to_be():
    x = genesis.ones(2, device=THERE)
    assert x.cuda() is x.cuda(0) is x.to("cuda:0") is x and x.to(THERE, copy=True) is not x
    y = x.cpu()
    y.add_(1)
    assert x.tolist() == [1, 1] and y.tolist() == [2, 2]


def test_tensors_go_as_scripts_that_prefetch_send_them():
    x = genesis.ones(2).pin_memory().cuda(non_blocking=True)
    x.record_stream(genesis.cuda.current_stream())
    assert x.device is THERE and x.tolist() == [1, 1]


def test_numbers_are_read_one_by_one():
    x = genesis.tensor([1.5, 2.5], device=THERE)
    assert x[1].item() == 2.5 and float(x[0]) == 1.5 and bool(x[0] < x[1]) and [v.item() for v in x] == [1.5, 2.5]
    assert repr(x) == "tensor([1.5000, 2.5000], device='cuda:0')" and f"{x[0]:.1f}" == "1.5"


def test_numpy_wants_a_copy_on_the_cpu():
    x = genesis.ones(2, device=THERE)
    with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy\. Use Tensor\.cpu\(\)"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        np.asarray(x)
    assert x.cpu().numpy().tolist() == x.numpy(force=True).tolist() == [1, 1]


def test_pickles_and_copies_stay_there_and_map_location_moves_them():
    x = genesis.tensor([1.0, 2.0], device=THERE, requires_grad=True)
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert again.device is THERE and again.tolist() == [1, 2] and again.requires_grad
    file = io.BytesIO()
    genesis.save({"x": x}, file)
    for place, device in ((None, THERE), ("cpu", HERE), ("cuda", THERE)):
        file.seek(0)
        assert genesis.load(file, map_location=place)["x"].device is device


def test_tensors_of_two_devices_do_not_mix():
    with pytest.raises(RuntimeError, match=(
        r"add: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    )):
        genesis.ones(2, device=THERE) + genesis.ones(2)
    assert (genesis.ones(2, device=THERE) * genesis.tensor(3.0)).tolist() == [3, 3], "numbers do"


def test_new_tensors_go_to_the_default_device():
    genesis.set_default_device("cuda")
    try:
        assert genesis.get_default_device() is THERE
        layer = genesis.nn.Linear(2, 3)
        x = genesis.ones(4, 2)
        assert x.device is layer.weight.device is layer(x).device is THERE
        assert x.cpu()[[0, 1]].device is HERE
    finally:
        genesis.set_default_device(None)
    assert genesis.zeros(1).device is HERE


# ---- views, writing, gradients ----


def test_views_share_and_writes_show():
    x = genesis.zeros(3, 2, device=THERE)
    row, column = x[1], x[:, 0]
    row.add_(1)
    column[2] = 5
    x[0] = genesis.tensor([7.0, 8.0], device=THERE)
    assert x.tolist() == [[7, 8], [1, 1], [5, 0]] and row.tolist() == [1, 1] and column.tolist() == [7, 1, 5]
    x[x == 1] = 9
    assert row.tolist() == [9, 9]


def test_gradients_are_where_their_leaves_are():
    values = genesis.randn(3, 4)

    def gradients(device):
        x = values.to(device, copy=True).requires_grad_()
        w = (values * 2).to(device).requires_grad_()
        loss = (genesis.cat([x, w]).softmax(1) @ w.T).pow(2).mean() + x[x > 0].sum()
        loss.backward()
        assert x.grad.device == w.grad.device == device
        return [loss.detach().cpu(), x.grad.cpu(), w.grad.cpu()]

    for here, there in zip(gradients("cpu"), gradients("cuda"), strict=True):
        assert_close(there, here)


def test_a_gradient_returns_from_the_gpu():
    x = genesis.tensor([1.0, 2.0], requires_grad=True)
    (x.cuda() ** 2).sum().cpu().backward()
    assert x.grad.device is HERE and x.grad.tolist() == [2, 4]


def test_a_divisor_of_0_is_named_with_its_line():
    x = genesis.arange(4, device=THERE)
    kept = genesis.tensor([0, 0, 0, 0], device=THERE)
    bad = x // genesis.tensor([1, 2, 0, 1], device=THERE)
    kept.add_(bad.sum())
    with pytest.raises(ZeroDivisionError, match=r"an integer is divided by 0; .*test_tensors\.py:"):
        bad.tolist()
    assert kept.tolist() == [0, 0, 0, 0] and (x % 3).tolist() == [0, 1, 2, 0]


def test_an_index_out_of_range_is_named_with_its_line():
    x = genesis.arange(4, device=THERE)
    kept = genesis.tensor([0, 0, 0, 0], device=THERE)
    bad = x[genesis.tensor([1, 4], device=THERE)]
    kept.add_(bad.sum())
    with pytest.raises(IndexError, match=r"index 4 is out of range for extent 4; .*test_tensors\.py:"):
        bad.tolist()
    assert kept.tolist() == [0, 0, 0, 0] and (x + 1).tolist() == [1, 2, 3, 4]
    assert x[genesis.tensor([1, 3], device=THERE)].tolist() == [1, 3], "the next program begins without that fault"


def test_eager_mode_works_there_too():
    with genesis.eager():
        x = genesis.ones(2, device=THERE) * 3
        assert x.tolist() == [3, 3] and x.device is THERE


# ---- reductions that several blocks share ----


@pytest.mark.parametrize(("columns", "endings"), [(4, ["", "_finish"]), (6, ["_many"])])
def test_alike_reductions_are_one_launch_unless_several_teams_would_share_each(columns, endings):
    """Two blocks have six columns, so that two such sums fill the simulated GPU."""
    arrays = np.random.default_rng(0).normal(size=(2, 37, columns)).astype(np.float32)
    sums = genesis.stack([genesis.tensor(x, device=THERE).sum(0) for x in arrays])
    program = genesis.debug.program(sums)
    names = [source[: source.index("(")] for source in program.sources[: len(endings)]]
    assert names == [f"def {program.kernels[0].name}{ending}" for ending in endings]
    np.testing.assert_allclose(sums.cpu().numpy(), arrays.sum(1), 1e-5, 1e-5)


def test_a_result_lies_over_an_input_that_its_shared_points_were_reduced_with():
    x = np.random.default_rng(0).normal(size=(37, 6)).astype(np.float32)
    bias, there = genesis.ones(6, device=THERE), genesis.tensor(x, device=THERE)
    expected = np.ones(6)
    for _ in range(3):
        bias -= (there - bias).square().mean(0)
        expected = expected - np.square(x - expected).mean(0)
    np.testing.assert_allclose(bias.cpu().numpy(), expected, 1e-4, 1e-4)


def test_more_alike_calls_than_a_grid_has_layers_are_several_launches(monkeypatch):
    monkeypatch.setattr(assembly, "LAYERS", 3)
    arrays = [np.full((2, 2), number, np.float32) for number in range(7)]
    places = [genesis.tensor(x, device=THERE) for x in arrays]
    halves = [x[:, :1] * 2 for x in places]
    (segment,) = plan_for(array_of(halves[0]).trace).segments
    assert [len(step.table) for step in segment.program._steps] == [3, 3, 0]
    for half, x in zip(halves, arrays, strict=True):
        np.testing.assert_array_equal(half.cpu().numpy(), x[:, :1] * 2)
