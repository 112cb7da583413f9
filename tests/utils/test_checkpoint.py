"""Checkpointing: the gradients are those without; the memory is not."""

import gc

import pytest

import genesis
from genesis import nn
from genesis.utils.checkpoint import checkpoint, checkpoint_sequential
from tests.collector import without_collector


def gradients(apply, looks=False):
    genesis.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 8)) for _ in range(3)]
    x = genesis.randn(4, 8, requires_grad=True)
    h = x * 1
    for layer in layers:
        h = apply(layer, h)
    loss = (h * h).sum()
    if looks:
        loss.item()
    loss.backward()
    return [x.grad.tolist(), *[p.grad.tolist() for layer in layers for p in layer.parameters()]]


@pytest.mark.parametrize("looks", [False, True], ids=["pending", "flushed"])
def test_gradients_are_those_without(looks):
    plain = gradients(lambda layer, h: layer(h), looks)
    assert gradients(lambda layer, h: checkpoint(layer, h), looks) == plain
    assert gradients(lambda layer, h: checkpoint(layer, h, use_reentrant=False), looks) == plain


def test_the_function_runs_again_in_backward_with_the_same_random_numbers():
    seen = []

    def function(x):
        mask = genesis.rand(5)
        seen.append(mask.tolist())
        return x * mask

    x = genesis.ones(5, requires_grad=True)
    y = checkpoint(function, x)
    after = genesis.rand(2).tolist()
    y.sum().backward()
    assert len(seen) == 2 and seen[0] == seen[1] == x.grad.tolist()
    assert genesis.rand(2).tolist() != after


def test_fresh_random_numbers_where_they_are_not_preserved():
    masks = []
    x = genesis.ones(5, requires_grad=True)
    checkpoint(lambda x: [masks.append(genesis.rand(5)), x * masks[-1]][1], x, preserve_rng_state=False).sum().backward()
    assert masks[0].tolist() != masks[1].tolist() == x.grad.tolist()


def test_tensors_that_are_no_arguments_get_gradients_too():
    w = genesis.tensor([2.0, 3.0], requires_grad=True)
    x = genesis.ones(2, requires_grad=True)
    h = w * w
    (checkpoint(lambda: (h * x).sin().sum()) + h.sum()).backward()
    expected = (2 * w.detach() * ((w.detach() ** 2).cos() + 1)).tolist()
    assert w.grad.tolist() == pytest.approx(expected)
    assert x.grad.tolist() == pytest.approx(((w.detach() ** 2).cos() * w.detach() ** 2).tolist())


def test_structures_keywords_and_results_without_gradient():
    def function(pair, *, scale, flag=True):
        a, b = pair["a"], pair["b"]
        return {"sum": (a + b) * scale, "index": (a > b).sum(), "flag": flag}

    a, b = genesis.ones(3, requires_grad=True), genesis.zeros(3)
    found = checkpoint(function, {"a": a, "b": b}, scale=genesis.tensor(2.0, requires_grad=True))
    assert found["flag"] is True and found["index"].item() == 3 and not found["index"].requires_grad
    found["sum"].sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("looks", [False, True], ids=["pending", "flushed"])
def test_second_derivatives(looks):
    def second(function):
        x = genesis.tensor([0.3, -0.7], dtype=genesis.float64, requires_grad=True)
        y = function((x * 2).sin())
        if looks:
            y.tolist()
        (first,) = genesis.autograd.grad(y.sum(), x, create_graph=True)
        if looks:
            first.tolist()
        return genesis.autograd.grad((first * first).sum(), x)[0].tolist()

    def function(h):
        return (h * h).exp() * h

    assert second(lambda h: checkpoint(function, h)) == pytest.approx(second(function), rel=1e-12)


@pytest.mark.parametrize("looks", [False, True], ids=["pending", "flushed"])
def test_a_hundred_nested(looks):
    def nested(depth, h):
        return h.sin() if depth == 0 else checkpoint(lambda h: nested(depth - 1, h * 1.01), h)

    def plain(depth, h):
        return h.sin() if depth == 0 else plain(depth - 1, h * 1.01)

    got = []
    for function in (nested, plain):
        x = genesis.tensor([0.5, 1.0], requires_grad=True)
        y = function(100, x)
        if looks:
            y.tolist()
        y.sum().backward()
        got.append(x.grad.tolist())
    assert got[0] == pytest.approx(got[1], rel=1e-5)


def peak(blocks, apply):
    """Bytes at the height of a step through many blocks of matrix products."""
    genesis.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 32), nn.Tanh()) for _ in range(blocks)]
    x = genesis.randn(256, 32)
    x.tolist()
    gc.collect()
    with genesis.debug.memory() as use:
        h = x
        for layer in layers:
            h = apply(layer, h)
        h.sum().backward()
        for layer in layers:
            layer[0].weight.grad.tolist()
    return use.peak - use.start if hasattr(use, "start") else use.peak


def test_many_checkpoints_hold_memory_flat():
    """The peak grows by what is between the blocks, not by what is in them."""
    growth = (peak(40, checkpoint) - peak(20, checkpoint)) / 20
    without = (peak(40, lambda f, x: f(x)) - peak(20, lambda f, x: f(x))) / 20
    inside = 256 * 128 * 4
    assert growth < without - 0.5 * inside
    assert growth < 2 * 256 * 32 * 4 + 4 * (2 * 32 * 128 * 4)


def test_steps_leave_nothing_behind():
    layer = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    optimizer = genesis.optim.SGD(layer.parameters(), lr=0.01)
    held = []
    with without_collector():
        for _ in range(12):
            optimizer.zero_grad()
            checkpoint(layer, checkpoint(layer, genesis.ones(64, 64))).square().mean().backward()
            optimizer.step()
            held.append(genesis.debug.memory().held)
    assert held[-1] == held[3]


def test_sequential():
    layers = nn.Sequential(*[nn.Linear(4, 4) for _ in range(5)])
    x = genesis.randn(2, 4, requires_grad=True)
    checkpoint_sequential(layers, 2, x).sum().backward()
    got, x.grad = x.grad, None
    layers(x).sum().backward()
    assert (got - x.grad).abs().max().item() < 1e-6
    with pytest.raises(ValueError, match="9 segments of 5"):
        checkpoint_sequential(layers, 9, x)


def test_an_argument_changed_in_place_is_refused():
    with pytest.raises(RuntimeError, match="changed an argument in place"):
        checkpoint(lambda h: h.mul_(2), genesis.ones(2, requires_grad=True) * 3)


def test_without_gradients_it_is_the_function():
    assert checkpoint(lambda x: x + 1, genesis.ones(2)).tolist() == [2, 2]
    with genesis.no_grad():
        assert not checkpoint(lambda x: x + 1, genesis.ones(2, requires_grad=True)).requires_grad


def test_hooks_and_functions_inside():
    seen = []

    def function(x):
        y = x * 3
        y.register_hook(lambda g: seen.append(g.tolist()))
        return y.exp()

    x = genesis.zeros(2, requires_grad=True)
    checkpoint(function, x).sum().backward()
    assert seen == [[1, 1]] and x.grad.tolist() == [3, 3]


def test_looking_at_values_inside():
    def function(x):
        y = x.exp()
        if y.sum().item() > 0:
            y = y * 2
        return y * x

    x = genesis.ones(2, requires_grad=True)
    checkpoint(function, x * 1).sum().backward()
    got, x.grad = x.grad.tolist(), None
    function(x * 1).sum().backward()
    assert got == x.grad.tolist()


def test_looking_at_an_argument_that_is_a_view():
    x = genesis.arange(6.0).reshape(2, 3).clone().requires_grad_()
    rows = (x * 2)[1:]
    checkpoint(lambda rows: rows * float(rows.detach().sum()), rows).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [48.0] * 3]


def test_the_second_call_is_cast_as_the_first():
    layer = nn.Linear(3, 3)
    seen = []

    def block(x):
        seen.append((layer(x).dtype, genesis.is_grad_enabled()))
        return layer(x)

    with genesis.autocast():
        y = checkpoint(block, genesis.ones(2, 3))
    y.float().sum().backward()
    assert seen == [(genesis.bfloat16, True)] * 2 and layer.weight.grad.dtype is genesis.float32


@pytest.mark.parametrize("looks", [False, True], ids=["pending", "flushed"])
def test_a_gradient_of_what_it_does_not_lead_to_runs_it_once(looks):
    calls, layer, head = [], nn.Linear(2, 2), nn.Linear(2, 1)

    def function(x):
        calls.append(1)
        return layer(x).tanh()

    loss = head(checkpoint(function, genesis.ones(3, 2))).sum()
    if looks:
        loss.item()
    genesis.autograd.grad(loss, [head.weight], retain_graph=True)
    assert len(calls) == 1
    [of_layer] = genesis.autograd.grad(loss, [layer.weight])
    assert len(calls) == 2 and of_layer.abs().sum().item() > 0


def test_what_lies_between_is_not_kept_and_nothing_stays_behind():
    x, kept = genesis.ones(1 << 18, requires_grad=True), []
    x.sum().item()
    with without_collector():
        before = genesis.debug.memory().held
        for run in (lambda f, x: f(x), checkpoint):
            y = x
            for _ in range(4):
                y = run(lambda y: genesis.cumsum(y.exp(), 0).log().reshape(-1), y)
            y.detach().sum().item()
            kept.append(genesis.debug.memory().held)
            y.sum().backward()
            x.grad.sum().item()
            x.grad = None
            del y
            assert genesis.debug.memory().held <= before + 1024  # plans keep small results' places
    assert kept[1] < kept[0]
