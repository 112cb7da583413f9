"""The functions of neural networks on Tensors: rows of the operation table under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable

from genesis.functions.methods.table import function_of, functions_of
from genesis.functions.overrides import overridable
from genesis.functions.public_names import rows_shown
from genesis.functions.ranges import triu_indices
from genesis.ir.errors import ArgumentError
from genesis.nn.flow import affine_grid, upsample_bilinear, upsample_nearest
from genesis.nn.fractional_pooling import fractional_max_pool2d, fractional_max_pool3d
from genesis.nn.grouped import conv_tbc, grouped_mm
from genesis.nn.in_place import in_place_too
from genesis.nn.multi_head import multi_head_attention_forward, scaled_dot_product_attention
from genesis.nn.noise import (
    alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, gumbel_softmax, rrelu, rrelu_,
)
from genesis.nn.sequences import ctc_loss, linear_cross_entropy
from genesis.nn.tables import embedding, embedding_bag, one_hot
from genesis.nn.unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import in_place_form, write
from genesis.tracing.state import grad_mode

__all__ = [
    "affine_grid", "alpha_dropout", "batch_norm", "celu_", "conv_tbc", "ctc_loss", "dropout", "dropout1d", "dropout2d",
    "dropout3d", "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fractional_max_pool2d",
    "fractional_max_pool3d", "grouped_mm", "gumbel_softmax", "hardtanh_", "instance_norm", "leaky_relu_",
    "linear_cross_entropy", "max_unpool1d", "max_unpool2d", "max_unpool3d", "multi_head_attention_forward", "one_hot",
    "pdist", "relu_", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu_", "threshold_",
    "triplet_margin_with_distance_loss", "upsample_bilinear", "upsample_nearest",
]

__getattr__, __dir__ = rows_shown(
    "nn.functional", __all__, lambda row: in_place_too(function_of(row)) if row.in_place else function_of(row)
)
celu_, elu_, hardtanh_, leaky_relu_, relu_, selu_, threshold_ = map(
    in_place_form, functions_of("celu", "elu", "hardtanh", "leaky_relu", "relu", "selu", "threshold")
)
for _changed in (celu_, elu_, hardtanh_, leaky_relu_, relu_, selu_, threshold_):
    _changed.__module__ = __name__  # where pickles find it


@overridable
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float | Tensor = 0.1, eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) for each channel, then `weight` and `bias` (Ioffe and Szegedy, 2015).

    Args:
        input: (n, channels, ..).
        running_mean, running_var: (channels,); used unless `training`, and updated in place if so.
        weight, bias: (channels,); left out if None.
        training: use this batch's mean and variance (of n).
        momentum: the weight of the batch in the running mean and variance (of n-1), a number or a 0-d tensor.
        eps: added to the variance.

    Raises ValueError for other shapes, and for `training` with only one value per channel.

    >>> mean, var = genesis.zeros(1), genesis.ones(1)
    >>> batch_norm(genesis.tensor([[1.0], [3.0]]), mean, var, training=True), mean, var
    (tensor([[-1.0000],
            [ 1.0000]]), tensor([0.2000]), tensor([1.1000]))
    """
    arguments = (input, running_mean, running_var, weight, bias, training, 0.0, eps)
    result: Tensor = call(OPERATIONS["batch_norm"], arguments)
    if training and running_mean is not None and running_var is not None and input.numel():
        with grad_mode(False):
            updated = call(OPERATIONS["batch_statistics"], (input, running_mean, running_var, momentum))
            for statistic, value in zip((running_mean, running_var), updated, strict=True):
                write(statistic, value)
    return result


@overridable
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` of each example separately; with `use_input_stats` False, by the running mean and variance.

    The running ones, if given, are updated by the mean over the examples. Raises ValueError for other shapes, and for only one
    value per channel.

    >>> instance_norm(genesis.tensor([[[1.0, 3.0], [5.0, 5.0]]]), eps=0.0625)
    tensor([[[-0.9701,  0.9701],
             [ 0.0000,  0.0000]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if input.ndim < 3:
        raise ArgumentError(f"instance_norm: input must be (n, channels, ..), got shape {input.shape}")
    n, channels, *rest = input.shape
    flat = input.reshape(1, n * channels, *rest)
    if running_mean is None or running_var is None:
        normal = batch_norm(flat, None, None, None, None, True, momentum, eps)
    else:
        mean, var = running_mean.repeat(n), running_var.repeat(n)
        normal = batch_norm(flat, mean, var, None, None, True, momentum, eps)
        with grad_mode(False):
            write(running_mean, mean.reshape(n, channels).mean(0))
            write(running_var, var.reshape(n, channels).mean(0))
    normal, per_channel = normal.reshape(input.shape), (channels, *[1] * len(rest))
    normal = normal if weight is None else normal * weight.reshape(per_channel)
    return normal if bias is None else normal + bias.reshape(per_channel)


@overridable
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows of `input` (n, k), in the order (0, 1), (0, 2), ..

    >>> pdist(genesis.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2 or p < 0:
        raise ArgumentError(f"pdist: p {p} of shape {input.shape}; want p 0 or more, and (n, k)")
    pairs = triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    distances = call(OPERATIONS["cdist"], (input, input, p, "donot_use_mm_for_euclid_dist"))
    return distances[pairs[0], pairs[1]]


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d, the Euclidean one if None.

    With `swap`, d(positive, negative) is used where it is less. Raises ValueError unless `margin` is
    above 0.

    >>> rows = genesis.tensor([[0.0]]), genesis.tensor([[3.0]]), genesis.tensor([[1.0]])
    >>> triplet_margin_with_distance_loss(*rows, distance_function=lambda a, b: (a - b).abs().sum(-1))
    tensor(3.)
    """
    if margin <= 0:
        raise ArgumentError(f"triplet_margin_with_distance_loss: margin is {margin}; want it above 0")
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(f"triplet_margin_with_distance_loss: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")

    def euclidean(a: Tensor, b: Tensor) -> Tensor:
        return call(OPERATIONS["pairwise_distance"], (a, b))

    distance = distance_function or euclidean
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    losses: Tensor = (near - far + margin).clamp(min=0)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()
