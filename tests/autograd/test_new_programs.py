"""Programs of ever new sizes are flushed in parts, and parts without new sizes find their plans."""

import gc
import textwrap
import weakref
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import genesis
from genesis.execution import plan as plans
from genesis.runtime.counters import counts
from genesis.tensor import new_programs
from genesis.tensor.new_programs import LEAST_NODES, MOST_WHOLE, RECURRING
from genesis.tracing.state import thread_state
from genesis.tracing.trie import BYTE_LIMIT, fresh_roots

ROWS = 64


@pytest.fixture(autouse=True)
def nothing_met_so_far():
    fresh_roots()
    new_programs._met.clear()


def training(library, of_layers=False):
    """A network, its optimizer, and a generator of data."""
    rng = np.random.default_rng(0)
    model = layered(library) if of_layers else library.nn.Sequential(
        library.nn.Linear(6, 8), library.nn.Tanh(), library.nn.Linear(8, 1))
    with library.no_grad():
        for parameter in model.parameters():
            parameter.copy_(library.tensor(rng.standard_normal(tuple(parameter.shape)).astype(np.float32)))
    return model, library.optim.AdamW(model.parameters(), lr=1e-2), rng


def masked(library, model, rng, count):
    """A loss over `count` rows, taken by a mask once all rows are computed."""
    mask = np.zeros(ROWS, bool)
    mask[rng.permutation(ROWS)[:count]] = True
    x, y, chosen = [library.tensor(a) for a in (rng.standard_normal((ROWS, 6)).astype(np.float32),
                                                rng.standard_normal((ROWS, 1)).astype(np.float32), mask)]
    return ((model(x)[chosen] - y[chosen]) ** 2).mean()


def ragged(library, model, rng, count):
    """A loss over a batch of `count` rows."""
    x = library.tensor(rng.standard_normal((count, 6)).astype(np.float32))
    return (model(x) ** 2).mean()


def layered(library):
    """A network of four equal layers, with attention over the words of a sentence."""
    nn = library.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.both, self.out = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(8, 8)

        def forward(self, x):
            query, value = self.both(self.norm(x)).split(8, -1)
            return x + self.out((query @ query.transpose(-1, -2)).softmax(-1) @ value)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.layers, self.last = nn.Embedding(9, 8), nn.ModuleList([Layer() for _ in range(4)]), nn.Linear(8, 9)

        def forward(self, words):
            x = self.words(words)
            for layer in self.layers:
                x = layer(x)
            return self.last(x)

    return Network()


def sentences(library, model, rng, length):
    """The loss of predicting words of sentences of some length."""
    words, wanted = (library.tensor(rng.integers(0, 9, (2, length))) for _ in range(2))
    return library.nn.functional.cross_entropy(model(words).reshape(-1, 9), wanted.reshape(-1))


def losses(library, loss, sizes):
    model, optimizer, rng = training(library, loss is sentences)
    found = []
    for size in sizes:
        optimizer.zero_grad()
        value = loss(library, model, rng, size)
        value.backward()
        optimizer.step()
        found.append(value.item())
    return [*found, *[parameter.detach().numpy().tolist() for parameter in model.parameters()]]


@pytest.mark.parametrize("loss", [masked, ragged, sentences])
def test_training_over_ever_new_sizes(loss):
    sizes = [*range(1, MOST_WHOLE + 9), 3, MOST_WHOLE + 4, 0 if loss is ragged else 5]
    for one, other in zip(losses(genesis, loss, sizes[:-1]), losses(torch, loss, sizes[:-1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def no_templates(monkeypatch):
    """What is planned is planned by itself."""
    monkeypatch.setattr(plans, "program_of", lambda trace, key: None)


def planned_nodes(monkeypatch, loss, sizes):
    """How many nodes of traces each step plans."""
    planned, lower = [0], plans.read_or_lower

    def lowered(nodes, *rest):
        planned[-1] += len(nodes)
        return lower(nodes, *rest)

    monkeypatch.setattr(plans, "read_or_lower", lowered)
    model, optimizer, rng = training(genesis, loss is sentences)
    for size in sizes:
        planned.append(0)
        optimizer.zero_grad()
        loss(genesis, model, rng, size).backward()
        optimizer.step()
    return planned[1:]


@pytest.mark.parametrize(("loss", "share"), [(masked, 0.4), (ragged, 0.7), (sentences, 0.65)])
def test_what_has_no_new_size_is_planned_no_more(monkeypatch, loss, share):
    sizes = [*range(10, 10 + 3 * MOST_WHOLE)]
    planned = planned_nodes(monkeypatch, loss, sizes)
    assert 0 < planned[-1] < share * planned[2], planned
    assert planned[-1] == planned[-2] == planned[-3]


def test_parts_that_recur_are_joined_only_with_what_has_always_followed():
    rng, w, built = np.random.default_rng(0), genesis.full((4, 4), 0.25).requires_grad_(), []
    for _ in range(160):
        total, w.grad, before = genesis.zeros(()), None, counts["plans_built"]
        for size in rng.integers(3, 12, 5).tolist():
            h = (genesis.ones(size, 4) @ w).tanh().exp() @ w
            total = total + (h * h).sum().sqrt()
            total.item()
        total.backward()
        w.grad.tolist()
        built.append(counts["plans_built"] - before)
    assert sum(built[40:]) < sum(built[:40])


def test_a_program_is_ended_at_all_of_its_places_from_the_same_size_on(monkeypatch):
    """At its layers and at steps in time, behind them, whose lengths are of few kinds."""
    planned, lower = [], plans.read_or_lower
    monkeypatch.setattr(plans, "read_or_lower", lambda nodes, *rest: planned.append(len(nodes)) or lower(nodes, *rest))
    model, recurrent, largest = layered(genesis), genesis.nn.LSTM(9, 4), []
    for length in range(33, 33 + MOST_WHOLE + 6):
        planned.clear()
        states, _ = recurrent(model(genesis.zeros(1, length, dtype=genesis.int64)).transpose(0, 1))
        states.sum().backward()
        recurrent.weight_hh_l0.grad.tolist()
        largest.append(max(planned))
    assert max(largest[-3:]) < 0.5 * min(largest[:MOST_WHOLE]), largest


def test_a_few_sizes_that_recur_stay_whole_programs(monkeypatch):
    sizes = [*range(20, 20 + MOST_WHOLE - 1)] * 5
    before = counts["flushes"]
    planned = planned_nodes(monkeypatch, ragged, sizes)
    assert counts["flushes"] - before <= len(sizes) + 3  # of the setup
    assert sum(planned[2 * MOST_WHOLE :]) == 0


@pytest.mark.parametrize("loss", [ragged, sentences])
def test_parts_that_recur_become_a_whole_program(monkeypatch, loss):
    sizes = [*range(20, 20 + 2 * MOST_WHOLE)]
    planned = planned_nodes(monkeypatch, loss, [*sizes, *[sizes[-1]] * (RECURRING + 8)])
    first, again = planned[: len(sizes)], planned[len(sizes) :]
    assert first[-1] < first[2] <= sum(again) < 2 * first[0] and again.count(0) >= len(again) - 2, planned


def test_a_program_that_ends_with_its_backward_is_no_new_one():
    w = genesis.ones(3, requires_grad=True)
    for _ in range(3 * MOST_WHOLE):
        w.grad = None
        ((w * 2) ** 2).sum().backward()
        before = counts["flushes"]
        kept = w.grad * 3  # still part of the program
        assert counts["flushes"] == before and kept.sum().item() == 72


def test_an_error_of_a_part_is_told_at_its_line():
    table, index = genesis.randn(5, 3, requires_grad=True), [0, 1]
    for size in range(2, 4 + MOST_WHOLE):
        index = [*range(4)] * size
        table[genesis.tensor(index)].exp().sum().backward()
    with pytest.raises(IndexError, match="index 9 is out of range"):
        table[genesis.tensor([*index, 9])].exp().sum().backward()
        genesis.synchronize()
    table.grad = None
    (table * 2).sum().backward()
    assert table.grad.tolist() == [[2.0] * 3] * 5


def test_a_call_of_many_tensors_ends_no_trace_for_its_own():
    parts, row = [genesis.ones(2, requires_grad=True) for _ in range(LEAST_NODES + 1)], genesis.ones(40)
    row.tolist()
    for size in range(1, 2 * MOST_WHOLE):
        assert genesis.cat([*parts, row[:size]]).sum().item() == 2 * len(parts) + size


def test_a_function_whose_argument_has_a_new_size():
    class Squares(genesis.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return genesis.tensor(float((x.detach().numpy() ** 2).sum()))

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 * ctx.saved_tensors[0]

    for size in range(1, 2 * MOST_WHOLE):
        leaf, x = genesis.tensor([3.0] * size, requires_grad=True), genesis.ones(2, requires_grad=True)
        leaf.tolist()
        y = x
        for _ in range(LEAST_NODES):
            y = y + 1
        (Squares.apply(leaf) + y.sum()).backward()
        assert (leaf.grad.tolist(), x.grad.tolist()) == ([6.0] * size, [1.0, 1.0])


@pytest.mark.parametrize("kind", ["hooks", "checkpoint"])
def test_copies_of_arguments_stay_together(kind, monkeypatch):
    """Were a trace ended between them, the gradients of those before would be lost."""
    monkeypatch.setattr(new_programs, "MOST_WHOLE", -1)
    monkeypatch.setattr(new_programs, "LEAST_NODES", 1)
    found = []
    for library in (torch, genesis):
        a, b, c = [library.tensor([1.0 + n, 2.0], requires_grad=True) for n in range(3)]

        def product(a, b, c):
            return a * b * c * b

        if kind == "hooks":
            with library.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                y = product(a, b, c)
        else:
            y = library.utils.checkpoint.checkpoint(product, a, b, c, use_reentrant=False)
        y.sin().sum().backward()
        found.append([each.grad.numpy() for each in (a, b, c)])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_a_growing_sequence_plans_each_layer_once(monkeypatch):
    planned, lower = [], plans.read_or_lower
    monkeypatch.setattr(plans, "read_or_lower", lambda nodes, *rest: planned.append(len(nodes)) or lower(nodes, *rest))
    model, words = layered(genesis), [1]
    expected = layered(torch)
    expected.load_state_dict({name: torch.tensor(value.numpy()) for name, value in model.state_dict().items()})
    for _ in range(2 * MOST_WHOLE):
        planned.clear()
        with genesis.no_grad():
            words.append(model(genesis.tensor([words]))[0, -1].argmax().item())
    with torch.no_grad():
        assert [expected(torch.tensor([words[:k]]))[0, -1].argmax().item() for k in range(1, len(words))] == words[1:]
    first, layer, last = planned
    assert layer < first + last < 3 * layer


def test_parts_begin_where_layers_do_not_where_calls_within_a_layer_recur(monkeypatch):
    """The two calls of `Linear` in a layer are no rounds of a loop, so the first layer is planned as the others."""
    planned, lower = [], plans.read_or_lower
    monkeypatch.setattr(plans, "read_or_lower", lambda nodes, *rest: planned.append(len(nodes)) or lower(nodes, *rest))

    class Layer(genesis.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = genesis.nn.LayerNorm(8)
            self.both = genesis.nn.Sequential(genesis.nn.Linear(8, 8), genesis.nn.Linear(8, 8))

        def forward(self, x):
            return x + self.both(self.norm(x)).softmax(-1).exp().tanh()

    layers, places = [Layer() for _ in range(5)], genesis.randn(40, 8)
    for length in range(20, 20 + MOST_WHOLE + 4):
        planned.clear()
        x = (genesis.ones(length, 8) * 2).exp().sin().cos().tanh() + places[:length]
        for layer in layers:
            x = layer(x)
        x.sum().backward()
        layers[0].norm.weight.grad.tolist()
    before, layer, last, *backward = planned
    assert before < layer / 2 and layer == last and len(backward) <= 3, planned


def test_what_runs_between_parts_keeps_its_order_and_its_gradients(monkeypatch):
    monkeypatch.setattr(new_programs, "MOST_WHOLE", 1)

    def total(library, length):
        model, seen = layered(library), []
        with library.no_grad():
            for parameter, value in zip(model.parameters(), values, strict=True):
                parameter.copy_(library.tensor(value))
        model.layers[1].register_forward_hook(lambda module, given, result: result * 2)
        model.layers[2].register_full_backward_hook(lambda module, given, result: seen.append(result[0].abs().sum().item()))
        found, kept = model.words(library.tensor([[*range(length)]])), []
        for layer in model.layers:
            found = layer(found)
            kept.append(found)
            if found.requires_grad:
                found.register_hook(lambda gradient: gradient * 0.5)
            found = found + 1
        loss = model.last(found).square().mean() + sum(each.abs().mean() for each in kept)
        weights = [*model.parameters()]
        gradients = library.autograd.grad(loss, weights, create_graph=True)
        sum(gradient.square().sum() for gradient in gradients).backward()
        return [loss.item(), seen, *[gradient.detach().numpy().copy() for gradient in gradients],
                *[weight.grad.numpy().copy() for weight in weights]]

    rng = np.random.default_rng(1)
    values = [rng.standard_normal(tuple(p.shape)).astype(np.float32) * 0.3 for p in layered(genesis).parameters()]
    for length in range(2, 6):
        for one, other in zip(total(genesis, length), total(torch, length), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("mode", [genesis.eager, nullcontext])
def test_copies_of_arguments_stay_together_at_any_weight(mode, monkeypatch):
    """Eager mode, and more bytes than a trace may have, flush after each call elsewhere."""
    monkeypatch.setattr(thread_state, "weight", 2.0 * BYTE_LIMIT)
    with mode():
        a, b = genesis.tensor([1.0, 2.0], requires_grad=True), genesis.tensor([3.0, 5.0], requires_grad=True)
        with genesis.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = a * b * b
        y.sum().backward()
        assert (a.grad.tolist(), b.grad.tolist()) == ([9, 25], [6, 20])


def test_counts_of_returns_keep_no_code_alive():
    made = {}
    exec(textwrap.dedent("""
        import genesis

        class Layer(genesis.nn.Linear):
            def forward(self, x):
                return super().forward(x).exp().tanh()
    """), made)
    layers = [made["Layer"](4, 4) for _ in range(12)]
    for size in range(2, 5):
        x = genesis.ones(size, 4)
        for layer in layers:
            x = layer(x)
        x.sum().item()
    code = weakref.ref(made.pop("Layer").forward.__code__)
    counted = code() in new_programs._met
    del layers, layer, made, x
    fresh_roots()
    gc.collect()
    assert counted and code() is None


def test_a_backward_over_looks_at_random_times_plans_each_of_its_steps_once(monkeypatch):
    """Each look flushes a step, whose backward is a program of its own, with the sums of the gradients so far."""
    planned, lower = [], plans.read_or_lower
    monkeypatch.setattr(plans, "read_or_lower", lambda nodes, *rest: planned.append(len(nodes)) or lower(nodes, *rest))
    models = [training(library)[0] for library in (genesis, torch)]
    rng = np.random.default_rng(2)
    for number, length in enumerate(rng.permutation(range(3, 33))):
        if number == 15:
            planned.clear()
        state = rng.standard_normal((1, 6)).astype(np.float32)
        for library, model in zip((genesis, torch), models, strict=True):
            total, x = 0, library.tensor(state)
            for _ in range(length):
                total = total + model(x) ** 2
                x = x * (1 - abs(total.item()) / 100)
            model.zero_grad()
            total.sum().backward()
        for ours, theirs in zip(*[model.parameters() for model in models], strict=True):
            np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=2e-3, atol=1e-4)
    assert sum(planned) < 1000, planned
