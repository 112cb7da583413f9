"""The functions of neural networks on Tensors: rows of the operation table under PyTorch's names."""

from __future__ import annotations

from typing import Any

from genesis.autograd import no_grad
from genesis.dispatch import call
from genesis.ir.shapes import broadcast_shapes, numel
from genesis.methods import function_of
from genesis.ops.registry import OPERATIONS
from genesis.overriding import overridable
from genesis.random import draws
from genesis.storage import write
from genesis.tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "batch_norm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "cross_entropy", "dropout", "embedding", "fold", "gelu", "group_norm", "instance_norm", "l1_loss", "layer_norm",
    "leaky_relu", "linear", "log_softmax", "lp_pool1d", "lp_pool2d", "max_pool1d", "max_pool2d", "max_pool3d", "mse_loss",
    "nll_loss", "pad", "relu", "rms_norm", "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "tanh", "unfold",
]

# ---- layers ----
linear = function_of(OPERATIONS["linear"])
embedding = function_of(OPERATIONS["embedding"])
layer_norm = function_of(OPERATIONS["layer_norm"])
rms_norm = function_of(OPERATIONS["rms_norm"])
group_norm = function_of(OPERATIONS["group_norm"])

# ---- windows ----
conv1d = function_of(OPERATIONS["conv1d"])
conv2d = function_of(OPERATIONS["conv2d"])
conv3d = function_of(OPERATIONS["conv3d"])
conv_transpose1d = function_of(OPERATIONS["conv_transpose1d"])
conv_transpose2d = function_of(OPERATIONS["conv_transpose2d"])
conv_transpose3d = function_of(OPERATIONS["conv_transpose3d"])
max_pool1d = function_of(OPERATIONS["max_pool1d"])
max_pool2d = function_of(OPERATIONS["max_pool2d"])
max_pool3d = function_of(OPERATIONS["max_pool3d"])
avg_pool1d = function_of(OPERATIONS["avg_pool1d"])
avg_pool2d = function_of(OPERATIONS["avg_pool2d"])
avg_pool3d = function_of(OPERATIONS["avg_pool3d"])
lp_pool1d = function_of(OPERATIONS["lp_pool1d"])
lp_pool2d = function_of(OPERATIONS["lp_pool2d"])
adaptive_avg_pool1d = function_of(OPERATIONS["adaptive_avg_pool1d"])
adaptive_avg_pool2d = function_of(OPERATIONS["adaptive_avg_pool2d"])
adaptive_max_pool1d = function_of(OPERATIONS["adaptive_max_pool1d"])
adaptive_max_pool2d = function_of(OPERATIONS["adaptive_max_pool2d"])
pad = function_of(OPERATIONS["pad"])
unfold = function_of(OPERATIONS["im2col"])
fold = function_of(OPERATIONS["fold"])

# ---- activations ----
relu = function_of(OPERATIONS["relu"])
leaky_relu = function_of(OPERATIONS["leaky_relu"])
gelu = function_of(OPERATIONS["gelu"])
silu = function_of(OPERATIONS["silu"])
sigmoid = function_of(OPERATIONS["sigmoid"])
tanh = function_of(OPERATIONS["tanh"])
softmax = function_of(OPERATIONS["softmax"])
log_softmax = function_of(OPERATIONS["log_softmax"])

# ---- losses ----
cross_entropy = function_of(OPERATIONS["cross_entropy"])
nll_loss = function_of(OPERATIONS["nll_loss"])
mse_loss = function_of(OPERATIONS["mse_loss"])
l1_loss = function_of(OPERATIONS["l1_loss"])


@overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`input` with each element zeroed with probability `p` and the others scaled by 1/(1-p); `input` if not training.

    Raises ValueError for a `p` outside [0, 1].

    >>> import genesis
    >>> dropout(genesis.ones(3), p=1.0)
    tensor([0., 0., 0.])
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is a probability, got {p}")
    if not training or p == 0:
        return input
    return call(OPERATIONS["dropout"], (input, *draws(input.numel()), float(p)))


@overridable
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: Any = 0.1, eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) for each channel, then `weight` and `bias` (Ioffe and Szegedy, 2015).

    Args:
        input: (n, channels, ..).
        running_mean, running_var: (channels,); used unless `training`, and updated in place if so.
        weight, bias: (channels,); left out if None.
        training: use the mean and variance (of n) of this batch.
        momentum: how far the running mean and variance (of n-1) go towards the batch's, a number or a 0-d tensor.
        eps: added to the variance.

    Raises ValueError for other shapes, and for `training` with one value for each channel.

    >>> import genesis
    >>> mean, var = genesis.zeros(1), genesis.ones(1)
    >>> batch_norm(genesis.tensor([[1.0], [3.0]]), mean, var, training=True), mean, var
    (tensor([[-1.0000],
            [ 1.0000]]), tensor([0.2000]), tensor([1.1000]))
    """
    arguments = (input, running_mean, running_var, weight, bias, training, 0.0, eps)
    result: Tensor = call(OPERATIONS["batch_norm"], arguments)
    if training and running_mean is not None and running_var is not None:
        with no_grad():
            updated = call(OPERATIONS["batch_statistics"], (input, running_mean, running_var, momentum))
            for held, value in zip((running_mean, running_var), updated, strict=True):
                write(held, value)
    return result


@overridable
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` of each example by itself; with `use_input_stats` False, by the running mean and variance.

    The running ones, if given, go towards the mean of those of the examples. Raises ValueError for other shapes, and for one
    value for each channel.

    >>> import genesis
    >>> instance_norm(genesis.tensor([[[1.0, 3.0], [5.0, 5.0]]]), eps=0.0625)
    tensor([[[-0.9701,  0.9701],
             [ 0.0000,  0.0000]]])
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if input.ndim < 3:
        raise ValueError(f"instance_norm: input must be (n, channels, ..), got shape {input.shape}")
    n, channels, *rest = input.shape
    flat = input.reshape(1, n * channels, *rest)
    if running_mean is None or running_var is None:
        normal = batch_norm(flat, None, None, None, None, True, momentum, eps)
    else:
        mean, var = running_mean.repeat(n), running_var.repeat(n)
        normal = batch_norm(flat, mean, var, None, None, True, momentum, eps)
        with no_grad():
            write(running_mean, mean.reshape(n, channels).mean(0))
            write(running_var, var.reshape(n, channels).mean(0))
    normal, place = normal.reshape(input.shape), (channels, *[1] * len(rest))
    normal = normal if weight is None else normal * weight.reshape(place)
    return normal if bias is None else normal + bias.reshape(place)


@overridable
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale) @ value (Vaswani et al., 2017).

    Args:
        query: (.., l, e).
        key: (.., s, e).
        value: (.., s, v).
        attn_mask: broadcasts to (.., l, s): bools, True where a query sees a key, or numbers that are added to the products.
            A query that sees no key gets zeros.
        dropout_p: the probability with which a weight is zeroed, training or not.
        is_causal: query i sees the keys 0 to i; without `attn_mask`.
        scale: 1 / sqrt(e) if None.
        enable_gqa: each head of key and value (the axis before l) serves several of query's.

    Raises ValueError for shapes that do not fit, a probability outside [0, 1], and a mask together with `is_causal`.

    >>> import genesis
    >>> q, k, v = genesis.zeros(2, 2), genesis.ones(2, 2), genesis.tensor([[1.0], [2.0]])
    >>> scaled_dot_product_attention(q, k, v, is_causal=True).tolist()
    [[1.0], [1.5]]
    """
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"scaled_dot_product_attention: dropout_p is a probability, got {dropout_p}")
    seed, start = 0, 0
    if dropout_p and query.ndim > 1 and key.ndim > 1:
        others = () if enable_gqa else (key.shape[:-2], value.shape[:-2])
        batch = broadcast_shapes("scaled_dot_product_attention", query.shape[:-2], *others)
        seed, start = draws(numel((*batch, query.shape[-2], key.shape[-2])))
    arguments = (query, key, value, attn_mask, float(dropout_p), is_causal, scale, enable_gqa, seed, start)
    result: Tensor = call(OPERATIONS["scaled_dot_product_attention"], arguments)
    return result
