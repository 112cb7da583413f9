"""Functions of `torch` and `torch._VF` that implement its layers, with positional arguments, by genesis' functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import genesis
from genesis.as_torch.stand_ins.torch import copied
from genesis.ir.annotations import AnyFunction
from genesis.nn import functional
from genesis.nn.flow import INTERPOLATIONS, PADDINGS
from genesis.nn.grouped import conv_tbc  # noqa: F401
from genesis.nn.tables import scaled_down
from genesis.nn.utils.parametrizations import norm_except_dim  # noqa: F401
from genesis.nn.utils.rnn import PackedSequence
from genesis.sparse.reductions import reduced_rows
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import in_place_form, refuse_leaf
from genesis.tracing.state import grad_mode

REDUCTIONS = "none", "mean", "sum"


# ---- arguments in another order than those of `nn.functional` ----
def _ordered(name: str, order: str) -> AnyFunction:
    function, names = getattr(functional, name), order.split()

    def ordered(*args: Any, **kwargs: Any) -> Tensor:
        if len(args) > len(names):
            raise TypeError(f"{name}: got {len(args)} arguments; want at most {len(names)}: {order}")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        given.pop("cudnn_enabled", None)
        if isinstance(given.get("reduction"), int):
            given["reduction"] = REDUCTIONS[given["reduction"]]
        if "indices" in given:
            given["input"] = given.pop("indices")
            given["padding_idx"] = None if given.get("padding_idx", -1) == -1 else given["padding_idx"]
        return function(**given)  # type: ignore[no-any-return]

    ordered.__name__ = name
    return ordered


ORDERED = {name: _ordered(name, order) for name, order in {
    "embedding": "weight indices padding_idx scale_grad_by_freq sparse",
    "batch_norm": "input weight bias running_mean running_var training momentum eps cudnn_enabled",
    "instance_norm": "input weight bias running_mean running_var use_input_stats momentum eps cudnn_enabled",
    "layer_norm": "input normalized_shape weight bias eps cudnn_enabled",
    "group_norm": "input num_groups weight bias eps cudnn_enabled",
    "kl_div": "input target reduction log_target",
    "binary_cross_entropy_with_logits": "input target weight pos_weight reduction",
    "cosine_embedding_loss": "input1 input2 target margin reduction",
    "ctc_loss": "log_probs targets input_lengths target_lengths blank reduction zero_infinity",
    "hinge_embedding_loss": "input target margin reduction",
    "margin_ranking_loss": "input1 input2 target margin reduction",
    "poisson_nll_loss": "input target log_input full eps reduction",
    "triplet_margin_loss": "anchor positive negative margin p eps swap reduction",
}.items()}


# ---- images ----
native_channel_shuffle, affine_grid_generator = functional.channel_shuffle, functional.affine_grid


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """`nn.functional.grid_sample`, with modes by number."""
    return functional.grid_sample(  # type: ignore[no-any-return]
        input, grid, INTERPOLATIONS[interpolation_mode], PADDINGS[padding_mode], align_corners)


def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    transposed: bool, output_padding: Sequence[int], groups: int,
) -> Tensor:
    """The convolution, or transposed convolution, over as many axes as `weight` has after its first two."""
    axes = weight.ndim - 2
    stride, padding, dilation, output_padding = (
        tuple(given) * axes if len(given) == 1 else tuple(given) for given in (stride, padding, dilation, output_padding))
    if transposed:
        function = getattr(functional, f"conv_transpose{axes}d")
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)  # type: ignore[no-any-return]
    function = getattr(functional, f"conv{axes}d")
    return function(input, weight, bias, stride, padding, dilation, groups)  # type: ignore[no-any-return]


def max_pool1d_with_indices(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """`nn.functional.max_pool1d`, and the indices of the maxima."""
    return functional.max_pool1d(input, *args, return_indices=True, **kwargs)  # type: ignore[no-any-return]


def mkldnn_convolution(
    self: Tensor, weight: Tensor, bias: Tensor | None, padding: Sequence[int], stride: Sequence[int], dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """`convolution`, by the name of a kernel of oneDNN."""
    return convolution(self, weight, bias, stride, padding, dilation, False, [0] * len(padding), groups)


# ---- copies of the parts of sparse tensors ----
crow_indices_copy, ccol_indices_copy = copied(Tensor.crow_indices), copied(Tensor.ccol_indices)
col_indices_copy, row_indices_copy = copied(Tensor.col_indices), copied(Tensor.row_indices)
values_copy, indices_copy = copied(Tensor.values), copied(Tensor.indices)


# ---- gradients ----
def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any = None) -> Tensor:
    """The gradient of `softmax` along an axis, from that of its result and the result."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype or output.dtype)


# ---- compressed rows ----
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins among the ordered row numbers `input`, and where the last ends."""
    return genesis.searchsorted(input, genesis.arange(size + 1, dtype=input.dtype), out_int32=out_int32)


# ---- zeros at random ----
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Whole channels of (n, c, ..) dropped with probability `p`, the others scaled by 1 / (1 - p)."""
    if input.ndim < 2:
        raise ValueError(f"feature_dropout: input must be (n, channels, ..), got shape {input.shape}")
    like = input.new_ones((*input.shape[:2], *[1] * (input.ndim - 2)))
    return input * functional.dropout(like, p, train) if train else input


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(output, mask): `nn.functional.dropout`, and the mask of kept elements."""
    kept: Tensor = input.new_ones(input.shape, dtype=genesis.bool)
    if train is False or p == 0:
        return input.clone(), kept
    kept = functional.dropout(input.new_ones(input.shape), p) > 0
    return (input * kept / (1 - p) if p < 1 else input * 0), kept


feature_dropout_ = in_place_form(feature_dropout)
feature_alpha_dropout_, rrelu_ = in_place_form(functional.feature_alpha_dropout), functional.rrelu_


# ---- norms ----
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows of `input` at `indices` down to at most the norm `max_norm`, in place."""
    refuse_leaf(input)
    scaled_down(indices, input, max_norm, norm_type)
    return input


# ---- statistics of batches, of which several processes know a part each ----
def _channels(x: Tensor, like: Tensor) -> Tensor:
    return x.reshape(-1, *[1] * (like.ndim - 2))


def _over(input: Tensor) -> list[int]:
    return [axis for axis in range(input.ndim) if axis != 1]


def batch_norm_stats(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """(mean, 1 / sqrt(variance + eps)) of the channels, axis 1."""
    return input.mean(_over(input)), (input.var(_over(input), correction=0) + eps).rsqrt()


def batch_norm_elemt(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, invstd: Tensor, eps: float
) -> Tensor:
    """The normalized channels, (x - mean) * invstd * weight + bias."""
    scaled = (input - _channels(mean, input)) * _channels(invstd, input)
    scaled = scaled if weight is None else scaled * _channels(weight, input)
    return scaled if bias is None else scaled + _channels(bias, input)


def batch_norm_update_stats(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float
) -> tuple[Tensor, Tensor]:
    """(mean, variance) of the channels; updates the running ones in place."""
    axes = _over(input)
    mean, variance = input.mean(axes), input.var(axes, correction=0)
    _move(running_mean, running_var, momentum, mean, input.var(axes))
    return mean, variance


def _move(
    running_mean: Tensor | None, running_var: Tensor | None, momentum: float, mean: Tensor, unbiased: Tensor
) -> None:
    with grad_mode(False):
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)


def batch_norm_gather_stats_with_counts(
    input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float,
    eps: float, counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """(mean, invstd) of all elements, from those of parts (parts, channels) with `counts` elements each."""
    share = (counts / counts.sum()).reshape(-1, 1)
    variances = invstd ** -2 - eps
    whole = (mean * share).sum(0)
    variance = ((variances + (mean - whole) ** 2) * share).sum(0)
    count = counts.sum()
    _move(running_mean, running_var, momentum, whole, variance * count / (count - 1))
    return whole, (variance + eps).rsqrt()


def batch_norm_gather_stats(
    input: Tensor, mean: Tensor, invstd: Tensor, running_mean: Tensor | None, running_var: Tensor | None, momentum: float,
    eps: float, count: int,
) -> tuple[Tensor, Tensor]:
    """`batch_norm_gather_stats_with_counts` for parts of equal size."""
    counts = mean.new_full((mean.shape[0],), count)
    return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def batch_norm_backward_reduce(
    grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, input_g: bool, weight_g: bool,
    bias_g: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """(sum of dy, sum of dy (x - mean), gradient of weight, gradient of bias) for the channels of one part."""
    axes = _over(input)
    total, along = grad_out.sum(axes), (grad_out * (input - _channels(mean, input))).sum(axes)
    return total, along, along * invstd if weight_g else None, total if bias_g else None


def batch_norm_backward_elemt(
    grad_out: Tensor, input: Tensor, mean: Tensor, invstd: Tensor, weight: Tensor | None, sum_dy: Tensor, sum_dy_xmu: Tensor,
    count: Tensor,
) -> Tensor:
    """The gradient of a part's input, from the sums over all parts, which have `count` elements each."""
    whole = count.sum()
    slope = _channels(sum_dy_xmu / whole * invstd ** 2, input) * (input - _channels(mean, input))
    scale = invstd if weight is None else invstd * weight
    return (grad_out - _channels(sum_dy / whole, input) - slope) * _channels(scale, input)


# ---- recurrent networks by lists of their parameters ----
def _network(kind: str, states: int) -> AnyFunction:
    def network(data: Tensor, *given: Any) -> tuple[Tensor, ...]:
        packed = not isinstance(given[2], bool)  # (data, batch_sizes, hx, params, ..), else (input, hx, params, ..)
        hx, params, *settings = given[packed:]
        has_biases, layers, dropout, train, bidirectional = settings[:5]
        per_end = 2 + 2 * has_biases
        projected = len(params) == layers * (1 + bidirectional) * (per_end + 1)
        hidden = params[1].shape[1]
        sizes = {"hidden_size": params[-2].shape[0] // 4 if kind == "LSTM" else hidden}
        if projected:
            sizes = {"hidden_size": params[per_end].shape[1], "proj_size": params[per_end].shape[0]}
        nonlinearity = {"nonlinearity": kind.partition("_")[2].lower()} if "_" in kind else {}
        with genesis.random.fork_rng():
            made: Any = getattr(genesis.nn, kind.partition("_")[0])(
                params[0].shape[1], num_layers=layers, bias=has_biases, dropout=dropout, bidirectional=bidirectional,
                batch_first=not packed and bool(settings[5]), **sizes, **nonlinearity)
        made.train(train)
        input = PackedSequence(data, given[0]) if packed else data
        named = dict(zip([name for name, _ in made.named_parameters()], params, strict=True))
        output, state = genesis.func.functional_call(made, named, (input, tuple(hx) if states == 2 else hx))
        return (output.data if packed else output), *(state if states == 2 else (state,))

    network.__name__ = network.__qualname__ = kind.lower()
    network.__doc__ = f"`nn.{kind}`: (output, *state) of a sequence, or packed data and its batch sizes; state; parameters."
    return network


gru, lstm, rnn_tanh, rnn_relu = _network("GRU", 1), _network("LSTM", 2), _network("RNN_TANH", 1), _network("RNN_RELU", 1)


# ---- sums of segments ----
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None, offsets: Tensor | None = None,
    axis: int = 0, unsafe: bool = False, initial: float | None = None,
) -> Tensor:
    """"sum", "mean", "max", "min" or "prod" of the segments along `axis` given by `lengths` or `offsets`.

    `initial` is counted in. Empty segments are `initial`, or what the reduction of nothing is. `indices` are refused, as by
    PyTorch, and lengths are checked even if `unsafe`.
    """
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    name = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "max", "min", "prod"):
        raise ValueError(f"segment_reduce: reduce is {reduce!r}; want one of sum, mean, max, min, prod")
    if lengths is None:
        if offsets is None:
            raise ValueError("segment_reduce: wants lengths or offsets")
        lengths = offsets.diff(dim=-1)
    axis = lengths.ndim - 1
    if (lengths.sum(-1) != data.shape[axis]).any():
        total = lengths.sum(-1).tolist()
        raise ValueError(f"segment_reduce: lengths add up to {total}; want {data.shape[axis]}, the extent of data")
    rows, counts = data.flatten(0, axis), lengths.flatten()
    groups = genesis.arange(len(counts)).repeat_interleave(counts)
    found = reduced_rows(name, rows, groups, len(counts))
    counts = counts.reshape(-1, *(1,) * (rows.ndim - 1))
    if reduce == "mean":  # `initial` counts as no element of its own
        of_nothing = math.nan if initial is None else initial
        found = genesis.where(counts == 0, of_nothing, found + (initial or 0) / counts).to(data.dtype)
    elif initial is not None:
        join = {"sum": Tensor.add, "prod": Tensor.mul, "max": Tensor.clamp_min, "min": Tensor.clamp_max}
        found = join[reduce](found, initial)
    return found.reshape(*lengths.shape, *data.shape[axis + 1:])
