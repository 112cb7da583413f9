"""Losses, composed of primitives, whose gradients give theirs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import log as ln, pi
from typing import Any, overload

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import int32, int64
from genesis.ir.graph import Value
from genesis.ir.shapes import broadcast_shapes, numel
from genesis.ir.user_warnings import warn_user
from genesis.ops.activation import less_top, logsigmoid
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import exp, log, relu, where
from genesis.ops.indexing import check_index, gather_value
from genesis.ops.ordering import cumsum
from genesis.ops.reduction import any, mean, sum
from genesis.ops.registry import Operation, Policy, cast, composite, expand, floating_dtype, promoted, widened
from genesis.ops.size_average import takes_size_average
from genesis.ops.source import iota
from genesis.ops.views import reshape_value


def loss(
    name: str, operands: int, before: str = "reduction", autocast: Policy | None = "float32", takes_complex: bool = False
) -> Callable[[AnyFunction], Operation]:
    """Decorator: a function of Values becomes a loss of `nn.functional`, which takes `size_average` before that parameter."""
    register = composite(
        name, operands, method=False, autocast=autocast, namespace="nn.functional", takes_complex=takes_complex)
    return lambda define: register(takes_size_average(before)(define))


def reduced(name: str, losses: Value, reduction: str) -> Value:
    if reduction == "mean":
        return mean(losses)
    if reduction == "sum":
        return sum(losses)
    if reduction != "none":
        raise ValueError(f"{name}: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    return losses


def reduced_by(name: str, losses: Value, weight: Value | None, reduction: str) -> Value:
    """`reduced` of losses times weights; the mean divides by the sum of the weights. Raises ValueError for weights of another
    shape."""
    if weight is None:
        return reduced(name, losses, reduction)
    if weight.shape != losses.shape:
        raise ValueError(f"{name}: weight has shape {weight.shape}; want the input's {losses.shape}")
    return sum(losses * weight) / sum(weight) if reduction == "mean" else reduced(name, losses * weight, reduction)


def of_one_size(input: Value, target: Value) -> list[Value]:
    """The operands of a loss in their common dtype. A warning, where a call first meets it, that broadcasts them."""
    if input.shape != target.shape:
        warn_user(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead "
            "to incorrect results due to broadcasting. Please ensure they have the same size.")
    return promoted(input, target)


@loss("mse_loss", 2)
def mse_loss(input: Value, target: Value, reduction: str = "mean", weight: Value | None = None) -> Value:
    """(input - target)^2, times `weight` of the same shape.

    The two broadcast; `reduction` is "mean" (weighted, if weights are given), "sum" or "none". Raises ValueError for others.

    >>> genesis.nn.functional.mse_loss(genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 1.0]))
    tensor(2.)
    """
    x, y = of_one_size(input, target)
    difference = widened(x) - widened(y)
    return cast(reduced_by("mse_loss", difference * difference, weight, reduction), x.dtype)


@loss("l1_loss", 2, takes_complex=True)
def l1_loss(input: Value, target: Value, reduction: str = "mean", weight: Value | None = None) -> Value:
    """|input - target|, times `weight`; see `mse_loss`."""
    x, y = of_one_size(input, target)
    return reduced_by("l1_loss", abs(x - y), weight, reduction)


@loss("cross_entropy", 2, "ignore_index")
def cross_entropy(
    input: Value, target: Value, weight: Value | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    """-log softmax(input)[target] with classes on axis 1 (axis 0 of a 1-d input).

    Args:
        input: (n, classes, ..) or (classes,), unnormalised log-probabilities.
        target: class positions, int64 of shape (n, ..) or (), or probabilities, floating and of the input's shape.
        weight: (classes,), a factor for each class.
        ignore_index: this target means no class: it adds no loss and is not counted in the mean.
        reduction: "mean" (weighted, over what counts), "sum" or "none".
        label_smoothing: the share of each target that is spread evenly over the classes (Szegedy et al., 2016).

    Raises ValueError for other shapes and, when evaluated, IndexError for a class out of range.

    The class is selected by comparing a range with the target, so forward and backward are passes over rows without gather
    or scatter.

    >>> logits = genesis.tensor([[0.0, 0.0], [3.0, 0.0]])
    >>> genesis.nn.functional.cross_entropy(logits, genesis.tensor([0, 0]), reduction="none")
    tensor([0.6931, 0.0486])
    """
    x = cast(input, floating_dtype(input.dtype))
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing must be between 0.0 and 1.0, got {label_smoothing}")
    if target.dtype.is_floating_point and ignore_index >= 0:
        raise ValueError(f"cross_entropy: ignore_index {ignore_index} is not supported for probabilities; want class indices")
    losses = _cross_entropy(widened(x), target, weight, ignore_index, reduction, label_smoothing)
    return cast(losses, x.dtype)


def _cross_entropy(
    input: Value, target: Value, weight: Value | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Value:
    axis = 0 if input.ndim == 1 else 1
    classes = input.shape[axis]
    x, _, _ = less_top("cross_entropy", input, axis)
    log_total = log(sum(exp(x), axis, True))
    if target.dtype.category == 2:
        if target.shape != input.shape:
            raise ValueError(f"cross_entropy: probabilities {target.shape} must have the input's shape {input.shape}")
        wanted = cast(target, x.dtype)
        if label_smoothing:
            wanted = wanted * (1 - label_smoothing) + label_smoothing / classes
        losses = -sum(wanted * (x - log_total) * _per_class(weight, x, axis), axis)
        return losses if reduction == "none" else sum(losses) / (numel(losses.shape) if reduction == "mean" else 1)
    # The class is selected in the same pass that sums over all classes.
    picked, kept, counted = _picked("cross_entropy", x, target, weight, ignore_index, axis)
    losses = where(kept, (reshape_value(log_total, picked.shape) - picked) * counted, 0)
    if label_smoothing:
        smooth = -sum((x - log_total) * _per_class(weight, x, axis), axis) / classes
        losses = losses * (1 - label_smoothing) + where(kept, smooth, 0) * label_smoothing
    return sum(losses) / sum(counted) if reduction == "mean" else reduced("cross_entropy", losses, reduction)


def _picked(
    name: str, x: Value, target: Value, weight: Value | None, ignore_index: int, axis: int
) -> tuple[Value, Value, Value]:
    """(x[target] along `axis`, zero where the target is ignored; each one's weight in the mean)."""
    want, classes = x.shape[:axis] + x.shape[axis + 1 :], x.shape[axis]
    if target.shape != want:
        raise ValueError(f"{name}: target has shape {target.shape}; want {want} for input {x.shape}")
    kept = target != ignore_index
    label = check_index(name, where(kept, target, 0), classes, wrap=False)
    row = (*want[:axis], 1, *want[axis:])
    if x.node.op in ("input", "variable"):  # in memory: gather reads a few of its elements instead of all
        at = reshape_value(label, row)
        picked = reshape_value(gather_value(x, at, axis), want)
        if weight is None:
            return picked, kept, cast(kept, x.dtype)
        factor = reshape_value(gather_value(_per_class(weight, x, axis), at, axis), want)
        return picked, kept, where(kept, factor, 0)
    # int32 has the size of an element of `x`, so equally many fit a vector.
    labels = reshape_value(iota(x.graph, classes, int32), (classes,) + (1,) * (x.ndim - axis - 1))
    chosen = (labels == reshape_value(cast(label, int32), row)) & reshape_value(kept, row)
    counted = cast(kept, x.dtype) if weight is None else sum(where(chosen, _per_class(weight, x, axis), 0), axis)
    return sum(where(chosen, x, 0), axis), kept, counted


@overload
def _per_class(weight: Value, like: Value, axis: int) -> Value: ...
@overload
def _per_class(weight: None, like: Value, axis: int) -> float: ...
def _per_class(weight: Value | None, like: Value, axis: int) -> Value | float:
    if weight is None:
        return 1
    if weight.shape != (like.shape[axis],):
        raise ValueError(f"weight has shape {weight.shape}; want ({like.shape[axis]},), one for each class")
    return expand(reshape_value(weight, (weight.shape[0],) + (1,) * (like.ndim - axis - 1)), like.shape)


@loss("nll_loss", 2, "ignore_index")
def nll_loss(
    input: Value, target: Value, weight: Value | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Value:
    """-input[target] with classes on axis 1, for log-probabilities; arguments and errors as in `cross_entropy`."""
    if weight is not None and weight.dtype is not input.dtype:
        raise TypeError(f"nll_loss: weight is {weight.dtype.name}; want the input's {input.dtype.name}")
    picked, kept, counted = _picked("nll_loss", widened(input), target, weight, ignore_index, 0 if input.ndim == 1 else 1)
    losses = where(kept, -picked * counted, 0)
    return cast(sum(losses) / sum(counted) if reduction == "mean" else reduced("nll_loss", losses, reduction), input.dtype)


# ---- likelihoods ----
@loss("poisson_nll_loss", 2, "eps")
def poisson_nll_loss(
    input: Value, target: Value, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Value:
    """rate - target * log(rate), for a Poisson distribution with the rate exp(input), or `input` without `log_input`.

    With `full`, Stirling's approximation of log(target!) is added where the target exceeds 1; without `log_input`,
    `eps` is added to the rate inside the logarithm.
    """
    x, t = promoted(input, target, floating=True)
    rate, count = widened(x), widened(t)
    losses = exp(rate) - count * rate if log_input else rate - count * log(rate + eps)
    if full:
        large = count > 1
        safe = where(large, count, 1)
        losses = losses + where(large, safe * log(safe) - safe + 0.5 * log(2 * pi * safe), 0)
    return cast(reduced("poisson_nll_loss", losses, reduction), x.dtype)


@composite("gaussian_nll_loss", 3, method=False, autocast="float32", namespace="nn.functional")
def gaussian_nll_loss(
    input: Value, target: Value, var: Value, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Value:
    """(log(var) + (input - target)^2 / var) / 2, for a normal distribution with mean `input` and variance `var`.

    Variances are clamped at `eps`, which does not affect their gradient. `var` has the shape of `input`, or 1 as its last
    extent, or lacks the last axis. With `full`, log(2 pi) / 2 is added. Raises ValueError for another shape of `var`.
    """
    x, t, v = promoted(input, target, var)
    mean_value, goal, spread = widened(x), widened(t), widened(v)
    if spread.shape != x.shape and spread.shape == x.shape[:-1] and x.ndim:
        spread = reshape_value(spread, (*spread.shape, 1))
    if spread.ndim and broadcast_shapes("gaussian_nll_loss", spread.shape, x.shape) != x.shape:
        raise ValueError(f"gaussian_nll_loss: var has shape {var.shape}; want {x.shape}, with or without its last extent, or 1")
    spread = where(spread < eps, spread - stop_gradient(spread) + eps, spread)
    d = mean_value - goal
    losses = 0.5 * (log(spread) + d * d / spread) + (0.5 * ln(2 * pi) if full else 0.0)
    return cast(reduced("gaussian_nll_loss", losses, reduction), x.dtype)


# ---- margins between classes ----
def _vectors(define: AnyFunction) -> AnyFunction:
    """Decorator: 0-d `input` and `target` become vectors of one class; a single row's target may be a vector."""

    @wraps(define)
    def lifted(input: Value, target: Value, *args: Any, **kwargs: Any) -> Value:
        if not input.ndim:
            input = reshape_value(input, (1,))
            target = target if define.__name__ == "multi_margin_loss" else reshape_value(target, (1,))
        if define.__name__ == "multi_margin_loss" and input.ndim == 1 and target.shape == (1,):
            input = reshape_value(input, (1, *input.shape))
        return define(input, target, *args, **kwargs)

    return lifted


def _rows(name: str, input: Value, target: Value, want: tuple[int, ...]) -> Value:
    if input.ndim not in (1, 2) or target.shape != want:
        raise ValueError(f"{name}: input {input.shape} and target {target.shape}; want (n, classes) or (classes,), and {want}")
    return widened(input)


@loss("multi_margin_loss", 2)
@_vectors
def multi_margin_loss(
    input: Value, target: Value, p: int = 1, margin: float = 1.0, weight: Value | None = None, reduction: str = "mean"
) -> Value:
    """The mean over classes of max(0, margin - input[target] + input[class])^p, without the target's own.

    `input` is (n, classes) or (classes,), `target` (n,) or (), int64; `p` is 1 or 2; `weight` (classes,) scales by the
    target's class. Raises ValueError for others and, when evaluated, IndexError for a class out of range.
    """
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p is {p}; want 1 or 2")
    x, axis = _rows("multi_margin_loss", input, target, input.shape[:-1]), input.ndim - 1
    classes = input.shape[axis]
    label = reshape_value(check_index("multi_margin_loss", target, classes, wrap=False), (*target.shape, 1))
    short = relu(margin - gather_value(x, label, axis) + x)
    terms = short if p == 1 else short * short
    if weight is not None:
        spread = expand(weight, (*target.shape, classes))
        terms = terms * gather_value(spread, label, axis)
    others = iota(input.graph, classes, int64) != label
    losses = sum(where(others, terms, 0), axis) / classes
    return cast(reduced("multi_margin_loss", losses, reduction), input.dtype)


@loss("multilabel_margin_loss", 2)
@_vectors
def multilabel_margin_loss(input: Value, target: Value, reduction: str = "mean") -> Value:
    """The sum over the targets and all other classes of max(0, 1 - input[target] + input[class]), divided by the number of
    classes.

    `input` is (n, classes) or (classes,), `target` of the same shape, int64: the targets of each row, up to the first -1.
    """
    x, axis = _rows("multilabel_margin_loss", input, target, input.shape), input.ndim - 1
    lead, classes = input.shape[:-1], input.shape[-1]
    listed = cumsum(cast(target < 0, int64), axis) == 0
    label = check_index("multilabel_margin_loss", where(listed, target, 0), classes, wrap=False)
    column = (*lead, classes, 1)
    hit = (reshape_value(label, column) == iota(input.graph, classes, int64)) & reshape_value(listed, column)
    rest = reshape_value(any(hit, axis) == 0, (*lead, 1, classes))
    short = relu(1 - reshape_value(gather_value(x, label, axis), column) + reshape_value(x, (*lead, 1, classes)))
    losses = sum(where(reshape_value(listed, column) & rest, short, 0), (axis, axis + 1)) / classes
    return cast(reduced("multilabel_margin_loss", losses, reduction), input.dtype)


@loss("multilabel_soft_margin_loss", 2, autocast=None)
def multilabel_soft_margin_loss(input: Value, target: Value, weight: Value | None = None, reduction: str = "mean") -> Value:
    """The mean over classes (the last axis) of the binary cross entropy of sigmoid(input), times `weight`."""
    x, t = promoted(input, target)
    wide, goal = widened(x), widened(t)
    losses = -(goal * logsigmoid(wide) + (1 - goal) * logsigmoid(-wide))
    losses = mean(losses if weight is None else losses * weight, -1)
    return cast(reduced("multilabel_soft_margin_loss", losses, reduction), x.dtype)
