"""Losses for unaligned label sequences (CTC), and for large vocabularies without storing all logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

from genesis.functions.overrides import overridable
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import from_data
from genesis.tensor.handle import Tensor
from genesis.utils.checkpoint import checkpoint


@overridable
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int],
    blank: int = 0, reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of `targets`, summed over all alignments with the inputs (Graves et al., 2006).

    Args:
        log_probs: (time, n, classes), or (time, classes) for one sequence: logarithms of probabilities.
        targets: (n, s) ints with arbitrary padding, or all of them concatenated; without `blank`.
        input_lengths, target_lengths: (n,) ints, as a tensor or a sequence: the valid lengths.
        blank: the class between labels.
        reduction: "mean" (of losses over target lengths), "sum" or "none".
        zero_infinity: infinite losses, of targets that are too long for their inputs, become 0, and so do their gradients.

    The gradient is the exact one; PyTorch's adds exp(log_probs), which makes no difference after log_softmax. There is no
    second derivative. Raises ValueError for other shapes and, when evaluated, for lengths out of range, and IndexError for a
    class out of range.

    >>> log_probs = genesis.full((3, 1, 2), 0.5).log()
    >>> ctc_loss(log_probs, genesis.tensor([[1]]), [3], [1]).exp()  # 6 of 8 sequences of blanks and ones say "1"
    tensor(1.3333)
    """
    lengths = [
        given if isinstance(given, Tensor) else from_data(given, device=log_probs.device)
        for given in (input_lengths, target_lengths)
    ]
    return call(OPERATIONS["ctc_loss"], (log_probs, targets, *lengths, blank, reduction, zero_infinity))


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """`linear_cross_entropy` works on `batch_chunk_size` rows at a time; the default is sqrt(rows * features), at least 256.

    Memory then holds the logits of one chunk, and a weight gradient per chunk; the default makes both equally large. The other
    settings are PyTorch's and have no effect: sums are exact to the dtype, and the graph is always retained. Raises ValueError
    for a size below 1.

    >>> genesis.nn.LinearCrossEntropyOptions(batch_chunk_size=512).batch_chunk_size
    512
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        if self.batch_chunk_size is not None and self.batch_chunk_size < 1:
            raise ArgumentError(f"LinearCrossEntropyOptions: batch_chunk_size is {self.batch_chunk_size}; want 1 or more")


@overridable
def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None, weight: Tensor | None = None,
    reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """`cross_entropy` of the logits input @ linear_weight.T + linear_bias.

    Args:
        input: (n, features), or (features,).
        linear_weight: (classes, features), or (classes, .., features) for several targets per row.
        target: class indices, int64 of shape (n, ..), or probabilities (n, classes, ..).
        linear_bias: (classes, ..), or None.
        weight, reduction, ignore_index, label_smoothing: as in `cross_entropy`.
        options: if given, logits are computed for a chunk of rows at a time, in forward and again in backward, and never
            stored: less memory for more time, if n times the classes is large.

    Raises ValueError for other shapes.

    >>> rows, table = genesis.ones(4, 2), genesis.zeros(3, 2)
    >>> linear_cross_entropy(rows, table, genesis.tensor([0, 1, 2, 0]), options=LinearCrossEntropyOptions())
    tensor(1.0986)
    """
    if input.ndim not in (1, 2) or linear_weight.ndim < 2 or input.shape[-1] != linear_weight.shape[-1]:
        shapes = f"input {input.shape} and linear_weight {linear_weight.shape}"
        raise ArgumentError(f"linear_cross_entropy: {shapes}; want (n, k) and (classes, .., k)")
    if input.ndim == 1 and linear_weight.ndim > 2:
        raise ArgumentError(f"linear_cross_entropy: linear_weight {linear_weight.shape} has several targets a row; want "
                            f"inputs (n, {input.shape[0]}), got {input.shape}")
    ignored = -100 if ignore_index is None else ignore_index
    whole = options is None or input.ndim == 1
    settings = {"ignore_index": ignored, "reduction": reduction if whole else "none", "label_smoothing": label_smoothing}

    def losses_of(x: Tensor, target: Tensor, table: Tensor, bias: Tensor | None, weight: Tensor | None) -> Any:
        flat = call(OPERATIONS["linear"], (x, table.flatten(0, -2), None if bias is None else bias.flatten()))
        logits = flat.reshape(*x.shape[:-1], *table.shape[:-1])
        return call(OPERATIONS["cross_entropy"], (logits, target, weight), settings)

    others = (linear_weight, linear_bias, weight)
    if whole:
        return losses_of(input, target, *others)
    size = (options and options.batch_chunk_size) or max(isqrt(input.numel()), 256)
    pieces = zip(input.split(size), target.split(size), strict=True)
    losses = call(OPERATIONS["cat"], ([checkpoint(losses_of, x, t, *others) for x, t in pieces],))
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise ArgumentError(f"linear_cross_entropy: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    total = losses.sum()
    return total if reduction == "sum" else total / _counted(losses, target, weight, ignored)


def _counted(losses: Tensor, target: Tensor, weight: Tensor | None, ignored: int) -> Any:
    """The divisor of a mean loss: the number of targets that count, or their weights' sum."""
    if target.dtype.is_floating_point:
        return losses.numel()
    kept = target != ignored
    return kept.sum() if weight is None else (weight[kept * target] * kept).sum()
