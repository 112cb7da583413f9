"""Tables of rows against torch's: bags, pretrained tables, classes as rows, and what is refused."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.nn import functional as F
from tests.tolerances import assert_close

POSITIONS, OFFSETS = np.array([1, 2, 4, 5, 4, 3, 2, 9]), np.array([0, 4, 4])


@pytest.mark.parametrize("settings", [{}, {"mode": "sum"}, {"mode": "max"}, {"mode": "sum", "padding_idx": 4},
                                      {"include_last_offset": True}], ids=str)
def test_bags_and_their_gradients_are_torchs(settings):
    theirs = torch.nn.EmbeddingBag(10, 3, **settings, dtype=torch.float64)
    ours = nn.EmbeddingBag(10, 3, **settings, dtype=genesis.float64)
    ours.load_state_dict(theirs.state_dict())
    found = []
    for library, module in ((genesis, ours), (torch, theirs)):
        y = module(library.tensor(POSITIONS), library.tensor(OFFSETS))
        rows = module(library.tensor(POSITIONS.reshape(4, 2)))
        ((y**2).sum() + (rows**3).sum()).backward()
        found.append([y, rows, module.weight.grad])
    assert_close(*found, scale=10)


@pytest.mark.parametrize("settings", [{"max_norm": 1.5}, {"max_norm": 2.0, "norm_type": 1.0, "padding_idx": 2},
                                      {"scale_grad_by_freq": True, "padding_idx": 4}], ids=str)
def test_rows_with_bounded_norms_and_shared_gradients_are_torchs(settings):
    theirs = torch.nn.Embedding(10, 3, **settings, dtype=torch.float64)
    ours = nn.Embedding(10, 3, **settings, dtype=genesis.float64)
    ours.load_state_dict(theirs.state_dict())
    found = []
    for library, module in ((genesis, ours), (torch, theirs)):
        y = module(library.tensor(POSITIONS.reshape(4, 2)))
        (y**3).sum().backward()
        found.append([y, module.weight, module.weight.grad])
    assert_close(*found, scale=10)


@pytest.mark.parametrize("library", [genesis, torch], ids=["genesis", "torch"])
def test_a_pretrained_table_is_shared_and_nothing_drawn(library):
    table = library.tensor([[1.0, 2.0], [3.0, 4.0]])
    library.manual_seed(0)
    number = library.rand(1).item()
    library.manual_seed(0)
    frozen = library.nn.Embedding.from_pretrained(table, padding_idx=0)
    trained = library.nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum")
    assert library.rand(1).item() == number
    table += 1
    assert frozen(library.tensor([0, 1])).tolist() == [[2, 3], [4, 5]] and not frozen.weight.requires_grad
    assert trained(library.tensor([[1, 0]])).tolist() == [[6, 8]] and trained.weight.requires_grad
    trained(library.tensor([[1, 1]])).sum().backward()
    library.optim.SGD(trained.parameters(), lr=0.5).step()
    assert table.tolist() == frozen.weight.tolist() == [[2, 3], [3, 4]]
    codes = library.nn.Embedding.from_pretrained(library.tensor([[1, 2], [3, 4]]))
    assert codes(library.tensor(1)).tolist() == [3, 4]


def test_classes_are_counted():
    labels = np.array([[0, 3], [1, 1]])
    assert_close(F.one_hot(genesis.tensor(labels)), torch.nn.functional.one_hot(torch.tensor(labels)))


LABELS, TABLE = genesis.tensor([0, 3]), genesis.ones(4, 2)


@pytest.mark.parametrize(("build", "error", "message"), [
    (lambda: F.one_hot(LABELS, 3).tolist(), IndexError, "one_hot: index 3 is out of range for extent 3; want 0 to 2"),
    (lambda: F.one_hot(LABELS - 1, 3).tolist(), IndexError, "one_hot: index -1 is out of range"),
    (lambda: F.one_hot(LABELS.float(), 4), TypeError, "indices must be integers, got float32"),
    (lambda: F.one_hot(LABELS[:0]), ValueError, "want the number of classes"),
    (lambda: F.embedding_bag(LABELS, TABLE), ValueError, r"input \(2,\), weight \(4, 2\), no offsets; want input \(bags, n\)"),
    (lambda: F.embedding_bag(LABELS, TABLE, genesis.tensor([1])).tolist(), IndexError, "index -1 is out of range"),
    (lambda: F.embedding_bag(LABELS, TABLE, genesis.tensor([0, 3])).tolist(), IndexError, "index 3 is out of range"),
    (lambda: F.embedding_bag(LABELS + 1, TABLE, genesis.tensor([0])).tolist(), IndexError, "index 4 is out of range"),
    (lambda: F.embedding_bag(LABELS[None], TABLE, mode="max", scale_grad_by_freq=True), ValueError, "in mode 'max'; want"),
    (lambda: F.embedding_bag(LABELS[None], TABLE, mode="min"), ValueError, "mode must be 'sum', 'mean' or 'max'"),
    (lambda: F.embedding_bag(LABELS[None], TABLE, per_sample_weights=TABLE[:1]), ValueError, "in mode 'mean'; want mode 'sum'"),
    (lambda: nn.EmbeddingBag(4, 2, mode="min"), ValueError, "mode must be"),
    (lambda: nn.EmbeddingBag(4, 2, padding_idx=4), ValueError, "padding_idx 4 is outside a table of 4 entries"),
    (lambda: nn.Embedding.from_pretrained(LABELS.float()), ValueError, r"shape \(2,\); want \(entries, width\)"),
])
def test_what_does_not_fit_is_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_scale_rows_down_and_share_gradients(mode):
    found = []
    for library in (genesis, torch):
        table = (library.arange(8.0).reshape(4, 2) / 3).requires_grad_()
        bags = library.nn.functional.embedding_bag(
            library.tensor([0, 3, 3, 1, 3]), table, library.tensor([0, 2]), max_norm=1.0, scale_grad_by_freq=True, mode=mode)
        (bags * library.arange(4.0).reshape(2, 2)).sum().backward()
        found.append((bags, table, table.grad))
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("padding", [None, 0])
def test_a_sparse_gradient_stays_where_it_was_when_its_indices_are_reused(padding):
    for library in (genesis, torch):
        table, batch = library.nn.Embedding(10, 3, sparse=True, padding_idx=padding), library.tensor([7, 1, 3])
        found = []
        for number in (8, 9):
            table(batch).sum().backward()
            batch[0] = number
            found.append(table.weight.grad.coalesce().indices().tolist())
        assert found == [[[1, 3, 7]], [[1, 3, 7, 8]]], library
