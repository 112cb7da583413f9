"""Distances, and the losses that compare distances or signs."""

from __future__ import annotations

from genesis.ir.dtypes import DType
from genesis.ir.graph import Value
from genesis.ops.activation import logsigmoid
from genesis.ops.elementwise import clamp, exp, log, log1pexp, minimum, relu, rsqrt, sqrt, where
from genesis.ops.loss import loss, of_one_size, reduced
from genesis.ops.norms import vector_norm
from genesis.ops.reduction import sum
from genesis.ops.registry import broadcast, cast, composite, floating_dtype, promoted, widened


# ---- distances ----
@composite("cosine_similarity", 2, method=False, autocast="float32", namespace="nn.functional")
def cosine_similarity(x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    """x1 . x2 / (|x1| |x2|) along `dim`, where norms are at least `eps`.

    >>> genesis.cosine_similarity(genesis.tensor([[3.0, 4.0]]), genesis.tensor([[4.0, 3.0]]))
    tensor([0.9600])
    """
    a, b = promoted(x1, x2)
    x, y = broadcast("cosine_similarity", widened(a), widened(b))
    squares = [clamp(sum(v * v, dim), min=eps * eps) for v in (x, y)]
    return cast(sum(x * y, dim) / (sqrt(squares[0]) * sqrt(squares[1])), a.dtype)


@composite("pairwise_distance", 2, method=False, namespace="nn.functional", takes_complex=True)
def pairwise_distance(x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Value:
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> genesis.pairwise_distance(genesis.zeros(1, 2), genesis.tensor([[3.0, 4.0]]), eps=0.0)
    tensor([5.])
    """
    a, b = promoted(x1, x2)
    distance = vector_norm(widened(a) - widened(b) + eps, p, -1, keepdim)
    return cast(distance, floating_dtype(a.dtype).real)


# ---- losses of numbers ----
@loss("smooth_l1_loss", 2)
def smooth_l1_loss(input: Value, target: Value, reduction: str = "mean", beta: float = 1.0) -> Value:
    """d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere, of d = input - target (Girshick, 2015)."""
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta is {beta}; want 0 or more")
    x, y = of_one_size(input, target)
    d = widened(x) - widened(y)
    size = abs(d)
    losses = where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta) if beta else size
    return cast(reduced("smooth_l1_loss", losses, reduction), x.dtype)


@composite("huber_loss", 2, method=False, autocast="float32", namespace="nn.functional")
def huber_loss(input: Value, target: Value, reduction: str = "mean", delta: float = 1.0, weight: Value | None = None) -> Value:
    """d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere, of d = input - target (Huber, 1964).

    `weight`, of the input's shape, scales each loss; the mean divides by their number, not by the weights.
    """
    if delta <= 0:
        raise ValueError(f"huber_loss: delta is {delta}; want it above 0")
    x, y = of_one_size(input, target)
    d = widened(x) - widened(y)
    size = abs(d)
    losses = where(size < delta, 0.5 * d * d, delta * (size - 0.5 * delta))
    if weight is not None:
        if weight.shape != x.shape:
            raise ValueError(f"huber_loss: weight has shape {weight.shape}; want the input's {x.shape}")
        losses = losses * weight
    return cast(reduced("huber_loss", losses, reduction), x.dtype)


@loss("kl_div", 2)
def kl_div(input: Value, target: Value, reduction: str = "mean", log_target: bool = False) -> Value:
    """target * (log(target) - input) for log-probabilities `input`; with `log_target` the target has logarithms too.

    `reduction` may also be "batchmean": the sum divided by the first extent.
    """
    x, t = promoted(input, target)
    wide, goal = widened(x), widened(t)
    if log_target:
        losses = exp(goal) * (goal - wide)
    else:
        losses = where(goal == 0, 0, goal * log(where(goal == 0, 1, goal))) - goal * wide
    if reduction == "batchmean":
        return cast(sum(losses) / (x.shape[0] if x.ndim else 1), x.dtype)
    return cast(reduced("kl_div", losses, reduction), x.dtype)


# ---- losses of probabilities ----
@loss("binary_cross_entropy", 2, autocast=None)
def binary_cross_entropy(input: Value, target: Value, weight: Value | None = None, reduction: str = "mean") -> Value:
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x; logarithms are clamped at -100."""
    dtype, wide, goal = _probabilities("binary_cross_entropy", input, target)
    losses = -(goal * _bounded_log(wide) + (1 - goal) * _bounded_log(1 - wide))
    return cast(reduced("binary_cross_entropy", losses if weight is None else losses * weight, reduction), dtype)


def _probabilities(name: str, input: Value, target: Value) -> tuple[DType, Value, Value]:
    """The common dtype, and both operands, widened. Raises ValueError for two shapes, TypeError for integers and bools."""
    if input.shape != target.shape:
        raise ValueError(f"{name}: input {input.shape} and target {target.shape}; want one shape")
    for role, value in (("input", input), ("target", target)):
        if value.dtype.category < 2:
            raise TypeError(f"{name}: {role} has dtype {value.dtype.name}; want floating numbers, as of .float()")
    x, t = promoted(input, target)
    return x.dtype, widened(x), widened(t)


def _bounded_log(x: Value) -> Value:
    return where(x == 0, -100, clamp(log(where(x == 0, 1, x)), min=-100))


@loss("binary_cross_entropy_with_logits", 2)
def binary_cross_entropy_with_logits(
    input: Value, target: Value, weight: Value | None = None, reduction: str = "mean", pos_weight: Value | None = None
) -> Value:
    """`binary_cross_entropy` of sigmoid(x), without overflow; `pos_weight` scales the first term."""
    dtype, wide, goal = _probabilities("binary_cross_entropy_with_logits", input, target)
    positive = 1 if pos_weight is None else 1 + (pos_weight - 1) * goal
    losses = (1 - goal) * wide - positive * logsigmoid(wide)
    losses = losses if weight is None else losses * weight
    return cast(reduced("binary_cross_entropy_with_logits", losses, reduction), dtype)


# ---- losses of comparisons ----
@loss("margin_ranking_loss", 3)
def margin_ranking_loss(input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: str = "mean") -> Value:
    """max(0, -t * (x1 - x2) + margin), for t of 1 or -1."""
    return reduced("margin_ranking_loss", relu(-target * (input1 - input2) + margin), reduction)


@loss("hinge_embedding_loss", 2)
def hinge_embedding_loss(input: Value, target: Value, margin: float = 1.0, reduction: str = "mean") -> Value:
    """x where t is 1, max(0, margin - x) where it is -1."""
    room = margin if input.dtype.is_floating_point else int(margin)
    losses = where(target != -1, input, 0) + where(target != 1, relu(-input + room), 0)
    return reduced("hinge_embedding_loss", losses, reduction)


@loss("soft_margin_loss", 2)
def soft_margin_loss(input: Value, target: Value, reduction: str = "mean") -> Value:
    """log(1 + exp(-t * x)), for t of 1 or -1."""
    x, t = promoted(input, target)
    z = -widened(t) * widened(x)
    return cast(reduced("soft_margin_loss", log1pexp(z), reduction), x.dtype)


@loss("cosine_embedding_loss", 3)
def cosine_embedding_loss(input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: str = "mean") -> Value:
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where it is -1, along the last axis.

    Raises ValueError unless the inputs have one axis more than the target's 0 or 1.
    """
    if target.ndim > 1 or {input1.ndim, input2.ndim} != {target.ndim + 1}:
        shapes = f"inputs {input1.shape} and {input2.shape}, target {target.shape}"
        raise ValueError(f"cosine_embedding_loss: {shapes}; want (n, features) and (n,), or (features,) and ()")
    x, y = promoted(input1, input2)
    a, b = widened(x), widened(y)
    cosine = sum(a * b, -1) * rsqrt((sum(a * a, -1) + 1e-12) * (sum(b * b, -1) + 1e-12))
    losses = where(target == 1, 1 - cosine, 0) + where(target == -1, relu(cosine - margin), 0)
    return cast(reduced("cosine_embedding_loss", losses, reduction), floating_dtype(x.dtype))


@loss("triplet_margin_loss", 3, takes_complex=True)
def triplet_margin_loss(
    anchor: Value, positive: Value, negative: Value, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Value:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), of p-norms.

    With `swap`, d(positive, negative) is used where it is less. Raises ValueError for a margin of 0 or less, and other ranks.
    """
    if not anchor.ndim == positive.ndim == negative.ndim:
        shapes = f"{anchor.shape}, {positive.shape} and {negative.shape}"
        raise ValueError(f"triplet_margin_loss: inputs have shapes {shapes}; want as many axes")
    if margin <= 0:
        raise ValueError(f"triplet_margin_loss: margin must be greater than 0, got {margin}")
    near, far = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced("triplet_margin_loss", relu(near - far + margin), reduction)
