"""GradManager: gradients of what is attached and nothing else, computed on one device or several, and let go of."""

import gc
import threading
import weakref

import pytest

import genesis
from genesis import nn
from genesis.runtime.memory import memory_stats
from tests.tolerances import assert_close

DEVICES = ["cpu", "cpu:1", "cpu:2"]


def parameters():
    genesis.manual_seed(2)
    return [genesis.randn(4, 8, dtype=genesis.float64), genesis.randn(8, dtype=genesis.float64)]


def batch(rows):
    genesis.manual_seed(3)
    return genesis.randn(rows, 4, dtype=genesis.float64), genesis.randint(0, 8, (rows,))


def loss_of(tensors, reduction="mean"):
    weight, bias = tensors
    return lambda x, y: nn.functional.cross_entropy((x @ weight).tanh() + bias, y, reduction=reduction)


# ---- on one device ----


def test_only_attached_tensors_accumulate():
    a, b = genesis.ones(2, requires_grad=True), genesis.ones(2, requires_grad=True)
    gm = genesis.GradManager().attach(a)
    gm.backward((a * b * 3).sum())
    gm.backward((a * 2).sum())
    assert a.grad.tolist() == [5, 5] and b.grad is None
    assert genesis.GradManager is genesis.autograd.GradManager
    assert [t is a for t in gm.attached_tensors()] == [True]


def test_results_may_be_attached_and_gradients_seeded():
    a = genesis.ones(2, requires_grad=True)
    h = a * 3
    gm = genesis.GradManager().attach(iter([h]))
    gm.backward([h * h], genesis.tensor([1.0, 2.0]))
    assert h.grad.tolist() == [6, 12] and a.grad is None


def test_the_context_records_gradients():
    a = genesis.ones(2)
    gm = genesis.GradManager()
    with genesis.no_grad():
        with gm:
            gm.attach([a])
            loss = (a * 2).sum()
            with gm:
                assert genesis.is_grad_enabled()
        assert not genesis.is_grad_enabled()
    gm.backward(loss)
    assert a.grad.tolist() == [2, 2]


def test_empty_gradients_are_none_or_zeros():
    a, unused = genesis.ones(2), genesis.ones(3, device="cpu:1")
    gm = genesis.GradManager(keep_empty_grad=True).attach([a, unused])
    gm.backward((a * 2).sum())
    assert unused.grad is None
    gm.keep_empty_grad = False
    gm.backward((a * 2).sum())
    assert unused.grad.tolist() == [0, 0, 0] and unused.grad.device == "cpu:1"
    gm.backward((unused * 2).sum().cpu())
    assert unused.grad.tolist() == [2, 2, 2]


def test_release_drops_gradients_and_what_backward_would_read():
    weight = genesis.randn(300, 300, requires_grad=True)
    gm = genesis.GradManager().attach(weight)
    assert weight.max().item() > 0
    gc.collect()
    before = memory_stats().held
    hidden = weight.exp() @ weight
    loss = (hidden @ weight).sum()
    value = loss.item()
    gm.backward(loss, retain_graph=True)
    weight.grad.tolist()
    trace = weakref.ref(loss._array.trace)
    held = memory_stats().held
    assert held - before >= 2 * 300 * 300 * 4
    del hidden
    for _ in range(2):
        gm.release()
        assert weight.grad is None and loss.grad_fn is None and loss.is_leaf and loss.item() == value
        assert trace() is None and memory_stats().held - before <= 4096
    gm.backward((weight * 2).sum())
    assert weight.grad.max().item() == 2


def test_after_release_the_rest_of_the_graph_cannot_run_backward_and_other_graphs_can():
    a = genesis.randn(5, 5, requires_grad=True)
    gm = genesis.GradManager().attach(a)
    hidden = a @ a
    loss, other = hidden.square().sum(), (a @ a.T).sum()
    assert loss.item() > 0 and isinstance(other.item(), float)
    gm.backward(loss, retain_graph=True)
    gm.release()
    with pytest.raises(RuntimeError, match="released"):
        hidden.sum().backward()
    other.backward()
    assert a.grad.shape == (5, 5)


class Cube(genesis.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


def test_release_frees_what_custom_functions_saved():
    a = genesis.tensor([1.0, 2.0], requires_grad=True)
    gm = genesis.GradManager().attach(a)
    cubes = Cube.apply(a * 1)
    loss = cubes.sum()
    gm.backward(loss, retain_graph=True)
    assert a.grad.tolist() == [3, 12]
    gm.release()
    with pytest.raises(RuntimeError, match="released"):
        cubes.sum().backward()


def test_release_finds_what_lies_on_other_devices():
    a = genesis.randn(200, 200, requires_grad=True)
    gm = genesis.GradManager().attach(a)
    there = (a @ a).to("cpu:1")
    loss = (there @ there).sum().cpu()
    assert isinstance(loss.item(), float)
    gm.backward(loss, retain_graph=True)
    gm.release()
    with pytest.raises(RuntimeError, match="released"):
        (there @ there).sum().backward()


# ---- on several ----


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
def test_run_over_devices_is_backward_on_one(rows, reduction):
    alone, spread = ([t.requires_grad_() for t in parameters()] for _ in range(2))
    expected = loss_of(alone, reduction)(*batch(rows))
    genesis.GradManager().attach(alone).backward(expected)
    gm = genesis.GradManager(DEVICES).attach(spread)
    for times in (1, 2):
        computed = gm.run(loss_of(spread, reduction), *batch(rows), reduction=reduction)
        assert_close(computed, expected.detach(), scale=10)
        assert not computed.requires_grad and computed.device == "cpu"
        for ours, theirs in zip(spread, alone, strict=True):
            assert ours.device == ours.grad.device == "cpu"
            assert_close(ours.grad, theirs.grad * times, scale=10)


def test_run_takes_modules_as_they_are_with_their_buffers():
    class Scaled(nn.Module):
        def __init__(self):
            self.linear = nn.Linear(4, 8, dtype=genesis.float64)
            self.register_buffer("factor", genesis.full((8,), 3.0, dtype=genesis.float64))
            self.register_buffer("rows", genesis.zeros(1))

        def forward(self, x):
            with genesis.no_grad():
                self.rows += x.shape[0]
            return (x @ self.linear.weight.T + self.linear.bias) * self.factor

    model = Scaled()
    gm = genesis.GradManager(DEVICES[:2]).attach(model.parameters())
    x, y = batch(5)
    gm.run(lambda x, y: nn.functional.cross_entropy(model(x), y), x, y, buffers=model.buffers())
    spread = [p.grad.clone() for p in model.parameters()]
    assert model.rows.item() == 3  # what the first device, where it is at home, wrote
    model.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    for ours, p in zip(spread, model.parameters(), strict=True):
        assert_close(ours, p.grad, scale=10)


def test_run_trains_with_an_optimizer_and_memory_stays_flat():
    weight, bias = parameters()
    gm = genesis.GradManager(DEVICES).attach([weight, bias])
    optimizer = genesis.optim.Adam([weight, bias], lr=0.05)
    x, y = batch(9)
    losses, held = [], []
    for _ in range(60):
        optimizer.zero_grad()
        losses.append(gm.run(loss_of((weight, bias)), x, y).item())
        optimizer.step()
        held.append(memory_stats().held)
    assert losses[-1] < 0.5 * losses[0]
    assert held[-1] <= held[40]


def test_run_leaves_tensors_where_they_were_after_an_error():
    weight = genesis.ones(2)
    view = weight[:1]
    gm = genesis.GradManager(DEVICES).attach(weight)

    def fails(x):
        if weight.device != "cpu":
            raise KeyError("no")
        return (x * weight).sum()

    with pytest.raises(KeyError):
        gm.run(fails, genesis.ones(4, 2))
    assert weight.device == view.device == "cpu" and weight.grad is None
    assert gm.run(lambda x: (x * weight).sum(), genesis.ones(4, 2), reduction="sum").item() == 8


WRONG = {
    "no devices": (lambda gm: genesis.GradManager(devices=[]), ValueError, "devices is empty"),
    "device": (lambda gm: genesis.GradManager(devices=["cuda"]), ValueError, "'cuda' is not available"),
    "attach": (lambda gm: gm.attach([1.0]), TypeError, "attach: wants tensors, got float 1.0"),
    "integers": (lambda gm: gm.attach(genesis.arange(3)), TypeError, "only floating tensors"),
    "nothing attached": (lambda gm: gm.backward(genesis.ones(1)), RuntimeError, "backward: no tensor is attached"),
    "reduction": (lambda gm: gm.attach(genesis.ones(1)).run(len, reduction="none"), ValueError, "'mean' or 'sum', got 'none'"),
    "loss": (lambda gm: gm.attach(genesis.ones(1)).run(lambda x: x, genesis.ones(2)), ValueError, "one element"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_arguments_raise(name):
    function, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        function(genesis.GradManager())


def test_threads_run_managers_of_their_own_and_one_together():
    shared = [t.requires_grad_() for t in parameters()]
    together = genesis.GradManager(DEVICES[:2]).attach(shared)
    results = []

    def work():
        own = [t.requires_grad_() for t in parameters()]
        gm = genesis.GradManager(DEVICES).attach(own)
        for _ in range(3):
            gm.run(loss_of(own), *given)
        together.run(loss_of(shared), *given)
        results.append([t.grad.tolist() for t in own])

    own, given = [t.requires_grad_() for t in parameters()], batch(6)
    starts = parameters()
    genesis.manual_seed(2)
    expected = genesis.autograd.grad(loss_of(own)(*given), own)
    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), "deadlock"
    assert len(results) == 3 and starts[0].shape == shared[0].shape
    for tensor, gradient in zip(shared, expected, strict=True):
        assert_close(tensor.grad, 3 * gradient, scale=10)
