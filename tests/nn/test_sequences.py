"""Losses of sequences and of large vocabularies, against torch and against what they say they are."""

import itertools

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.autograd import gradcheck, gradgradcheck
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)
TIME, N, CLASSES = 7, 4, 5
LOGITS = RANDOM.normal(size=(TIME, N, CLASSES))
LABELS = RANDOM.integers(1, CLASSES, (N, 3))
LABELS[1] = 2  # three equal labels and two blanks between them do not fit four steps
INPUTS, TARGETS = np.array([7, 4, 6, 3]), np.array([3, 3, 0, 2])
PARTED = {
    "padded": LABELS, "concatenated": np.concatenate([row[:k] for row, k in zip(LABELS, TARGETS, strict=True)]),
}


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("zero_infinity", [True, False])
@pytest.mark.parametrize("form", PARTED)
def test_ctc_is_torchs(form, zero_infinity, reduction):
    """Through log_softmax, from where torch derives it."""
    found = []
    for library in (genesis, torch):
        logits = library.tensor(LOGITS, requires_grad=True)
        loss = library.nn.CTCLoss(reduction=reduction, zero_infinity=zero_infinity)
        losses = loss(library.log_softmax(logits, -1), *map(library.tensor, (PARTED[form], INPUTS, TARGETS)))
        found.append([losses])
        if zero_infinity:
            losses.sum().backward()
            found[-1].append(logits.grad)
    assert_close(*found)


def test_ctc_sums_over_alignments():
    """All paths, one by one: repeated labels are merged, then blanks (here 2) left out."""
    logs, wanted = np.log(RANDOM.dirichlet(np.ones(3), 4)), (1, 1)
    paths = [p for p in itertools.product(range(3), repeat=4)
             if tuple(c for k, c in enumerate(p) if c != 2 and (not k or p[k - 1] != c)) == wanted]
    likelihood = sum(np.exp(sum(logs[t, c] for t, c in enumerate(p))) for p in paths)
    loss = nn.functional.ctc_loss(genesis.tensor(logs), genesis.tensor(wanted), [4], [2], blank=2, reduction="sum")
    assert_close(loss, -np.log(likelihood))


def test_ctc_of_long_sequences_is_torchs():
    """Several vectors of states: no label, impossible ones, as many as fit, and repeated ones; short and empty inputs.

    torch adds in the logits' dtype.
    """
    logits, labels = RANDOM.normal(size=(60, 5, 37)).astype(np.float32), RANDOM.integers(1, 37, (5, 25))
    labels[4] = labels[4, 0]
    lengths = [60, 20, 25, 0, 60], [0, 21, 25, 0, 25]
    found = []
    for library, dtype in ((genesis, np.float32), (torch, np.float64)):
        leaf = library.tensor(logits.astype(dtype), requires_grad=True)
        loss = library.nn.functional.ctc_loss(
            library.log_softmax(leaf, -1), *map(library.tensor, (labels, *lengths)), reduction="none")
        loss[[0, 2, 4]].sum().backward()
        found.append([x.to(library.float64) for x in (loss, leaf.grad[:, [0, 2, 4]])])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-6, 1e-6)


def test_ctc_is_differentiated():
    logits = genesis.tensor(LOGITS, requires_grad=True)
    given = *map(genesis.tensor, (LABELS, INPUTS, TARGETS)), 0, "none", True
    gradcheck(lambda x: nn.functional.ctc_loss(x, *given), (logits,))


def test_ctc_of_examples_at_once_is_that_of_each():
    many = genesis.tensor(np.stack([LOGITS, LOGITS * 0.5]))
    given = *map(genesis.tensor, (PARTED["concatenated"], INPUTS, TARGETS)), 0, "none"
    both = genesis.func.vmap(lambda x: nn.functional.ctc_loss(x, *given))(many)
    assert_close(both, genesis.stack([nn.functional.ctc_loss(x, *given) for x in many]))


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"blank": 5}, ValueError, "blank is 5; want 0 to 4"),
    ({"targets": genesis.ones(4, 3)}, ValueError, r"targets float32 \(4, 3\); want ints, \(4, s\)"),
    ({"input_lengths": [7, 7]}, ValueError, r"input_lengths int64 \(2,\); want ints, \(4,\)"),
    ({"input_lengths": [7, 7, 7, 8]}, ValueError, "input_lengths has 8; want 0 to 7"),
    ({"target_lengths": [1, 2, 3, 4]}, ValueError, "target_lengths has 4; want 0 to 3"),
    ({"targets": genesis.ones(5).long()}, ValueError, "5 targets; want 8, the sum of target_lengths"),
    ({"targets": genesis.full((4, 3), 7)}, IndexError, "targets has 7; want 0 to 4"),
])
def test_what_does_not_fit_ctc_is_refused(change, error, message):
    given = {"log_probs": genesis.tensor(LOGITS), "targets": genesis.tensor(LABELS), "input_lengths": list(INPUTS),
             "target_lengths": list(TARGETS), **change}
    with pytest.raises(error, match=message):
        nn.functional.ctc_loss(**given).tolist()


# ---- linear_cross_entropy ----

ROWS, TABLE, FACTORS = RANDOM.normal(size=(7, 3)), RANDOM.normal(size=(4, 3)), np.abs(RANDOM.normal(size=4))
PLACES, SHARES = np.array([0, 3, -100, 1, 1, 2, 0]), RANDOM.dirichlet(np.ones(4), 7)
SETTINGS = [
    {}, {"reduction": "sum"}, {"reduction": "none"}, {"weight": FACTORS}, {"weight": FACTORS, "label_smoothing": 0.25},
    {"ignore_index": 1, "linear_bias": RANDOM.normal(size=4)}, {"target": SHARES, "weight": FACTORS},
]


@pytest.mark.parametrize("chunk", [None, 1, 3, 100])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: "_".join(s))
def test_linear_cross_entropy_is_torchs(settings, chunk):
    """As torch has it of all rows, whatever the rows that are done at a time here."""
    found = []
    for library in (genesis, torch):
        given = {"target": PLACES, **settings}
        if given.get("ignore_index") is not None:
            given["target"] = np.abs(PLACES) % 4
        given = {k: library.tensor(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
        leaves = [library.tensor(a, requires_grad=True) for a in (ROWS, TABLE)]
        if library is genesis and chunk:
            given["options"] = nn.LinearCrossEntropyOptions(batch_chunk_size=chunk)
        losses = library.nn.functional.linear_cross_entropy(*leaves, **given)
        losses.sum().backward()
        found.append([losses, *[x.grad for x in leaves]])
    assert_close(*found)


def test_several_targets_for_each_row():
    targets = RANDOM.integers(0, 4, (7, 2, 2))
    ours, theirs = (m.nn.LinearCrossEntropyLoss(3, 4, out_features=(2, 2), bias=True) for m in (genesis, torch))
    ours.load_state_dict({k: genesis.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    ours.options = nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    rows = ROWS.astype(np.float32)
    assert_close(ours(genesis.tensor(rows), genesis.tensor(targets)), theirs(torch.tensor(rows), torch.tensor(targets)))


def test_rows_in_pieces_have_second_derivatives():
    leaves = [genesis.tensor(a[:3], requires_grad=True) for a in (ROWS, TABLE)]

    def loss(x, table):
        options = nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        return nn.functional.linear_cross_entropy(x, table, genesis.tensor([0, 2, 1]), options=options)

    gradcheck(loss, leaves)
    gradgradcheck(loss, leaves)


def test_logits_of_all_rows_are_never_there_at_once():
    rows, classes = 2048, 2048
    x, table = (genesis.randn(n, 16, requires_grad=True) for n in (rows, classes))
    targets = genesis.randint(0, classes, (rows,))
    with genesis.debug.memory() as used:
        options = nn.LinearCrossEntropyOptions(batch_chunk_size=128)
        nn.functional.linear_cross_entropy(x, table, targets, options=options).backward()
    assert 2 * (used.peak - used.held) < 4 * rows * classes


def test_what_does_not_fit_linear_cross_entropy_is_refused():
    x = genesis.ones(2, 3)
    with pytest.raises(ValueError, match=r"input \(2, 3\) and linear_weight \(4, 2\); want \(n, k\) and \(classes, \.\., k\)"):
        nn.functional.linear_cross_entropy(x, genesis.ones(4, 2), genesis.tensor([0, 1]))
    with pytest.raises(ValueError, match="batch_chunk_size is 0; want 1 or more"):
        nn.LinearCrossEntropyOptions(batch_chunk_size=0)
