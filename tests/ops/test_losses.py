"""Losses of one class for each row read that class alone where the rows lie in memory."""

import numpy as np
import pytest
import torch

import genesis
from genesis.ir import Graph
from genesis.ir.dtypes import float32, int64
from genesis.ops import OPERATIONS
from tests.tolerances import assert_close

X = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)
LABELS = np.random.default_rng(1).integers(0, 4, (5, 3))
WEIGHT = np.linspace(0.5, 2, 4, dtype=np.float32)


@pytest.mark.parametrize("computed", [False, True])
def test_a_class_in_memory_is_gathered_and_one_that_is_computed_is_compared(computed):
    graph = Graph()
    rows, labels = graph.add("input", (), (8, 6), float32), graph.add("input", (), (8,), int64)
    OPERATIONS["nll_loss"](rows * 2 if computed else rows, labels)
    assert any(node.op == "gather" for node in graph.nodes) is not computed


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize("ignored", [-100, 2])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gathered_losses_and_gradients_are_torchs(weighted, reduction, ignored):
    found = []
    for library in (genesis, torch):
        x = library.tensor(X, requires_grad=True)
        loss = library.nn.functional.nll_loss(
            x, library.tensor(LABELS), library.tensor(WEIGHT) if weighted else None, ignore_index=ignored, reduction=reduction)
        loss.sum().backward()
        found.append((loss, x.grad))
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs, reduction)
