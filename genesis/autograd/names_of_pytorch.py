"""PyTorch's names of backward steps, for scripts that run genesis as PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Call", "name_of_pytorch"]

SMOOTHING = 7  # the position of `label_smoothing` among the arguments of `cross_entropy`


class Call(NamedTuple):
    """The properties that a name depends on: each operand's number of axes (None for a number) and the recorded arguments."""

    axes: Sequence[int | None]
    arguments: Sequence[Any]

    @property
    def is_whole(self) -> bool:
        """Whether a tensor is the only argument, without an axis."""
        return len(self.arguments) < 2

    @property
    def words(self) -> set[str]:
        """The strings among the arguments: modes, and the names of keyword arguments."""
        return {*_strings(self.arguments)}


def _strings(items: Iterable[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        elif isinstance(item, tuple | frozenset):
            yield from _strings(item)


def _reduction(name: str) -> Callable[[Call], str]:
    """One name for the reduction of a whole tensor, another for one along axes."""
    return lambda call: name + "01"[not call.is_whole]


def _extremum(name: str) -> Callable[[Call], str]:
    return lambda call: name + "10"[not call.is_whole]


def _matmul(call: Call) -> str:
    """The product for the operands' axes; batches are reshaped after it."""
    return {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0", (1, 2): "SqueezeBackward4"}.get(
        (call.axes[0] or 0, call.axes[1] or 0), "UnsafeViewBackward0")


def _linear(call: Call) -> str:
    biased = call.axes[-1] == 1 and len(call.axes) > 2
    if call.axes[0] == 2:
        return "AddmmBackward0" if biased else "MmBackward0"
    return "ViewBackward0" if biased else "UnsafeViewBackward0"


def _subscript(call: Call) -> str:
    """The name for the last item that has an effect."""
    kinds = {int: "SelectBackward0", tuple: "SliceBackward0", type(None): "UnsqueezeBackward0"}
    changing = [item for item in call.arguments[1] if item != (None, None, None)]
    return kinds[type(changing[-1])] if changing else "AliasBackward0"


def _power(call: Call) -> str:
    return "PowBackward0" if call.axes[1] is None else "PowBackward1" if call.axes[0] is not None else "PowBackward2"


def _cross_entropy(call: Call) -> str:
    """Distinguishes class indices, which have one axis less than the scores, from probabilities."""
    if call.axes[0] == call.axes[1]:
        return "NegBackward0" if {"none", "sum"}.intersection(call.words) else "DivBackward1"
    if any(setting[1] for setting in call.arguments[SMOOTHING : SMOOTHING + 1]):
        return "AddBackward0"
    return "NllLossBackward0" if call.axes[0] == 2 else "NllLoss2DBackward0"


def _averaged(elements: str) -> Callable[[Call], str]:
    """Losses whose last step is their reduction; without one it is the step `elements`."""
    return lambda call: elements if "none" in call.words else _reducing(call)


def _reducing(call: Call) -> str:
    return "DivBackward0" if "batchmean" in call.words else "SumBackward0" if "sum" in call.words else "MeanBackward0"


def _interpolation(call: Call) -> str:
    modes = call.words & {"nearest-exact", "linear", "bilinear", "bicubic", "trilinear"}
    mode = "".join(part.capitalize() for part in next(iter(modes), "nearest").split("-"))
    return f"Upsample{mode}{(call.axes[0] or 0) - 2}DBackward0"


def _padding(call: Call) -> str:
    kinds = {"reflect": "ReflectionPad", "replicate": "ReplicationPad"}
    if "circular" in call.words:
        return "torch::autograd::CopySlices"
    kind = next((kinds[word] for word in call.words if word in kinds), None)
    return "ConstantPadNdBackward0" if kind is None else f"{kind}{len(call.arguments[1]) // 2}DBackward0"


def _einsum(call: Call) -> str:
    """The name by the equation's kind: a sum, a rearrangement, an elementwise or a matrix product."""
    operands, arrow, result = str(call.arguments[0]).replace(" ", "").partition("->")
    kept = set(operands) - {","} <= set(result) if arrow else False
    if "," in operands:
        return "MulBackward0" if kept else "ViewBackward0"
    return "PermuteBackward0" if kept else "SumBackward1"


def _recurrent(call: Call) -> str:
    return "MkldnnRnnLayerBackward0" if "LSTM" in call.words else "StackBackward0"


def _averages(call: Call) -> str:
    extents = call.arguments[1]
    whole = extents[-1] == 1 if isinstance(extents[0], type) else all(extent == 1 for extent in extents)
    return "MeanBackward1" if whole else "AdaptiveAvgPool2DBackward0"


def _attention(call: Call) -> str:
    return "ScaledDotProductFlashAttentionForCpuBackward0" if call.axes[0] == 4 else "UnsafeViewBackward0"


NAMES: dict[str, str | Callable[[Call], str]] = {
    # ---- reductions ----
    "sum": _reduction("SumBackward"), "mean": _reduction("MeanBackward"), "prod": _reduction("ProdBackward"),
    "max": _extremum("MaxBackward"), "min": _extremum("MinBackward"),
    "norm": "LinalgVectorNormBackward0", "vector_norm": "LinalgVectorNormBackward0", "cosine_similarity": "SumBackward1",
    # ---- products ----
    "einsum": _einsum, "bilinear": "ViewBackward0",
    "matmul": _matmul, "linear": _linear, "outer": "MulBackward0", "kron": "UnsafeViewBackward0", "tensordot": "ViewBackward0",
    # ---- elements ----
    "pow": _power, "square": "PowBackward0", "log1p": "Log1PBackward0", "softsign": "DivBackward0", "selu": "EluBackward0",
    "relu6": "HardtanhBackward0", "softmin": "SoftmaxBackward0", "quantile": "SqueezeBackward4",
    "prelu": "PreluKernelBackward0", "logsigmoid": "LogSigmoidBackward0",
    "clamp": "ClampBackward1", "normalize": "DivBackward0", "to_dtype": "ToCopyBackward0", "conjugates": "ConjBackward0",
    "div": lambda call: "MulBackward0" if call.axes[0] is None else "DivBackward0", "tanhshrink": "SubBackward0",
    "sub": lambda call: "RsubBackward1" if call.axes[0] is None else "SubBackward0",
    # ---- views and copies ----
    "subscript": _subscript, "flatten": "ViewBackward0", "unflatten": "ViewBackward0", "reshape": "ViewBackward0",
    "reshape_copy": "UnsafeViewBackward0", "hstack": "CatBackward0", "vstack": "CatBackward0", "tile": "RepeatBackward0",
    "pad": _padding, "put": "torch::autograd::CopySlices", "narrow": "SliceBackward0", "view_at": "AsStridedBackward0",
    "dynamic_put": "torch::autograd::CopySlices", "dynamic_view": "AsStridedBackward0",
    "scatter": lambda call: "ScatterBackward1" if call.axes[-1] is None else "ScatterBackward0",
    "permute": lambda call: "TBackward0" if call.arguments[1] in ((-1, -2), (-1,)) else "PermuteBackward0",  # `t`
    "diag": lambda call: "DiagEmbedBackward0" if call.axes[0] == 1 else "DiagonalBackward0_copy",
    # `masked_fill` is recorded as `where` with a number.
    "where": lambda call: "MaskedFillBackward0" if call.axes[1] is None and call.axes[2] is not None else "WhereBackward0",
    "squeeze": lambda call: "SqueezeBackward0" if call.is_whole else "SqueezeBackward1",
    # ---- losses ----
    "cross_entropy": _cross_entropy,
    "l1_loss": _averaged("AbsBackward0"), "kl_div": _averaged("SubBackward0"), "poisson_nll_loss": _averaged("SubBackward0"),
    "hinge_embedding_loss": _averaged("AddBackward0"), "cosine_embedding_loss": _averaged("AddBackward0"),
    "gaussian_nll_loss": _averaged("MulBackward0"), "multilabel_soft_margin_loss": _averaged("DivBackward0"),
    "triplet_margin_loss": _averaged("ClampMinBackward0"), "margin_ranking_loss": _averaged("ClampMinBackward0"),
    "pairwise_distance": "NormBackward1",
    "ctc_loss": _averaged("CtcLossBackward0"),
    # ---- layers ----
    "interpolate": _interpolation, "recurrent": _recurrent, "lstm_cell": "MulBackward0", "gru_cell": "AddBackward0",
    "rms_norm": "MulBackward0", "adaptive_avg_pool2d": _averages, "scaled_dot_product_attention": _attention,
    "conv1d": "ConvolutionBackward0", "conv2d": "ConvolutionBackward0", "conv3d": "ConvolutionBackward0",
    "conv_transpose1d": "ConvolutionBackward0", "conv_transpose2d": "ConvolutionBackward0",
    "conv_transpose3d": "ConvolutionBackward0", "max_pool1d": "SqueezeBackward1", "avg_pool1d": "SqueezeBackward1",
    "max_pool2d": "MaxPool2DWithIndicesBackward0", "avg_pool2d": "AvgPool2DBackward0",
    "adaptive_max_pool2d": "AdaptiveMaxPool2DBackward0", "grid_sample": "GridSampler2DBackward0",
    "layer_norm": "NativeLayerNormBackward0", "group_norm": "NativeGroupNormBackward0",
    "batch_norm": "NativeBatchNormBackward0", "dropout": "MulBackward0", "im2col": "Im2ColBackward0",
    # ---- matrices ----
    "det": "LinalgDetBackward0", "inv": "LinalgInvExBackward0", "cholesky": "LinalgCholeskyExBackward0",
    "solve": "LinalgSolveExBackward0", "eigh": "LinalgEighBackward0", "eigvalsh": "LinalgEighBackward0",
    "cross": "LinalgCrossBackward0", "rfft": "FftR2CBackward0",
}


def name_of_pytorch(operation: str, call: Call, plain: str) -> str:
    """The name of the backward step of a call of `operation`; `plain` without a rule."""
    rule = NAMES.get(operation, plain + "0")
    return rule if isinstance(rule, str) else rule(call)
