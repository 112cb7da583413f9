"""Steps that templates fill in are, node for node, those that would be built; and what they compute is what NumPy computes."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import genesis
from genesis import nn
from genesis.execution.flush import flush
from genesis.ir.shapes import sliced
from genesis.tracing import families, trie
from genesis.tracing.state import unflushed


def facts(step):
    nodes = [(n.op, n.inputs, repr(n.attrs), n.shape, n.dtype, n.differentiable, n.origin) for n in step.nodes]
    return nodes, repr(step.result), step.family


@pytest.fixture
def filled(monkeypatch):
    """The names of the steps that are filled in, each compared with the one that is built after the same path."""
    found, fill, grow = [], families.Family.filled, trie.TrieNode.grow
    latest = []

    def noted(family, form, nodes):
        latest[:] = [fill(family, form, nodes)]
        return latest[0]

    def compared(before, key, nodes, build, grad=True, form=None):
        latest[:] = [None]
        step = grow(before, key, nodes, build, grad, form)
        if latest != [None]:
            assert facts(step) == facts(trie._built(before.family, key, nodes, build, grad, form.sources))
            found.append(getattr(key[0], "name", key[0]))
        return step

    monkeypatch.setattr(families.Family, "filled", noted)
    monkeypatch.setattr(trie.TrieNode, "grow", compared)
    monkeypatch.setattr(trie, "families", {})
    for trace in unflushed():
        flush(trace)
    trie.fresh_roots()
    return found


STEPS = {
    "scale": lambda x, n, m: x * 0.5 + 1,
    "norm": lambda x, n, m: (x - x.mean(0)) / (x.std(0) + 1),
    "softmax": lambda x, n, m: x.softmax(-1) * n,
    "gram": lambda x, n, m: (x @ x.T).tanh() @ x,
    "part": lambda x, n, m: genesis.cat([x[: n // 2], x[n // 2 :] * 2]),
    "back": lambda x, n, m: x[::-1] - x.flip(0),
    "gather": lambda x, n, m: x[genesis.arange(n - 1, -1, -1)],
    "add_at": lambda x, n, m: genesis.zeros(n, x.shape[1]).index_add(0, genesis.arange(m) % n, genesis.ones(m, x.shape[1])) + x,
    "roll": lambda x, n, m: x.roll(m, 0),
    "pad": lambda x, n, m: nn.functional.pad(x, (0, 0, m % 5, 2))[m % 5 : m % 5 + n],
    "unfold": lambda x, n, m: x.unfold(0, 2, 1).mean(-1).sum() + x,
    "reshape": lambda x, n, m: x.reshape(-1, 1, n).transpose(0, 2).reshape(n, -1),
    "sorted": lambda x, n, m: x.sort(0).values,
}


def test_filled_steps_are_those_that_would_be_built(filled):
    for seed in range(8):
        chosen = random.Random(seed)
        names, width = chosen.choices([*STEPS], k=5), chosen.choice([3, 8])
        weight = genesis.tensor(np.random.RandomState(seed).randn(width, width).astype("float32"), requires_grad=True)
        for _ in range(8):
            n, m = chosen.randint(2, 60), chosen.randint(2, 90)
            x = genesis.tensor(np.random.RandomState(n).randn(n, width).astype("float32")) @ weight
            for name in names:
                x = STEPS[name](x, n, m)
            weight.grad = None
            x.square().mean().backward()
    assert len(filled) > 200 and {"derive", "matmul", "mean"} <= {*filled}


def test_sizes_that_pass_no_guard_are_built_rightly(filled):
    for n, m in ((5, 9), (6, 4), (7, 3), (8, 11), (6, 6), (1, 7), (7, 1), (2, 2), (0, 3), (9, 5), (1, 1), (64, 3)):
        x, y = np.linspace(-1, 1, n * m).reshape(n, m), np.linspace(0, 2, m)
        found = (genesis.tensor(x)[: n // 2 + 1, None] * genesis.tensor(y) - n).sum(-1)
        np.testing.assert_allclose(found.numpy(), (x[: n // 2 + 1, None] * y - n).sum(-1))
    assert {"mul", "sub", "sum"} <= {*filled}


def test_a_wrong_size_raises_as_before_any_template(filled):
    for n in (3, 5, 7, 9, 11):
        assert (genesis.ones(n, 400) @ genesis.ones(400, n)).sum().item() == 400 * n * n
    with pytest.raises(RuntimeError, match=r"\(13, 400\).*\(600, 13\)"):
        genesis.ones(13, 400) @ genesis.ones(600, 13)
    assert "matmul" in filled


def test_powers_of_new_orders_are_those_that_would_be_built(filled):
    x = np.linspace(0.1, 2, 12).reshape(3, 4)
    for order in (5, 4, 7, 6, 9, 3, 8, 2, 11):
        found = genesis.linalg.vector_norm(genesis.tensor(x), order, 1)
        np.testing.assert_allclose(found.numpy(), np.linalg.norm(x, order, 1))
    assert "vector_norm" in filled


def test_a_backward_reads_what_its_own_program_has_saved(filled):
    """Programs that differ in what else is alive save other values, in the same number and of the same shapes."""
    def gradients(library, n, gone):
        values = np.random.RandomState(n)
        x, *weights, last = [library.tensor(values.randn(*shape)) for shape in ((n, 4), *[(4, 4)] * 4)]
        for weight in (*weights, last):
            weight.requires_grad_()
        inner = [x @ weight for weight in weights]
        found = [each @ last for each in inner]
        inner, found[gone] = None, None
        seen = found[1].detach().numpy().copy()
        found[1].backward(library.ones(n, 4, dtype=library.float64))
        return seen, last.grad.numpy(), weights[1].grad.numpy()

    for gone in (2, 0):
        for n in range(5, 16):
            for ours, theirs in zip(gradients(genesis, n, gone), gradients(torch, n, gone), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert "derive" in filled


def test_families_of_programs_that_are_long_gone_are_forgotten(filled, monkeypatch):
    monkeypatch.setattr(trie, "STEP_LIMIT", 40)
    monkeypatch.setattr(trie, "_built_steps", [0])
    kept = []
    for n in range(30):
        x = genesis.ones(2, 3)
        for power in range(n % 5, n % 5 + 20):
            x = x.exp() if n >> power % 5 & 1 else x.sin()
        x.tolist()
        kept += trie.families.values()
    assert len({*map(id, kept)}) > 2


@given(st.integers(0, 6), *[st.one_of(st.none(), st.integers(-9, 9))] * 2, st.sampled_from([None, -3, -1, 1, 2, 9]))
def test_slices_take_what_python_takes(extent, start, stop, step):
    first, last, by = slice(start, stop, step).indices(extent)
    assert sliced(extent, start, stop, step) == (first, by, len(range(first, last, by)))
