"""Several devices: what is on one stays there, what is copied has its gradient returned, and nothing else changes."""

import copy
import io
import pickle
import random
import re
import threading

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.runtime.memory import memory_stats
from tests.collector import without_collector
from tests.tolerances import assert_close

ONE, TWO = genesis.device("cpu:1"), genesis.device("cpu:2")


def vector(*values, **options):
    return genesis.tensor([float(v) for v in values], **options)


# ---- names ----


def test_a_device_has_one_object_and_several_spellings():
    assert genesis.device("cpu:0") is genesis.device("cpu") is genesis.device("cpu", 0)
    assert genesis.device("cpu", 1) is ONE and genesis.device(ONE) is ONE
    assert ONE == "cpu:1" and ONE != "cpu" and ONE != TWO and genesis.device("cpu") == "cpu:0"
    assert (ONE.type, ONE.index, str(ONE), repr(ONE)) == ("cpu", 1, "cpu:1", "device(type='cpu', index=1)")
    assert pickle.loads(pickle.dumps(ONE)) is ONE and copy.deepcopy(TWO) is TWO


@pytest.mark.parametrize("name", ["cuda:x", "cpu:64", "cpu:-1", "cpu:x", "cpu:01", "", "gpu:0"])
def test_other_devices_do_not_exist(name):
    with pytest.raises(ValueError, match=f"device: '{name}' is not available"):
        genesis.device(name)


@pytest.mark.parametrize("name", ["cuda:63", "mps", "xpu"])
def test_a_gpu_that_is_not_here_is_refused_where_it_is_used(name):
    absent = genesis.device(name)
    assert absent == genesis.device(name) and absent != ONE and hash(absent) == hash(genesis.device(name))
    assert absent == name if ":" in name else absent.type == name
    uses = (lambda: genesis.zeros(2, device=absent), lambda: genesis.ones(1).to(absent), lambda: nn.Linear(1, 1).to(absent),
            lambda: genesis.Generator(absent))
    for use in uses:
        with pytest.raises(ValueError, match=f"device: '{name}.*is not available"):
            use()
    with absent, pytest.raises(ValueError, match="is not available"):
        genesis.rand(2)


def test_new_tensors_go_to_the_default_device():
    x = vector(1, 2, 3)
    with ONE as inner, TWO:
        assert genesis.get_default_device() is TWO and inner is ONE
        assert genesis.zeros(2).device is genesis.rand(2).device is nn.Linear(2, 2).weight.device is TWO
        assert x[[0, 2]].device == "cpu" and x[[0, 2]].tolist() == [1, 3]
    genesis.set_default_device("cpu:1")
    assert genesis.arange(3).device is ONE
    genesis.set_default_device(None)


def test_compiled_functions_make_tensors_on_the_default_device_of_the_call():
    make = genesis.compile(lambda: genesis.zeros(2) + 1)
    assert [str(make().device) for _ in range(2)] == ["cpu"] * 2
    with ONE:
        assert [str(make().device) for _ in range(2)] == ["cpu:1"] * 2
    assert make().device == "cpu"


def test_a_device_as_context_is_the_default_of_its_thread_alone():
    found = []
    with genesis.device("cpu:1"):
        other = threading.Thread(target=lambda: found.append(genesis.zeros(1).device))
        other.start()
        other.join()
        with genesis.device("cpu:2"):
            found.append(genesis.zeros(1).device)
        found.append(genesis.zeros(1).device)
    assert [str(device) for device in found] == ["cpu", "cpu:2", "cpu:1"] and str(genesis.zeros(1).device) == "cpu"
    assert genesis.arange(3).device == "cpu"


@pytest.mark.parametrize("make", [
    lambda d: nn.Linear(2, 3, device=d), lambda d: nn.Conv2d(1, 2, 3, device=d), lambda d: nn.Embedding(3, 2, device=d),
    lambda d: nn.LayerNorm(3, device=d), lambda d: nn.BatchNorm1d(3, device=d), lambda d: nn.GroupNorm(1, 3, device=d),
    lambda d: nn.MultiheadAttention(4, 2, device=d), lambda d: nn.TransformerEncoderLayer(4, 2, 8, device=d),
])
def test_layers_are_made_where_they_are_wanted(make):
    layer = make(ONE)
    assert {t.device for t in (*layer.parameters(), *layer.buffers())} == {ONE}


# ---- where results are ----

MADE = {
    "tensor": lambda d: genesis.tensor([1, 2], device=d),
    "Tensor": lambda d: genesis.Tensor([1, 2], d, genesis.float32),
    "as_tensor": lambda d: genesis.as_tensor(np.ones(3), device=d),
    "full": lambda d: genesis.full((2,), 7, device=d),
    "full of a tensor": lambda d: genesis.full((2,), genesis.tensor(7), device=d),
    "zeros": lambda d: genesis.zeros(2, device=d),
    "zeros_like": lambda d: genesis.zeros_like(genesis.ones(2, device=d)),
    "arange": lambda d: genesis.arange(3, device=d),
    "linspace": lambda d: genesis.linspace(0, 1, 3, device=d),
    "eye": lambda d: genesis.eye(2, device=d),
    "tril_indices": lambda d: genesis.tril_indices(2, 2, device=d),
    "rand": lambda d: genesis.rand(2, device=d),
    "randn_like": lambda d: genesis.randn_like(genesis.ones(2, device=d)),
    "randint": lambda d: genesis.randint(5, (2,), device=d),
    "randperm": lambda d: genesis.randperm(4, device=d),
    "normal": lambda d: genesis.normal(genesis.zeros(2, device=d), 1.0),
    "bernoulli": lambda d: genesis.bernoulli(genesis.rand(2, device=d)),
    "multinomial": lambda d: genesis.multinomial(genesis.ones(3, device=d), 2),
    "new_zeros": lambda d: genesis.ones(2, device=d).new_zeros(3),
    "new_tensor": lambda d: genesis.ones(2, device=d).new_tensor([1, 2]),
    "nonzero": lambda d: genesis.ones(2, device=d).nonzero(),
    "unique": lambda d: genesis.unique(genesis.ones(2, device=d)),
    "view": lambda d: genesis.ones(2, 3, device=d).T[1:],
    "detach": lambda d: genesis.ones(2, device=d, requires_grad=True).detach(),
    "cat": lambda d: genesis.cat([genesis.ones(2, device=d), genesis.zeros(1, device=d)]),
    "where": lambda d: genesis.where(genesis.ones(2, device=d) > 0, 1.0, genesis.tensor(2.0)),
    "index": lambda d: genesis.arange(4, device=d)[genesis.tensor([2, 0])],
    "index list": lambda d: genesis.arange(4, device=d)[[2, 0]],
    "mask": lambda d: genesis.arange(4, device=d)[genesis.arange(4, device=d) > 1],
    "index_fill": lambda d: genesis.ones(3, device=d).index_fill(0, genesis.tensor([1], device=d), 5.0),
    "number": lambda d: 1 - genesis.ones(2, device=d) * 2,
    "array": lambda d: genesis.ones(2, device=d) + np.ones(2, np.float32),
    "to like": lambda d: genesis.ones(2).to(genesis.zeros(1, device=d)),
    "sent on": lambda d: genesis.ones(2, device=TWO).to(d),
    "Parameter": lambda d: nn.Parameter(genesis.ones(2, device=d)),
    "deepcopy": lambda d: copy.deepcopy(genesis.ones(2, device=d)),
    "pickle": lambda d: pickle.loads(pickle.dumps(genesis.ones(2, device=d))),
    "init": lambda d: nn.init.normal_(genesis.empty(2, device=d)),
}


@pytest.mark.parametrize("name", MADE)
def test_results_are_on_the_device_and_have_the_values_of_the_cpu(name):
    genesis.manual_seed(3)
    here = MADE[name](genesis.device("cpu"))
    genesis.manual_seed(3)
    there = MADE[name](ONE)
    assert here.device == "cpu" and there.device is ONE and there.cpu().device == "cpu"
    assert_close(there, here)


def test_a_tensor_that_is_there_is_not_copied():
    x = genesis.ones(2, device=ONE)
    assert x.to("cpu:1") is x and x.to(ONE, copy=True) is not x
    y = genesis.ones(2)
    assert y.cpu() is y and y.to("cpu:0") is y


def test_a_copy_is_a_copy():
    x = vector(1, 2)
    y = x.to(ONE)
    x.add_(1)
    y[0] = 7
    assert x.tolist() == [2, 3] and y.tolist() == [7, 2]


def test_print_names_the_device_as_torch_does():
    assert repr(vector(1, device=ONE)) == "tensor([1.], device='cpu:1')"
    assert repr(genesis.zeros(0, 2, device=ONE)) == "tensor([], device='cpu:1', size=(0, 2))"
    assert repr(vector(1, device=TWO, requires_grad=True)) == "tensor([1.], device='cpu:2', requires_grad=True)"


# ---- what does not mix ----

MIXED = {
    "add": lambda: vector(1, 2) + vector(1, 2, device=ONE),
    "matmul": lambda: genesis.ones(2, 2, device=TWO) @ genesis.ones(2, 2, device=ONE),
    "cat": lambda: genesis.cat([vector(1), vector(1, device=ONE)]),
    "linear": lambda: nn.Linear(2, 2)(genesis.ones(1, 2, device=ONE)),
    "mul": lambda: vector(1, 2) * genesis.tensor(2.0, device=ONE),  # 0-d tensors come from the CPU alone
    "in-place": lambda: genesis.tensor(1.0).add_(genesis.tensor(1.0, device=ONE)),
    "grad": lambda: setattr(vector(1, device=ONE, requires_grad=True), "grad", vector(1)),
    "backward": lambda: (vector(1, 2, device=ONE, requires_grad=True) * 2).backward(vector(1, 1)),
}


@pytest.mark.parametrize("name", MIXED)
def test_tensors_of_two_devices_raise(name):
    with pytest.raises(RuntimeError, match=f"(?s){name}.*cpu:1"):
        MIXED[name]()


def test_numbers_on_the_cpu_mix_with_all_and_take_their_gradient_home():
    scale = genesis.tensor(3.0, requires_grad=True)
    y = (vector(1, 2, device=ONE) * scale).sum()
    assert y.device is ONE
    y.backward()
    assert scale.grad.item() == 3 and scale.grad.device == "cpu"


def test_copy_crosses_devices_and_a_setitem_takes_lists():
    x = genesis.zeros(3, device=ONE)
    x.copy_(vector(1, 2, 3))
    x[1:] = vector(8, 9, device=TWO)
    assert x.tolist() == [1, 8, 9] and x.device is ONE
    x[genesis.tensor([0, 2])] = [5.0, 6.0]
    x[genesis.tensor([False, True, False])] = 0.0
    assert x.tolist() == [5, 0, 6] and x.device is ONE


def test_index_errors_on_a_device_name_the_line():
    x = genesis.arange(3, device=ONE)
    wrong = x[genesis.tensor([3], device=ONE)]
    good = x * 2
    with pytest.raises(IndexError, match=re.escape(__file__)):
        wrong.tolist()
    assert good.tolist() == [0, 2, 4]


# ---- gradients ----


def test_the_gradient_of_a_copy_is_accumulated_on_the_leaf():
    x = vector(1, 2, 3, requires_grad=True)
    y = x.to(ONE)
    assert not y.is_leaf and y.requires_grad and y.grad_fn.next_functions[0][0].variable is x
    for _ in range(2):
        (x.to(ONE) ** 2).sum().backward()
    assert x.grad.tolist() == [4, 8, 12] and x.grad.device == "cpu"


def test_a_copy_has_a_gradient_of_its_own():
    x = vector(1, 2, requires_grad=True)
    h = x * 3
    y = h.to(ONE)
    y.retain_grad()
    (y.sum() + (h * h).sum().to(ONE)).backward()
    assert y.grad.tolist() == [1, 1] and y.grad.device is ONE
    assert x.grad.tolist() == [3 + 18, 3 + 36]


def test_grad_finds_inputs_on_several_devices():
    x, w = vector(1, 2, requires_grad=True), vector(3, 4, device=ONE, requires_grad=True)
    y = x.to(ONE)
    z = (y * y * w).sum().to(TWO)
    gx, gw, gy = genesis.autograd.grad(z, [x, w, y])
    assert (gx.device, gw.device, gy.device) == ("cpu", ONE, ONE)
    assert gx.tolist() == gy.tolist() == [6, 16] and gw.tolist() == [1, 4]


def test_gradients_of_gradients_cross_devices():
    x = vector(1, 2, requires_grad=True)
    (g,) = genesis.autograd.grad((x.to(ONE) ** 3).sum().cpu(), x, create_graph=True)
    assert g.tolist() == [3, 12]
    (g.to(TWO) ** 2).sum().backward()
    assert x.grad.tolist() == [2 * 3 * 6, 2 * 12 * 12]


def test_jacobians_are_taken_on_the_device_of_their_point():
    slopes = genesis.autograd.functional.jacobian(lambda t: (t * t).cpu(), vector(1, 2, device=ONE))
    assert slopes.tolist() == [[2, 0], [0, 4]] and slopes.device is ONE


def test_a_later_trace_may_feed_an_earlier_one():
    """What is open on one device takes a value that began later on another: backward goes by the order of the ends."""
    x, w = vector(1, 2, requires_grad=True), vector(3, 4, device=ONE, requires_grad=True)
    begun = w * w
    h = (x * x).exp().log()
    y = begun * h.to(ONE)
    (y.sum().cpu() + h.sum()).backward()
    assert_close(x.grad, vector(2 * 9 + 2, 4 * 16 + 4), scale=4)
    assert_close(w.grad, vector(6 * 1, 8 * 4), scale=4)


def test_a_released_graph_is_released_on_every_device():
    x = vector(1, 2, requires_grad=True)
    loss = ((x * x).to(ONE) ** 2).sum().cpu()
    loss.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        loss.backward()


def test_no_grad_cuts_and_a_detached_copy_stands_apart():
    x = vector(1, requires_grad=True)
    with genesis.no_grad():
        assert not x.to(ONE).requires_grad
    assert not x.detach().to(ONE).requires_grad and not x.to(ONE).detach().cpu().requires_grad


def test_a_copy_of_pending_views_and_other_dtypes():
    x = genesis.arange(6, dtype=genesis.float64).reshape(2, 3).requires_grad_()
    y = x.T.to(ONE, genesis.float32)[1:]
    assert y.dtype is genesis.float32 and y.tolist() == [[1, 4], [2, 5]]
    y.sum().backward()
    assert x.grad.tolist() == [[0, 1, 1], [0, 1, 1]] and x.grad.dtype is genesis.float64


UNARY = {
    "tanh": lambda t: t.tanh(), "square": lambda t: t * t, "sigmoid": lambda t: t.sigmoid(), "sum": lambda t: t.sum(0, True),
}
BINARY = {"add": lambda a, b: a + b, "mul": lambda a, b: a * b, "sub": lambda a, b: a - b}


@pytest.mark.parametrize("seed", range(25))
def test_programs_that_wander_have_torchs_gradients(seed):
    """A random program on random devices, some values looked at on the way, against torch on one."""
    draw = random.Random(seed)
    numbers = np.random.default_rng(seed).normal(size=(3, 4, 4))
    ours = [genesis.tensor(n, device=f"cpu:{draw.randrange(3)}", requires_grad=True) for n in numbers]
    theirs = [torch.tensor(n, requires_grad=True) for n in numbers]
    leaves = list(zip(ours, theirs, strict=True))
    for _ in range(14):
        device, i, j = f"cpu:{draw.randrange(3)}", draw.randrange(len(ours)), draw.randrange(len(ours))
        if draw.random() < 0.5:
            f = UNARY[draw.choice(sorted(UNARY))]
            ours.append(f(ours[i].to(device)))
            theirs.append(f(theirs[i]))
        else:
            f = BINARY[draw.choice(sorted(BINARY))]
            ours.append(f(ours[i].to(device), ours[j].to(device)))
            theirs.append(f(theirs[i], theirs[j]))
        if draw.random() < 0.2:
            assert_close(ours[-1].detach(), theirs[-1].detach())
    sum((o.tanh().sum().to(TWO) for o in ours[1:]), genesis.tensor(0.0, dtype=genesis.float64, device=TWO)).backward()
    sum(t.tanh().sum() for t in theirs[1:]).backward()
    for o, t in leaves:
        assert (o.grad is None) == (t.grad is None)
        if o.grad is not None:
            assert_close(o.grad, t.grad, scale=100)
            assert o.grad.device is o.device


# ---- modules and optimizers ----


def model():
    genesis.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def trained(make, split):
    """Losses of a model whose second layer is on the device `split`, then its state."""
    layers = model()
    layers[2].to(split)
    optimizer = make(layers.parameters())
    inputs, targets = genesis.linspace(-1, 1, 24).reshape(6, 4), genesis.arange(6) % 2
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(layers[2](layers[1](layers[0](inputs)).to(split)), targets.to(split))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for parameter in layers.parameters():
        assert parameter.grad.device is parameter.device
        assert all(s.device is parameter.device for s in optimizer.state[parameter].values() if isinstance(s, genesis.Tensor))
    return losses, {key: value.cpu().tolist() for key, value in layers.state_dict().items()}


@pytest.mark.parametrize("make", [
    lambda p: genesis.optim.Adam(p, lr=0.1), lambda p: genesis.optim.SGD(p, lr=0.1, momentum=0.9),
], ids=["adam", "sgd"])
def test_a_model_over_two_devices_trains_as_on_one(make):
    assert trained(make, ONE) == trained(make, genesis.device("cpu"))


def test_clipping_and_scaling_take_gradients_of_several_devices_together():
    def clipped(device):
        leaves = vector(1, 2, requires_grad=True), vector(3, device=device, requires_grad=True)
        (leaves[0].to(device) * leaves[1]).sum().backward()
        norm = nn.utils.clip_grad_norm_(leaves, 2.0)
        nn.utils.clip_grad_value_(leaves, 1.2)
        return norm.item(), [leaf.grad.tolist() for leaf in leaves], [leaf.grad.device for leaf in leaves]

    norm, values, places = clipped(ONE)
    assert (norm, values) == clipped("cpu")[:2] and places == ["cpu", ONE]
    layers = model()
    layers[2].to(ONE)
    optimizer, scaler = genesis.optim.SGD(layers.parameters(), lr=0.1), genesis.amp.GradScaler()
    before = layers[2].bias.tolist()
    scaler.scale(layers[2](layers[1](layers[0](genesis.ones(2, 4))).to(ONE)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert_close(layers[2].bias.detach(), genesis.tensor(before) - 0.2)


def test_a_module_moves_with_its_gradients_and_remains_itself():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer(genesis.ones(1, 2)).sum().backward()
    view = layer.weight[0]
    assert layer.to("cpu:1") is layer and layer.weight is weight
    assert {p.device for p in layer.parameters()} == {p.grad.device for p in layer.parameters()} == {ONE}
    assert weight.is_leaf and weight.requires_grad and view.device is ONE
    layer.to(TWO, genesis.float64)
    assert weight.device is TWO and weight.dtype is genesis.float64 and weight.grad.dtype is genesis.float64


def test_state_dicts_keep_their_device_and_load_into_another():
    there = model().to(ONE)
    file = io.BytesIO()
    genesis.save(there.state_dict(), file)
    file.seek(0)
    state = genesis.load(file)
    assert {value.device for value in state.values()} == {ONE}
    for careful in (True, False):
        file.seek(0)
        moved = genesis.load(file, map_location="cpu:2", weights_only=careful)
        assert {value.device for value in moved.values()} == {TWO}
        assert moved["0.weight"].tolist() == state["0.weight"].tolist()
    here = model()
    nn.init.zeros_(here[0].weight)
    here.load_state_dict(state)
    assert here[0].weight.device == "cpu" and here[0].weight.tolist() == there[0].weight.tolist()


# ---- long runs, and threads ----


def test_steps_over_two_devices_keep_memory_flat():
    layers = model()
    layers[2].to(ONE)
    optimizer = genesis.optim.Adam(layers.parameters())
    inputs = genesis.randn(8, 4)

    def step():
        optimizer.zero_grad()
        layers[2](layers[1](layers[0](inputs)).to(ONE)).square().mean().backward()
        optimizer.step()

    with without_collector():
        for _ in range(20):
            step()
        before = memory_stats().held
        for _ in range(200):
            step()
        assert memory_stats().held <= before


def test_gradients_that_accumulate_across_devices_are_flat():
    x = genesis.ones(100, requires_grad=True)
    sizes = []
    for _ in range(60):
        (x.to(ONE) * x.to(ONE)).sum().backward()
        sizes.append(memory_stats().held)
    assert sizes[-1] <= sizes[20] and x.grad.tolist() == [120.0] * 100


def test_a_thread_that_is_handed_its_first_tensor_of_another_device():
    given, results = vector(1, 2, device=ONE), []

    def work():
        here = vector(5) * 3.5
        results.append([(2.5 * given * 3.5).sum().cpu().item(), here.item(), (given[0] * 2).device])

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert results == [[26.25, 17.5, ONE]]


def test_a_thread_that_has_met_no_other_device_steps_the_parameters_of_two():
    here, there = vector(1, 1, requires_grad=True), vector(2, 2, device=ONE).requires_grad_()
    (here.sum() + there.sum().cpu()).backward()
    optimizer = genesis.optim.SGD([here, there], lr=0.5)
    thread = threading.Thread(target=optimizer.step, daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert (here.tolist(), there.tolist(), there.device) == ([0.5, 0.5], [1.5, 1.5], ONE)


def test_threads_work_on_devices_of_their_own_and_on_each_others():
    given = [vector(k, k + 1, device=f"cpu:{k}") * 2 for k in range(4)]
    results = {}

    def work(k):
        leaf = vector(1, 2, requires_grad=True)
        for _ in range(10):
            mine = leaf.to(f"cpu:{k}") * given[k] + given[(k + 1) % 4].to(f"cpu:{k}")
            mine.sum().cpu().backward()
        results[k] = leaf.grad.tolist()

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "deadlock"
    assert results == {k: [20.0 * k, 20.0 * (k + 1)] for k in range(4)}


# ---- compiled functions ----


def test_compiled_functions_mind_the_device_of_what_they_read_and_write():
    double, clear = genesis.compile(lambda x: x * 2), genesis.compile(lambda x: x.fill_(3.0))
    for device in ("cpu", "cpu:1", "cpu", "cpu:1", "cpu:1"):
        x = vector(1, 2, device=device)
        assert double(x).device == device and double(x).tolist() == [2, 4]
        clear(x)
        assert x.device == device and x.tolist() == [3, 3] and (x + 1).device == device
    assert sum(entry.replays for entry in double.entries) >= 6 and len(double.entries) == 2
