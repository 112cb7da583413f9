"""Lists of tensors in memory are joined at once: the same numbers, and no new program for another choice of tensors."""

import random

import numpy as np
import pytest
import torch

import genesis
from genesis.nn.utils.rnn import pad_sequence
from genesis.tensor.call_modes import OVERRIDES

SHAPES = (
    [(1, 3)] * 9, [(k % 4, 3) for k in range(9)], [(3,)] * 10, [()] * 8, [(2, 0)] * 8, [(2, 1, 3)] * 8,
    [(0,)] * 2, [(0,)] * 9, [(0,), (2, 3)],
)
NAMES = "cat", "stack", "hstack", "vstack", "dstack", "column_stack"


@pytest.fixture(autouse=True)
def _no_overriding_classes(monkeypatch):
    """With classes of tensors that other tests have defined every call would look for overrides."""
    monkeypatch.delitem(OVERRIDES, "(classes)", raising=False)


def lists_of(shapes, dtype="float32"):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype(dtype) for shape in shapes]
    return [genesis.from_numpy(a).clone() for a in arrays], [torch.from_numpy(a) for a in arrays]


def computed(tensors):
    genesis.synchronize()
    return tensors


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_joined_tensors_are_pytorchs(name, shapes):
    ours, theirs = lists_of(shapes)
    for settings in ((), (1,), (-1,)) if name in ("cat", "stack") else ((),):
        outcomes = []
        for library, tensors in ((genesis, computed(ours)), (torch, theirs)):
            try:
                found = getattr(library, name)(tensors, *settings)
                outcomes.append((tuple(found.shape), found.numpy().tolist()))
            except (RuntimeError, ValueError, IndexError):
                outcomes.append("refused")
        assert outcomes[0] == outcomes[1]


def test_sequences_are_padded_as_pytorch_pads_them():
    ours, theirs = lists_of([(1 + k % 4, 2) for k in range(9)], "int64")
    for settings in ({}, {"batch_first": True}, {"padding_value": 7}, {"padding_side": "left"}):
        mine = pad_sequence(computed(ours), **settings)
        assert mine.numpy().tolist() == torch.nn.utils.rnn.pad_sequence(theirs, **settings).tolist()
        assert mine.dtype is genesis.int64


@pytest.mark.parametrize("dtype, number", [("uint8", 256.5), ("uint8", 300), ("int64", float("nan")), ("int8", 1e20)])
def test_sequences_are_not_padded_with_numbers_that_they_cannot_hold(dtype, number):
    ours, theirs = lists_of([(1 + k % 4, 2) for k in range(9)], dtype)
    with pytest.raises(RuntimeError, match="overflow"):
        torch.nn.utils.rnn.pad_sequence(theirs, padding_value=number)
    with pytest.raises(ValueError, match="overflow"):
        pad_sequence(computed(ours), padding_value=number)


def test_another_choice_of_tensors_needs_no_new_program():
    tensors, choose = [genesis.tensor([float(k)] * 4).unsqueeze(0) for k in range(200)], random.Random(0)

    def loss():
        chosen = choose.sample(range(199), 16)
        before, after = (genesis.cat([tensors[k + step] for k in chosen]) for step in (0, 1))
        return ((before - after) ** 2).mean().item()

    genesis.synchronize()
    loss()
    built = genesis.debug.stats()["plans_built"]
    for _ in range(5):
        loss()
    assert genesis.debug.stats()["plans_built"] == built


def of_varying_sizes(lib, sizes):
    """What items and batches of data sets are made of."""
    for n in sizes:
        yield lib.stack([lib.cat([lib.arange(1, n + 1), lib.zeros(5 - n, dtype=lib.int64)]), lib.full((5,), n)]).tolist()
        parts = [lib.ones(1 + (n + k) % 5) for k in range(9)]
        yield lib.nn.utils.rnn.pad_sequence(parts, batch_first=True).tolist()
        yield lib.cat([lib.arange(10, 10 + (n + k) % 4, 2) * 3 for k in range(9)]).tolist()
        yield lib.cat([lib.full(((n + k) % 3,), 7.5) for k in range(9)]).tolist()
        yield lib.cat([lib.arange(float((n + k) % 3)) for k in range(9)]).tolist()


def test_new_tensors_of_varying_sizes_are_pytorchs():
    rng = random.Random(0)
    sizes = [rng.randrange(5) for _ in range(20)]
    assert [*of_varying_sizes(genesis, sizes)] == [*of_varying_sizes(torch, sizes)]


def test_new_tensors_of_varying_sizes_need_no_new_programs():
    rng = random.Random(0)

    def joined():
        return genesis.cat([genesis.full((rng.randrange(1, 12),), k) for k in range(12)]).tolist()

    for _ in range(8):
        joined()
    built = genesis.debug.stats()["plans_built"]
    for _ in range(8):
        joined()
    assert genesis.debug.stats()["plans_built"] == built


def test_a_recorded_call_makes_tensors_of_varying_sizes_itself():
    def made(n):
        return genesis.full((n,), 2.0)

    for n in range(1, 9):
        assert made(n).tolist() == [2.0] * n
    compiled = genesis.compile(lambda x: x * made(3))
    assert [compiled(genesis.tensor([1.0, 2.0, 3.0]) * k).tolist() for k in range(3)] == [
        [2.0 * k, 4.0 * k, 6.0 * k] for k in range(3)]


def test_tensors_of_varying_sizes_take_gradients_and_inference_mode():
    for n in range(1, 9):
        leaf = genesis.full((n,), 2.0, requires_grad=True)
        (leaf * leaf).sum().backward()
        assert leaf.is_leaf and leaf.grad.tolist() == [4.0] * n
        with genesis.inference_mode():
            assert genesis.arange(n + 1).is_inference()


def test_views_are_joined_as_they_are_now():
    for library in (genesis, torch):
        roots = [library.tensor([[1.0, 2.0], [3.0, 4.0]]) * k for k in range(8)]
        views = [roots[0].t(), roots[1].reshape(4)[:2].unsqueeze(0), *[root.reshape(4).unsqueeze(0) for root in roots[2:]]]
        [root.sum().item() for root in roots]
        roots[2][0, 1] = 9
        assert library.cat([view.reshape(-1) for view in views])[6:10].tolist() == [2.0, 9.0, 6.0, 8.0]
        assert library.cat(views[2:], 1).tolist() == [[number for root in roots[2:] for number in root.reshape(-1).tolist()]]
        whole = library.stack([root.t() for root in roots])
        assert whole[3].tolist() == [[3.0, 9.0], [6.0, 12.0]]


@pytest.mark.parametrize("dtype", [genesis.bfloat16, genesis.float16, genesis.bool, genesis.complex64])
def test_dtypes_are_kept(dtype):
    tensors = computed([genesis.tensor([0.0, 1.0]).to(dtype) for _ in range(8)])
    joined = genesis.cat(tensors)
    assert joined.dtype is dtype and joined.to(genesis.float32).tolist() == [0.0, 1.0] * 8


def test_dtypes_of_a_list_promote():
    tensors = computed([genesis.ones(1, dtype=genesis.int64 if k else genesis.float32) for k in range(8)])
    assert genesis.cat(tensors).dtype is genesis.float32


def test_gradients_flow_through_joined_leaves():
    leaves = [genesis.tensor([float(k)], requires_grad=True) for k in range(8)]
    (genesis.cat(computed(leaves)) ** 2).sum().backward()
    assert [leaf.grad.item() for leaf in leaves] == [2.0 * k for k in range(8)]
    with genesis.no_grad():
        assert not genesis.cat(leaves).requires_grad


def test_joined_values_are_those_of_the_call():
    tensors = computed([genesis.full((2,), float(k)) for k in range(8)])
    joined = genesis.stack(tensors)
    tensors[0].add_(100)
    assert joined[0].tolist() == [0.0, 0.0] and genesis.stack(tensors)[0].tolist() == [100.0, 100.0]


def test_a_recorded_call_replays_with_other_values():
    tensors = computed([genesis.full((2,), float(k)) for k in range(8)])
    total = genesis.compile(lambda: genesis.cat(tensors).sum())
    found = [total().item() for _ in range(3)]
    tensors[0].fill_(5.0)
    assert [*found, total().item()] == [56.0, 56.0, 56.0, 66.0]


def test_inference_tensors_are_marked():
    with genesis.inference_mode():
        tensors = computed([genesis.ones(1) for _ in range(8)])
        assert genesis.cat(tensors).is_inference()


@pytest.mark.parametrize("shape", [(3,), (2, 3), (0,)])
@pytest.mark.parametrize("name", ["cat", "hstack"])
def test_a_part_without_elements_takes_its_gradient(name, shape):
    def run(lib):
        empty, x = lib.zeros(0, requires_grad=True), lib.ones(shape)
        for parts in ((empty, x), (x, empty), (x, x)):
            joined = getattr(lib, name)(parts)
            yield tuple(joined.shape), joined.requires_grad
            if joined.requires_grad:
                joined.sum().backward()
                yield tuple(empty.grad.shape)

    assert [*run(genesis)] == [*run(torch)]
