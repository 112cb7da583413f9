"""Losses, composed from primitives; their gradients follow from their parts."""

from __future__ import annotations

from genesis.ir.dtypes import int64
from genesis.ir.graph import Value
from genesis.ir.shapes import numel
from genesis.ops.elementwise import abs as abs_value
from genesis.ops.elementwise import where
from genesis.ops.indexing import check_index
from genesis.ops.neural import log_softmax
from genesis.ops.reduction import mean, sum
from genesis.ops.registry import cast, composite, expand, floating_dtype, promoted, widened
from genesis.ops.source import iota
from genesis.ops.views import reshape_value

__all__ = ["cross_entropy", "l1_loss", "mse_loss", "nll_loss", "reduced"]


def reduced(name: str, losses: Value, reduction: str) -> Value:
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction != "none":
        raise ValueError(f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return losses


@composite("mse_loss", 2, method=False, autocast="float32", namespace="nn.functional")
def mse_loss(input: Value, target: Value, reduction: str = "mean") -> Value:
    """(input - target)^2.

    The two broadcast; `reduction` is "mean", "sum" or "none". Raises ValueError for another.

    >>> import genesis
    >>> genesis.nn.functional.mse_loss(genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 1.0]))
    tensor(2.)
    """
    x, y = promoted(input, target)
    difference = widened(x) - widened(y)
    return cast(reduced("mse_loss", difference * difference, reduction), x.dtype)


@composite("l1_loss", 2, method=False, autocast="float32", namespace="nn.functional")
def l1_loss(input: Value, target: Value, reduction: str = "mean") -> Value:
    """|input - target|."""
    return reduced("l1_loss", abs_value(input - target), reduction)


@composite("cross_entropy", 2, method=False, autocast="float32", namespace="nn.functional")
def cross_entropy(
    input: Value, target: Value, weight: Value | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    """-log softmax(input)[target] with classes on axis 1 (axis 0 of a 1-d input).

    Args:
        input: (n, classes, ..) or (classes,), unnormalised log-probabilities.
        target: class positions, int64 of shape (n, ..) or (), or probabilities, floating and of the input's shape.
        weight: (classes,), a factor for each class.
        ignore_index: the position that stands for no class: it adds no loss and is not counted.
        reduction: "mean" (weighted, over what counts), "sum" or "none".
        label_smoothing: the share of each target that is spread evenly over the classes (Szegedy et al., 2016).

    Raises ValueError for other shapes and, when it is computed, IndexError for a class that is not there.

    The class is picked by comparing a range with the target, so forward and backward are passes over rows with no gather
    or scatter.

    >>> import genesis
    >>> logits = genesis.tensor([[0.0, 0.0], [3.0, 0.0]])
    >>> genesis.nn.functional.cross_entropy(logits, genesis.tensor([0, 0]), reduction="none")
    tensor([0.6931, 0.0486])
    """
    x = cast(input, floating_dtype(input.dtype))
    losses = _cross_entropy(widened(x), target, weight, ignore_index, reduction, label_smoothing)
    return cast(losses, x.dtype)


def _cross_entropy(
    input: Value, target: Value, weight: Value | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Value:
    axis = 0 if input.ndim == 1 else 1
    classes = input.shape[axis]
    logp = log_softmax(input, axis)
    if target.dtype.category == 2:
        if target.shape != input.shape:
            raise ValueError(f"cross_entropy: probabilities {target.shape} must have the input's shape {input.shape}")
        wanted = cast(target, logp.dtype)
        if label_smoothing:
            wanted = wanted * (1 - label_smoothing) + label_smoothing / classes
        losses = -sum(wanted * logp * _per_class(weight, logp, axis), axis)
        return losses if reduction == "none" else sum(losses) / (numel(losses.shape) if reduction == "mean" else 1)
    losses, kept, counted = _picked("cross_entropy", logp, target, weight, ignore_index, axis)
    if label_smoothing:
        smooth = -sum(logp * _per_class(weight, logp, axis), axis) / classes
        losses = losses * (1 - label_smoothing) + where(kept, smooth, 0) * label_smoothing
    return sum(losses) / sum(counted) if reduction == "mean" else reduced("cross_entropy", losses, reduction)


def _picked(
    name: str, logp: Value, target: Value, weight: Value | None, ignore_index: int, axis: int
) -> tuple[Value, Value, Value]:
    """-logp[target] along `axis`, where the target is not to be ignored, and what each counts for in a mean."""
    want, classes = logp.shape[:axis] + logp.shape[axis + 1 :], logp.shape[axis]
    if target.shape != want:
        raise ValueError(f"{name}: target has shape {target.shape}; want {want} for input {logp.shape}")
    kept = target != ignore_index
    label = check_index(name, where(kept, target, 0), classes, wrap=False)
    row = (*want[:axis], 1, *want[axis:])
    places = reshape_value(iota(logp.graph, classes, int64), (classes,) + (1,) * (logp.ndim - axis - 1))
    chosen = (places == reshape_value(label, row)) & reshape_value(kept, row)
    scale = _per_class(weight, logp, axis)
    losses = -sum(where(chosen, logp * scale, 0), axis)
    counted = cast(kept, logp.dtype) if weight is None else sum(where(chosen, scale, 0), axis)
    return losses, kept, counted


def _per_class(weight: Value | None, like: Value, axis: int) -> Value | float:
    if weight is None:
        return 1
    return expand(reshape_value(weight, (weight.shape[0],) + (1,) * (like.ndim - axis - 1)), like.shape)


@composite("nll_loss", 2, method=False, autocast="float32", namespace="nn.functional")
def nll_loss(
    input: Value, target: Value, weight: Value | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Value:
    """-input[target] with classes on axis 1, for log-probabilities; arguments and errors as those of `cross_entropy`."""
    losses, _, counted = _picked("nll_loss", widened(input), target, weight, ignore_index, 0 if input.ndim == 1 else 1)
    return cast(sum(losses) / sum(counted) if reduction == "mean" else reduced("nll_loss", losses, reduction), input.dtype)
