"""Backward through replayed calls, and looks inside them."""


import numpy as np
import pytest

import genesis
from genesis import nn


def same(a, b):
    np.testing.assert_array_equal(np.asarray(a.detach()), np.asarray(b.detach()))


# ---- backward after the call ----


@pytest.mark.parametrize("layers", [
    lambda: [nn.Linear(3, 4), nn.GELU(), nn.LayerNorm(4), nn.Linear(4, 2)],
    lambda: [nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 2)],
])
def test_backward_goes_through_replayed_calls(layers):
    def train(wrap):
        genesis.manual_seed(0)
        model = nn.Sequential(*layers())
        forward = wrap(model)
        optimizer = genesis.optim.Adam(model.parameters(), lr=0.1)
        losses = []
        for _ in range(5):
            x = genesis.randn(6, 3, requires_grad=True)
            optimizer.zero_grad()
            loss = (forward(x) * 1.5).square().mean()
            loss.backward()
            optimizer.step()
            losses.append((loss.item(), x.grad.tolist()))
        return losses, [p.tolist() for p in model.parameters()], forward

    got, want = train(genesis.compile), train(lambda f: f)
    np.testing.assert_allclose(got[0][-1][0], want[0][-1][0], rtol=1e-5)
    for a, b in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    entry, = type(got[2]).__call__.entries
    assert entry.replays == 4


def test_derivations_go_on_through_arguments_and_twice():
    w = genesis.tensor([1.0, 2.0], requires_grad=True)
    compiled = genesis.compile(lambda x: (x * x * w).sum())
    for _ in range(3):
        x = genesis.tensor([3.0, 4.0], requires_grad=True)
        first, = genesis.autograd.grad(compiled(x * 2), x, create_graph=True)
        second, = genesis.autograd.grad(first.sum(), x)
        assert (first.tolist(), second.tolist()) == ([24.0, 64.0], [8.0, 16.0])
    assert compiled.entries[0].replays == 2


def seen_by_numpy(kind, x):
    """(A tensor whose memory NumPy sees, the leaf that it derives from)."""
    leaf = (genesis.from_numpy(x) if kind in ("leaf", "view") else genesis.tensor(x)).requires_grad_()
    given = leaf * 1 if "result" in kind else leaf
    given = given.t() if "view" in kind else given
    if kind != "view of ours":
        given.detach().numpy()
    return given, leaf


@pytest.mark.parametrize("function", [
    lambda given: given * given,
    lambda given: given.t().contiguous() * 2,
    lambda given: given @ given.t(),
    lambda given: given[0] * float(given.sum() < 100),
])
@pytest.mark.parametrize("kind", ["leaf", "view", "result", "view of a result", "view of ours"])
def test_derivations_go_on_through_views_and_memory_that_numpy_sees(kind, function):
    generator = np.random.default_rng(0)
    compiled = genesis.compile(function)
    for _ in range(4):
        x = generator.standard_normal((3, 2)).astype(np.float32)
        (given, leaf), (plain, root) = seen_by_numpy(kind, x.copy()), seen_by_numpy(kind, x.copy())
        got, want = compiled(given), function(plain)
        cotangent = genesis.tensor(generator.standard_normal(want.shape).astype(np.float32))
        got.backward(cotangent)
        want.backward(cotangent)
        np.testing.assert_array_equal(got.detach().numpy(), want.detach().numpy())
        np.testing.assert_allclose(leaf.grad.numpy(), root.grad.numpy(), rtol=1e-6)
    assert sum(entry.replays for entry in compiled.entries) > 0


def test_a_replayed_graph_is_released_and_notices_changes():
    w = genesis.ones(2, requires_grad=True)
    compiled = genesis.compile(lambda x: (x * w * w).sum())
    for _ in range(3):
        y = compiled(genesis.ones(2))
        y.backward()
        with pytest.raises(RuntimeError, match="released"):
            y.backward()
        y = compiled(genesis.ones(2))
        with genesis.no_grad():
            w.mul_(0.5)
        with pytest.raises(RuntimeError, match="modified"):
            y.backward()


# ---- looks ----


def test_a_look_inside_is_a_guard():
    @genesis.compile
    def f(x):
        y = x.sum()
        return x * 2 if y > 3 else x * 3

    for value in (1.0, 5.0, 1.0, 5.0):
        assert f(genesis.tensor([value])).item() == (value * 2 if value > 3 else value * 3)
    assert len(f.entries) == 2 and not f.refusals and "looked at" in f.missed and "test_backward_of_replays.py" in f.missed


def test_fullgraph_names_the_line_of_a_look():
    @genesis.compile(fullgraph=True)
    def f(x):
        y = x * 2
        if y.sum() > 3:
            y = y + 1
        return y

    with pytest.raises(genesis.capture.SplitError, match=r"looked at.*test_backward_of_replays.py:\d+"):
        f(genesis.ones(3))
