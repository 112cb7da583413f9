"""Connectionist temporal classification: a loss for label sequences whose alignment with the input is unknown.

A. Graves, S. Fernandez, F. Gomez, J. Schmidhuber, "Connectionist Temporal Classification: Labelling Unsegmented Sequence
Data with Recurrent Neural Networks" (ICML 2006). The sum over alignments is a recursion over time through the states of a
sequence: its labels, with blanks before, between and after them, in logarithms, in float64; the gradient is minus the
posterior probability of each class at each time.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from genesis.ir.dtypes import int64
from genesis.ir.errors import ArgumentError
from genesis.ir.graph import Node, Value
from genesis.ops.elementwise import where
from genesis.ops.loss import reduced
from genesis.ops.registry import cast, composite, primitive, widened
from genesis.ops.views import reshape_value


class Misfit(IntEnum):
    """What does not fit, as the extent of a fault."""

    INPUT_LENGTH, TARGET_LENGTH, TARGET, TOTAL = range(4)


def _refused(node: Node, value: int, reason: int) -> Exception:
    time, targets, classes = node.attrs["limits"]
    return (
        ArgumentError(f"ctc_loss: input_lengths has {value}; want 0 to {time}"),
        ArgumentError(f"ctc_loss: target_lengths has {value}; want 0 to {targets}"),
        IndexError(f"ctc_loss: targets has {value}; want 0 to {classes - 1}"),
        ArgumentError(f"ctc_loss: {targets} targets; want {value}, the sum of target_lengths"),
    )[reason]


class _Lattice(NamedTuple):
    """The states of each sequence, and each state's log-probability at each time."""

    labels: np.ndarray  # (n, states)
    emitted: np.ndarray  # (n, time, states)
    skips: np.ndarray  # (n, states): 0 where the blank before a state may be skipped, else -inf
    input_lengths: np.ndarray
    target_lengths: np.ndarray


def _lattice(node: Node, log_probs: np.ndarray, targets: np.ndarray, *lengths: np.ndarray) -> _Lattice:
    """Leading axes are merged into one batch; concatenated targets are split."""
    blank, (time, each, classes) = node.attrs["blank"], node.attrs["limits"]
    x = np.moveaxis(log_probs, -3, -2).reshape(-1, time, classes).astype(np.float64)
    input_lengths, target_lengths = (a.reshape(-1) for a in lengths)

    def check(reason: Misfit, wrong: np.ndarray) -> None:
        if wrong.size:
            raise _refused(node, int(wrong[0]), reason)

    def check_range(reason: Misfit, values: np.ndarray, most: int) -> None:
        check(reason, values[(values < 0) | (values > most)])

    check_range(Misfit.INPUT_LENGTH, input_lengths, time)
    check_range(Misfit.TARGET_LENGTH, target_lengths, each)
    if node.attrs["concatenated"]:
        sizes = lengths[1].reshape(-1, lengths[1].shape[-1]).sum(-1)
        check(Misfit.TOTAL, sizes[sizes != each])
        labels = np.full((len(x), target_lengths.max(initial=0)), blank)
        labels[np.arange(labels.shape[1]) < target_lengths[:, None]] = targets.reshape(-1)
    else:
        labels = targets.reshape(len(x), each)
    labels = np.where(np.arange(labels.shape[1]) < target_lengths[:, None], labels, blank)
    check_range(Misfit.TARGET, labels, classes - 1)
    states = np.full((len(x), 2 * labels.shape[1] + 1), blank)
    states[:, 1::2] = labels
    skips = np.full(states.shape, -np.inf)
    skips[:, 3::2][labels[:, 1:] != labels[:, :-1]] = 0
    return _Lattice(states, np.take_along_axis(x, states[:, None], -1), skips, input_lengths, target_lengths)


def _added(*terms: np.ndarray) -> np.ndarray:
    """log(sum of exp)."""
    most = np.maximum(np.maximum.reduce(terms), -1e300)  # finite, so that nothing is inf - inf
    return most + np.log(sum(np.exp(term - most) for term in terms))


def _later(x: np.ndarray, steps: int) -> np.ndarray:
    """`x` moved `steps` states later."""
    moved = np.full_like(x, -np.inf)
    moved[:, steps:] = x[:, : x.shape[1] - steps]
    return moved


def _ends(lattice: _Lattice) -> np.ndarray:
    """0 at the last label of each sequence and at the blank behind it, where alignments end; else -inf."""
    last = 2 * lattice.target_lengths[:, None] - np.arange(lattice.labels.shape[1])
    return np.where((last == 0) | (last == 1), 0, -np.inf)


def _forward(lattice: _Lattice) -> tuple[np.ndarray, np.ndarray]:
    """(losses, log-probabilities of all prefixes that end in each state at each time, its own emission included)."""
    n, time, states = lattice.emitted.shape
    leads = np.full((time, n, states), -np.inf)
    found = np.where(np.arange(states) == 0, 0, -np.inf) + np.zeros((n, 1))  # before the first step: the first blank
    losses = np.where(lattice.target_lengths == 0, -0.0, np.inf)
    ends = _ends(lattice)
    for t in range(time):
        skipped = _later(found, 2) + lattice.skips
        found = lattice.emitted[:, t] + _added(found, _later(found, 1), skipped)
        leads[t] = found
        here = lattice.input_lengths == t + 1
        if here.any():
            losses[here] = -_added(*np.moveaxis(found[here] + ends[here], -1, 0))
    return losses, leads


def _posterior_reference(node: Node, log_probs: np.ndarray, *given: np.ndarray) -> np.ndarray:
    """The recursion backwards; a class at a time is as probable as all alignments through its states there."""
    lattice = _lattice(node, log_probs, *given)
    losses, leads = _forward(lattice)
    n, time, states = lattice.emitted.shape
    ends, posterior = _ends(lattice), np.zeros((n, time, states))
    follows = np.full((n, states), -np.inf)
    skips = lattice.skips[:, ::-1]
    for t in range(time - 1, -1, -1):
        if t + 1 < time:
            after = (follows + lattice.emitted[:, t + 1])[:, ::-1]
            skipped = _later(after + skips, 2)
            follows = _added(after, _later(after, 1), skipped)[:, ::-1]
        follows = np.where((lattice.input_lengths == t + 1)[:, None], ends, follows)
        posterior[:, t] = np.where((lattice.input_lengths > t)[:, None], np.exp(leads[t] + follows + losses[:, None]), 0)
    classes = node.shape[-1]
    positions = (np.arange(n * time).reshape(n, time, 1) * classes + lattice.labels[:, None]).reshape(-1)
    found = np.bincount(positions, posterior.reshape(-1), log_probs.size).reshape(n, time, classes)
    found[(np.arange(time) < lattice.input_lengths[:, None]) & ~np.isfinite(losses)[:, None]] = np.nan
    return np.moveaxis(found.reshape(*node.shape[:-3], -1, time, classes), -3, -2)


def _grad(g: Value, y: Value, log_probs: Value, *given: Value) -> tuple[Value | None, ...]:
    attrs = y.node.attrs
    posterior = g.graph.add("ctc_posterior", (log_probs, *given), log_probs.shape, log_probs.dtype, attrs)
    if attrs["zero_infinity"]:
        posterior = where(reshape_value(y, (*y.shape[:-1], 1, y.shape[-1], 1)) == float("inf"), 0, posterior)
    return -posterior * reshape_value(g, (*g.shape[:-1], 1, g.shape[-1], 1)), None, None, None


primitive("ctc_posterior", "host", reference=_posterior_reference, contiguous=True, fault=_refused)
primitive("ctc_loss", "host", grad=_grad, contiguous=True, fault=_refused,
          reference=lambda node, *given: _forward(_lattice(node, *given))[0].reshape(node.shape))


@composite("ctc_loss", (0, 1, 2, 3), method=False)
def ctc_loss(
    log_probs: Value, targets: Value, input_lengths: Value, target_lengths: Value, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Value:
    """-log of the probability of all alignments of the inputs with their targets; see `nn.functional.ctc_loss`."""
    if log_probs.ndim not in (2, 3) or not log_probs.dtype.is_floating_point:
        raise ValueError(f"ctc_loss: log_probs {log_probs.dtype.name} {log_probs.shape}; want (time, n, classes) of floats")
    if not 0 <= blank < log_probs.shape[-1]:
        raise ValueError(f"ctc_loss: blank is {blank}; want 0 to {log_probs.shape[-1] - 1}, a class of log_probs")
    batch = log_probs.shape[1:-1]
    n = batch[0] if batch else 1
    time, classes = log_probs.shape[0], log_probs.shape[-1]
    x = reshape_value(widened(log_probs), (time, n, classes))
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and targets.shape[0] != n) or targets.dtype.is_floating_point:
        raise ValueError(f"ctc_loss: targets {targets.dtype.name} {targets.shape}; want ints, ({n}, s) or their concatenation")
    lengths = []
    for name, given in (("input", input_lengths), ("target", target_lengths)):
        if (given.shape != (n,) and (batch or given.shape)) or given.dtype.is_floating_point:
            raise ValueError(f"ctc_loss: {name}_lengths {given.dtype.name} {given.shape}; want ints, ({n},)")
        lengths.append(reshape_value(cast(given, int64), (n,)))
    limits = time, targets.shape[-1], classes
    attrs = {"blank": blank, "concatenated": targets.ndim == 1, "zero_infinity": zero_infinity, "limits": limits}
    losses = x.graph.add("ctc_loss", (x, cast(targets, int64), *lengths), (n,), x.dtype, attrs)
    if zero_infinity:
        losses = where(losses == float("inf"), 0, losses)
    if reduction == "mean":
        sizes = cast(lengths[1], x.dtype)
        losses = losses / where(sizes < 1, 1, sizes)
    return cast(reshape_value(reduced("ctc_loss", losses, reduction), batch if reduction == "none" else ()), log_probs.dtype)
