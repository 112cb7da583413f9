"""Modules, optimizers, threads and compiled functions on several devices."""

import io
import threading

import pytest

import genesis
from genesis import nn
from genesis.runtime.memory import memory_stats
from tests.collector import without_collector
from tests.tolerances import assert_close

ONE, TWO = genesis.device("cpu:1"), genesis.device("cpu:2")


def vector(*values, **options):
    return genesis.tensor([float(v) for v in values], **options)


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
    assert weight.is_leaf and weight.requires_grad and view.device is genesis.device("cpu")
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
        for _ in range(40):
            step()
        before = memory_stats().held
        for _ in range(200):
            step()
        assert memory_stats().held <= before


def test_gradients_that_accumulate_across_devices_are_flat():
    x = genesis.ones(100, requires_grad=True)
    sizes = []
    for _ in range(200):
        (x.to(ONE) * x.to(ONE)).sum().backward()
        sizes.append(memory_stats().held)
    assert sizes[-1] < sizes[100] + 4096 and x.grad.tolist() == [400.0] * 100


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
