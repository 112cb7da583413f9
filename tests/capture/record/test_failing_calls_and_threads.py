"""Compiled functions that fail, and that are called often: by many sizes, on other devices, from several threads."""

import contextlib
import dataclasses
import functools
import gc
import threading

import numpy as np
import pytest
import torch

import genesis
from genesis import nn

# ---- failures ----


def test_an_exception_leaves_what_it_leaves_uncompiled_and_nothing_is_kept():
    total = genesis.zeros(2)

    @genesis.compile
    def f(x, fail):
        total.add_(x)
        if fail:
            raise KeyError("as asked")
        total.add_(x)
        return total.sum()

    for _ in range(3):
        f(genesis.ones(2), False)
        with pytest.raises(KeyError, match="as asked"):
            f(genesis.ones(2), True)
    assert total.tolist() == [9.0, 9.0]
    assert len(f.entries) == 1 and genesis.tracing.state.thread_state.recorder is None
    with pytest.raises(ValueError, match="matmul"):
        genesis.compile(lambda x: x @ genesis.ones(5, 5))(genesis.ones(2, 3))


@pytest.mark.parametrize("width", [3, 20_000])
@pytest.mark.parametrize("lasts", [(1, 2, 9, 3, 9, 4), (9, 1, 9, 2, 3)])
def test_an_index_out_of_range_fails_as_it_does_uncompiled(width, lasts):
    def run(wrap):
        genesis.manual_seed(0)
        table = nn.Embedding(5, width)
        optimizer = genesis.optim.Adam(table.parameters(), lr=0.1)
        scheduler = genesis.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(index):
            optimizer.zero_grad()
            loss = table(index).square().sum()
            loss.backward()
            optimizer.step()
            scheduler.step()
            return loss

        step = wrap(step)
        told = []
        for last in lasts:
            try:
                told.append(step(genesis.tensor([0, last])).item())
            except IndexError as error:
                told.append(str(error))
        return told, table.weight[:, :3].tolist(), optimizer.state[table.weight]["step"], scheduler.last_epoch

    assert run(genesis.compile) == run(lambda f: f)


# ---- many ----


def once(model, optimizer, loss, good, bad):
    loss(bad).backward()
    optimizer.step()
    for parameter in model.parameters():
        parameter.grad = parameter.detach() * 0


def then_clears(model, optimizer, loss, good, bad):
    value = loss(bad)
    value.backward()
    optimizer.step()
    optimizer.zero_grad()
    value.item()


def twice(model, optimizer, loss, good, bad):
    optimizer.zero_grad()
    loss(good).backward()
    optimizer.step()
    value = loss(bad)
    value.backward()
    optimizer.step()
    value.item()


@pytest.mark.parametrize("fails", [(0,), (1, 2), (3, 5)])
@pytest.mark.parametrize("form", [once, then_clears, twice], ids=lambda form: form.__name__)
def test_a_failing_call_leaves_gradients_and_ages_as_pytorch_does(form, fails):
    def run(lib, wrap):
        model = lib.nn.Linear(2, 2)
        with lib.no_grad():
            model.weight.copy_(lib.tensor([[0.1, 0.2], [0.3, -0.4]]))
            model.bias.copy_(lib.tensor([0.5, -0.6]))
        optimizer, x, good = lib.optim.Adam(model.parameters(), 0.1), lib.ones(3, 2), lib.tensor([0, 1, 0])

        def loss(labels):
            return lib.nn.functional.nll_loss(model(x).log_softmax(1), labels)

        step, found = wrap(lambda bad: form(model, optimizer, loss, good, bad)), []
        for number in range(7):
            if form is then_clears:
                model.bias.grad = lib.ones(2)
            with contextlib.suppress(IndexError):
                step(lib.tensor([0, 1, 9 if number in fails else 1]))
                assert number not in fails
            gradients = [p.grad if p.grad is None else p.grad.numpy() + 0 for p in model.parameters()]
            state = optimizer.state_dict()["state"].get(0, {"step": 0})
            found.append((model.weight.detach().numpy() + 0, gradients, float(state["step"])))
        return found

    for got, want in zip(run(genesis, genesis.compile), run(torch, lambda f: f), strict=True):
        assert got[2] == want[2]
        for a, b in zip([got[0], *got[1]], [want[0], *want[1]], strict=True):
            assert (a is None) == (b is None)
            np.testing.assert_allclose(*(0 if x is None else x for x in (a, b)), rtol=1e-4, atol=1e-6)


def test_a_failing_call_leaves_nothing_to_the_collector():
    def f(x, index):
        y = x.exp()
        y.sum().item()
        y[index].sum().item()
        return y

    x, good, bad = genesis.ones(3, 3), genesis.tensor([0]), genesis.tensor([3])
    for call in (f, genesis.compile(f)):
        for index in (good, good, bad, good, bad):
            with contextlib.suppress(IndexError):
                call(x, index)
        gc.collect()
        gc.disable()
        try:
            with contextlib.suppress(IndexError):
                call(x, bad)
            assert gc.collect() == 0
        finally:
            gc.enable()


@dataclasses.dataclass
class Linked:
    x: object
    next: object = None


def test_containers_that_contain_themselves():
    def through(given):
        return given[0] * 2, given

    def linked(x, by):
        made = Linked(x * by)
        made.next = made
        return made

    given = [genesis.ones(2)]
    given.append(given)
    double, link = genesis.compile(through), genesis.compile(linked)
    for by in (1.5, 2.5, 3.5):
        assert double(given)[0].tolist() == [2.0, 2.0] and double(given)[1] is given
        made = link(genesis.ones(2), by)
        assert made.next is made and made.x.tolist() == [by, by]
    assert double.refusals[0].reason == "an argument contains itself"
    assert [one.reason for one in link.refusals] == ["a container is returned that contains itself"]


def test_entries_are_bounded_and_new_sizes_compile_no_kernels():
    compiled = genesis.compile(lambda x: (x * 2).sum(0))
    batches = [genesis.tensor(np.ones((rows, 4), np.float32)) for rows in range(3, 100)]
    compiled(batches[0])
    genesis.debug.reset_stats()
    for batch in batches[1:]:
        assert compiled(batch).tolist() == [2.0 * len(batch)] * 4
    counts = genesis.debug.stats()
    assert counts["kernels_compiled"] + counts["kernels_loaded"] == 0
    assert len(compiled.entries) <= genesis.capture.compiled.ENTRY_LIMIT


def test_other_devices_before_and_within():
    (genesis.ones(2, device="cpu:1") + 1).tolist()
    double = genesis.compile(lambda x: x * 2)
    for _ in range(3):
        assert double(genesis.ones(2)).tolist() == [2.0, 2.0]
        (genesis.ones(2, device="cpu:1") + 1).tolist()
    assert double.entries[0].replays == 2
    away = genesis.compile(lambda x: genesis.ones(2, device="cpu:1") * x.sum().item())
    assert [away(genesis.ones(2)).device for _ in range(2)] == ["cpu:1"] * 2 and not away.entries
    beside = genesis.compile(lambda x: (x * 2, genesis.ones(2, device="cpu:1") + 1))
    assert [beside(genesis.ones(2))[1].tolist() for _ in range(3)] == [[2.0, 2.0]] * 3


def test_threads_may_call_at_once():
    total = genesis.zeros(4)

    @genesis.compile
    def f(x):
        total.add_(x)
        return x * 2 + 1

    f(genesis.ones(4))
    wrong = []

    def work(number):
        x = genesis.full((4,), float(number))
        for _ in range(40):
            if f(x).tolist() != [2.0 * number + 1] * 4:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert f.entries[0].replays == 160 and total.tolist() == [1.0 + 40 * 6] * 4


def test_a_gradient_that_another_thread_has_yet_to_compute_is_one_from_before_the_call():
    def trained(library, wrap):
        weight = library.ones(2, requires_grad=True)

        def step(x):
            if weight.grad is not None:
                weight.grad.zero_()
            (x.clone() * weight).pow(2).sum().backward()

        first = threading.Thread(target=lambda: (weight * 3).sum().backward())
        first.start()
        first.join()
        compiled = wrap(step)
        for number in (1.0, 2.0, 3.0):
            compiled(library.tensor([number, 0.5], requires_grad=True))
        return weight.grad.tolist(), compiled

    gradient, compiled = trained(genesis, genesis.compile)
    assert gradient == trained(torch, lambda step: step)[0] and compiled.entries[0].replays == 2


def test_a_call_that_fills_a_cache_splits_no_graph_and_the_next_is_replayed():
    runs = []

    @functools.lru_cache(128)
    def shape_of(rows, columns):
        runs.append(rows)
        return [rows, columns], {"kept": (columns, rows)}

    for rows in range(200):  # more than it keeps: each call is one list, one dict and no key that is compared
        shape_of(rows, 2)
    del runs[:]
    folded = genesis.compile(lambda x: x.reshape(shape_of(4, 3)[0]) * 2, fullgraph=True)
    x = genesis.arange(12.0)
    expected = (x.reshape(4, 3) * 2).tolist()
    assert [folded(x).tolist() for _ in range(4)] == [expected] * 4
    assert runs == [4]
    shape_of(4, 3)[0].reverse()
    assert folded(x).shape == (3, 4)
