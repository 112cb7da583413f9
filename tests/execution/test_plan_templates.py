"""Plans that templates fill in are, word for word, those that would be made; and what they compute is what NumPy computes."""

import random
from array import array

import numpy as np
import pytest

import genesis
from genesis import nn
from genesis.execution import plan as plans
from genesis.execution import plan_template
from genesis.ir.skeletons import described
from genesis.ir.symbolic_sizes import Symbols, value_of


@pytest.fixture
def filled(monkeypatch):
    """The plans that are filled in, each compared with the one that is made for the same trace."""
    found, fill = [], plans._filled_in

    def compared(trace, key):
        program, plan = fill(trace, key)
        if program is not None:
            numbers = []
            tuple(described(trace.nodes, numbers))
            assert program.numbers == numbers
        if plan is not None:
            made = plans.Plan(trace, trace.nodes, tuple(dict.fromkeys(key[0])), key[1])
            for name in ("keeps", "saved", "saved_inputs", "values", "reads", "inputs", "outputs", "sizes", "donations"):
                assert getattr(plan, name) == getattr(made, name), name
            assert plan.arena_bytes == made.arena_bytes
            assert [*map(words_of, plan.segments)] == [*map(words_of, made.segments)]
            found.append(plan)
        return program, plan

    monkeypatch.setattr(plans, "_filled_in", compared)
    monkeypatch.setattr(plan_template, "GROUPS", {})  # that of an earlier test lives on
    monkeypatch.setattr(plan_template, "_skeletons", type(plan_template._skeletons)())
    return found


def words_of(segment):
    """A program's words, with what is in its own memory, or places in the words, in place of addresses."""
    program = segment.program
    words, base = [*program._words], program.address
    words[7] = 0  # the address of its clock
    owned = {kept.buffer_info()[0] if isinstance(kept, array) else kept.ctypes.data: kept.tobytes() for kept in program._keep}
    inside = range(base, base + 8 * len(words))
    return [owned[word] if word in owned else ("at", word - base) if word in inside else word for word in words]


# ---- random programs: each step makes a value of some shape over the sizes n and m ----
STEPS = {
    "scale": lambda x, n, m: x * 0.5 + 1,
    "softmax": lambda x, n, m: x.softmax(-1),
    "norm": lambda x, n, m: (x - x.mean(0)) / (x.std(0) + 1),
    "rows": lambda x, n, m: x + x.sum(0),
    "columns": lambda x, n, m: x * x.mean(1, keepdim=True),
    "gram": lambda x, n, m: (x @ x.T).tanh() @ x,
    "turn": lambda x, n, m: x.T.contiguous().T + 1,
    "part": lambda x, n, m: genesis.cat([x[: n // 2], x[n // 2 :] * 2]),
    "gather": lambda x, n, m: x[genesis.arange(n - 1, -1, -1)],
    "add_at": lambda x, n, m: genesis.zeros(n, x.shape[1]).index_add(0, genesis.arange(m) % n, genesis.ones(m, x.shape[1])) + x,
    "cumulate": lambda x, n, m: x.cumsum(0) * 0.1,
    "relu": lambda x, n, m: x.relu(),
    "sorted": lambda x, n, m: x.sort(0).values,
}


def test_filled_plans_are_those_that_would_be_made(filled):
    for seed in range(10):
        chosen = random.Random(seed)
        names, width = chosen.choices([*STEPS], k=5), chosen.choice([3, 8, 32])
        weight = genesis.tensor(np.random.RandomState(seed).randn(width, width).astype("float32"), requires_grad=True)
        for _ in range(12):
            n, m = chosen.randint(2, 90), chosen.randint(2, 300)
            weight.grad = None
            x = genesis.tensor(np.random.RandomState(n).randn(n, width).astype("float32")) @ weight
            for name in names:
                x = STEPS[name](x, n, m)
            loss = x.square().mean()
            loss.backward()
            loss.item(), weight.grad.numpy()
    assert len(filled) > 20


def test_sizes_beyond_every_guard_are_planned_rightly(filled):
    for n in (5, 6, 7, 8, 300, 17, 16, 64, 65, 1, 2, 3, 0, 1000, 64, 4097, 33):
        x = np.linspace(-1, 1, 7 * n, dtype="float32").reshape(7, n)
        y = (genesis.tensor(x).softmax(0) @ genesis.tensor(x.T)).sum(1)
        e = np.exp(x - x.max(0)) if n else x
        np.testing.assert_allclose(y.numpy(), ((e / e.sum(0)) @ x.T).sum(1), rtol=2e-4, atol=2e-4)
    assert filled


def test_numbers_that_follow_from_sizes_are_filled_in(filled):
    for n in (205, 209, 220, 231, 247, 263, 290):
        x = genesis.arange(n, dtype=genesis.float64, requires_grad=True)
        y = x.mean() * 2
        y.backward()
        assert y.item() == n - 1
        np.testing.assert_array_equal(x.grad.numpy(), np.full(n, 2 / n))
    assert filled


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_decompositions_of_new_sizes_have_arguments_of_their_own(filled, dtype):
    for n in (5, 7, 9, 11, 13, 11, 6):
        x = np.random.RandomState(n).randn(n, n).astype(dtype) + n * np.eye(n)
        np.testing.assert_allclose(genesis.linalg.inv(genesis.tensor(x)).numpy(), np.linalg.inv(x), atol=1e-9)
        values, _ = genesis.linalg.eigh(genesis.tensor(x @ x.T.conj()))
        np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(x @ x.T.conj()), atol=1e-9)


def test_an_index_out_of_range_in_a_filled_plan_names_extent_and_index(filled):
    for n in (5, 9, 20, 31, 47):
        assert genesis.arange(n)[genesis.tensor([n - 1])].tolist() == [n - 1]
    with pytest.raises(IndexError, match=r"77.*63"):
        genesis.arange(63)[genesis.tensor([77])].tolist()
    assert filled


def test_templates_that_no_program_fits_are_made_seldom(monkeypatch, filled):
    made, make = [], plan_template._template
    monkeypatch.setattr(plan_template, "_template", lambda *given: made.append(make(*given)))
    for n in range(40, 60):
        assert genesis.arange(n).sum().item() == n * (n - 1) // 2
    assert 0 < len(made) <= 6 and not filled


def test_sizes_that_have_outgrown_all_templates_get_another(filled):
    for n in (5, 6, 7, 8, 9, *range(300, 320)):
        x = np.linspace(-1, 1, 3 * n, dtype="float32").reshape(3, n)
        y = (genesis.tensor(x.T) @ genesis.tensor(x)).sum(1)
        np.testing.assert_allclose(y.numpy(), (x.T @ x).sum(1), rtol=1e-4, atol=1e-4)
    assert any(plan.sizes == [4 * n] for plan in filled for n in range(300, 320))


def test_attention_over_lengths_of_any_remainder_needs_one_template(filled):
    weight, bias = genesis.randn(32, 96), genesis.randn(96)
    for n in range(101, 125):
        q, k, v = (part.reshape(n, 4, 8).transpose(0, 1) for part in (genesis.ones(n, 32) @ weight + bias).chunk(3, 1))
        heads = (q @ k.transpose(1, 2)).softmax(-1) @ v
        heads.transpose(0, 1).reshape(n, 32).tolist()
    assert filled and {known.made for known in plan_template._skeletons.values()} <= {0, 1}


def test_numbers_that_are_zero_in_an_example_have_symbols_of_their_own():
    numbers = plan_template._unified(Symbols(), [[0, 6, 0, 7], [4, 8, 8, 7], [2, 9, 4, 7]])
    assert [value_of(number) for number in numbers] == [2, 9, 4, 7]


def test_a_graph_network_over_random_graphs_trains_as_with_plans_of_its_own(monkeypatch, filled):
    def losses():
        rng, found = np.random.RandomState(0), []
        genesis.manual_seed(0)
        layer, head = nn.Linear(4, 16), nn.Linear(16, 2)
        optimizer = genesis.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.01)
        for _ in range(16):
            n, e = rng.randint(3, 60), rng.randint(3, 300)
            x = genesis.tensor(rng.randn(n, 4).astype("float32"))
            src, dst = (genesis.tensor(rng.randint(0, n, e)) for _ in range(2))
            optimizer.zero_grad()
            h = genesis.zeros(n, 16).index_add(0, dst, layer(x)[src]).relu()
            loss = nn.functional.cross_entropy(head(h.mean(0, keepdim=True)), genesis.tensor([1]))
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    with_templates = losses()
    assert filled
    monkeypatch.setattr(plans, "program_of", lambda trace, key: None)
    genesis.tracing.trie.fresh_roots()
    assert losses() == with_templates


def test_code_that_fills_in_is_the_librarys_own():
    """So that a call in which it runs can be replayed."""
    fill = Symbols().compiled("size", result="size")
    assert fill(3) == 3 and fill.__module__ == Symbols.__module__
