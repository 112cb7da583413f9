"""Arithmetic in place on views in memory: NumPy does it there, without a program, where nobody else may ask."""

import warnings

import numpy as np
import pytest
import torch

import genesis

CASES = {
    "rows": lambda lib, m, w: [m[i % 3].add_(w) for i in range(5)],
    "elements": lambda lib, m, w: [m.__setitem__((i % 3, 1), m[i % 3, 1] * 1.5) for i in range(4)],
    "in place of elements": lambda lib, m, w: added(m),
    "its own elements": lambda lib, m, w: m[1:].add_(m[1:]),
    "a column of another root": lambda lib, m, w: m[:, 2].mul_(lib.tensor([[1.0, 2.0, -3.0]]).reshape(3, 1)[:, 0]),
    "beyond all numbers": lambda lib, m, w: [m[0].mul_(1e38).mul_(-1e38), m[1].div_(0), m[2].div_(lib.zeros(4))],
}


def added(m):
    for i in range(6):
        m[i % 3, i % 2] += 0.1
        m[i % 3] /= 3


@pytest.mark.parametrize("change", CASES.values(), ids=CASES)
def test_results_and_counts_of_writes_are_torchs(change):
    found = []
    for lib in (genesis, torch):
        m, w = lib.arange(12.0).reshape(3, 4).clone(), lib.tensor([0.1, -2.0, 3.0, 1e-3])
        m.tolist(), w.tolist()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            change(lib, m, w)
        found.append((np.array(m.tolist()), m._version))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_nothing_is_planned_or_run_and_others_keep_their_values():
    m, w = genesis.zeros(3, 4), genesis.ones(4)
    m.tolist(), w.tolist()
    before = m.clone()
    before.tolist()
    genesis.debug.reset_stats()
    m[1] += w
    m[2, 1] -= 2
    assert genesis.debug.stats()["flushes"] == 0
    assert m.tolist() == [[0.0] * 4, [1.0] * 4, [0.0, -2.0, 0.0, 0.0]] and not before.any()


def test_what_backward_needs_is_not_changed_silently():
    for lib in (genesis, torch):
        m, w = lib.ones(3, 4), lib.ones(4, requires_grad=True)
        m.tolist()
        loss = (m[1] * w).sum()
        m[1] += 1
        with pytest.raises(RuntimeError, match="modified"):
            loss.backward()


@pytest.mark.parametrize("number", [0.5, True, 300, -1])
def test_numbers_that_do_not_fit_are_met_as_for_whole_tensors(number):
    def met(view):
        x = genesis.zeros(2, 3, dtype=genesis.uint8)
        x.tolist()
        try:
            (x[1] if view else x).add_(number)
        except Exception as problem:
            return type(problem), str(problem)
        return x[1].tolist()

    assert met(True) == met(False)


def test_a_compiled_call_records_it():
    w = genesis.ones(3)
    m = genesis.zeros(2, 3)
    w.tolist(), m.tolist()

    @genesis.compile
    def step(k):
        m[1] += w
        m[0] -= k
        return m.sum()

    assert [step(genesis.tensor(k)).item() for k in (1.0, 2.0, 0.0, 1.0)] == [0.0, -3.0, 0.0, 0.0]
    assert m.tolist() == [[-4.0] * 3, [4.0] * 3]
