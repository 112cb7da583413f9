"""What fails leaves the rest as it was."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn


def test_a_bad_index_takes_only_what_depends_on_it():
    x = genesis.arange(10)
    before = x * 2
    bad = x.index_select(0, genesis.tensor([0, 50]))
    after, dependent = before + 1, bad + 1
    with pytest.raises(IndexError, match=r"index 50 is out of range for extent 10.*test_failures\.py"):
        dependent.tolist()
    assert before.tolist() == list(range(0, 20, 2))
    assert after.tolist() == list(range(1, 21, 2))
    for lost in (bad, dependent):
        with pytest.raises(RuntimeError, match=r"lost.*index 50"):
            lost.tolist()
        with pytest.raises(RuntimeError, match=r"lost.*index 50"):
            (lost + 1).tolist()
    assert (x + 1).tolist() == list(range(1, 11))


def test_two_bad_indices_take_what_depends_on_either():
    x = genesis.arange(4)
    first, second = x.index_select(0, genesis.tensor([7])), x.index_select(0, genesis.tensor([9]))
    sound = x + 1
    with pytest.raises(IndexError):
        first.tolist()
    for lost in (first, second):
        with pytest.raises(RuntimeError, match="lost"):
            lost.tolist()
    assert sound.tolist() == [1, 2, 3, 4]


def test_a_backward_from_what_is_lost_says_so():
    table = nn.Parameter(genesis.ones(5, 3))
    loss = (table[genesis.tensor([1, 7])] * 2).sum()
    with pytest.raises(IndexError):
        genesis.synchronize()
    with pytest.raises(RuntimeError, match=r"lost.*index 7"):
        loss.backward()
    assert table.grad is None


def test_a_step_that_fails_leaves_parameters_as_they_were():
    embedding = nn.Embedding(5, 3)
    optimizer = genesis.optim.Adam(embedding.parameters(), lr=0.1)
    before = embedding.weight.tolist()
    with pytest.raises(IndexError, match="index 7"):
        embedding(genesis.tensor([1, 7])).sum().backward()
        optimizer.step()
    assert embedding.weight.tolist() == before
    optimizer.zero_grad()
    embedding(genesis.tensor([1, 2])).sum().backward()
    optimizer.step()
    moved = [row != old for row, old in zip(embedding.weight.tolist(), before, strict=True)]
    assert moved == [False, True, True, False, False]


def test_too_large_a_value_loses_nothing():
    x = genesis.ones(3) + 1
    huge = genesis.zeros(1 << 45)
    for _ in range(2):
        with pytest.raises(MemoryError, match="cannot allocate 140,737,488,355,328 bytes"):
            x.tolist()
    assert (genesis.ones(2) + 1).tolist() == [2, 2], "what is written after the failure does not meet it"
    del huge
    assert x.tolist() == [2, 2, 2]


def test_a_wrong_call_in_the_middle_of_a_trace_leaves_no_mark():
    x = genesis.ones(2, 3)
    y = x * 2.5
    for _ in range(3):
        with pytest.raises(ValueError):
            (y * 1.5) @ x
    z = y * 3.5 + x
    assert z.tolist() == [[9.75] * 3] * 2


def test_a_raising_argument_leaves_no_mark():
    x = genesis.ones(3)
    with pytest.raises(OverflowError):
        x + (1 << 70)
    with pytest.raises(TypeError):
        x + object()
    assert (x * 2.5 + 1.5).tolist() == [4, 4, 4]


def test_an_exception_in_a_hook_comes_after_the_flush():
    from genesis.execution.flush import FLUSH_HOOKS

    def hook(trace, plan):
        raise KeyError("from a hook")

    x = genesis.ones(3) + 1
    FLUSH_HOOKS.append(hook)
    try:
        with pytest.raises(KeyError, match="from a hook"):
            x.tolist()
    finally:
        FLUSH_HOOKS.remove(hook)
    assert x.tolist() == [2, 2, 2]


def test_a_step_that_does_not_fit_into_memory_leaves_the_model_as_it_was():
    weight = genesis.ones(3, requires_grad=True)
    average = genesis.zeros(3)
    for huge in (None, 1 << 44):
        loss = (weight * weight).sum()
        loss.backward()
        with genesis.no_grad():
            weight -= 0.25 * weight.grad
            average.mul_(0.5).add_(weight)
        weight.grad = None
        if huge:
            too_large = genesis.zeros(huge) * loss
            with pytest.raises(MemoryError, match="cannot allocate"):
                too_large.sum().item() + too_large.tolist()
            del too_large, loss
        assert (weight.tolist(), average.tolist()) == ([0.5] * 3, [0.5] * 3)
    (weight * weight).sum().backward()
    assert weight.grad.tolist() == [1.0] * 3


def test_what_took_a_gradient_in_a_step_that_failed_requires_none():
    weight = genesis.ones(3, requires_grad=True)
    total = genesis.zeros(3)
    assert total.tolist() == [0.0] * 3
    total.add_(weight)
    too_large = genesis.zeros(1 << 44) * total.sum()
    assert total.requires_grad
    with pytest.raises(MemoryError, match="cannot allocate"):
        too_large.sum().item()
    del too_large
    assert not total.requires_grad and total.is_leaf
    total.add_(1.0)
    assert total.tolist() == [1.0] * 3


def test_a_step_that_cannot_be_compiled_leaves_the_model_as_it_was(monkeypatch):
    weight = genesis.ones(3, requires_grad=True)
    before = weight.tolist()
    (weight * weight).sum().backward()
    with genesis.no_grad():
        weight -= 0.25 * weight.grad

    def refuses(*asked: object) -> None:
        raise RuntimeError("the compiler refuses")

    with monkeypatch.context() as changed:
        changed.setattr("genesis.execution.flush.find_plan", refuses)
        with pytest.raises(RuntimeError, match="refuses"):
            weight.tolist()
    assert weight.tolist() == before
    weight.grad = None
    (weight * weight).sum().backward()
    assert weight.grad.tolist() == [2] * 3
