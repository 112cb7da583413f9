"""Losses."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import numel
from genesis.nn import functional
from genesis.nn.layer import KW_ONLY, Layer
from genesis.nn.linear import Linear
from genesis.nn.sequences import LinearCrossEntropyOptions
from genesis.ops.size_average import takes_size_average
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss",
    "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]


class Loss(Layer):
    """The base of losses: `reduction` is "mean", "sum" or "none".

    Losses of old PyTorch versions also take `size_average` and `reduce`, at the positions of their functions.
    """

    _printed = ()  # as in PyTorch

    def __init_subclass__(cls, function: AnyFunction | None = None) -> None:
        super().__init_subclass__(function)
        if "function" in vars(cls) and "size_average" in (names := [*signature(cls.function).parameters]):
            following = names[names.index("size_average") + 1]
            cls.__init__ = takes_size_average("reduction" if following == "reduce" else following)(cls.__init__)  # type: ignore[method-assign]


class WeightedLoss(Loss):
    """The base of losses with a weight per class or element, which is a buffer."""

    _declared_buffers = {"weight": True}  # noqa: RUF012


class _Reduced(Loss):
    reduction: str = "mean"


class MSELoss(_Reduced, function=functional.mse_loss): ...
class L1Loss(_Reduced, function=functional.l1_loss): ...
class SoftMarginLoss(_Reduced, function=functional.soft_margin_loss): ...
class MultiLabelMarginLoss(_Reduced, function=functional.multilabel_margin_loss): ...


class SmoothL1Loss(_Reduced, function=functional.smooth_l1_loss):
    beta: float = 1.0


class HuberLoss(_Reduced, function=functional.huber_loss):
    delta: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.delta, float | int):
            raise TypeError(f"HuberLoss: delta is {self.delta!r}; want a float or an int")


class KLDivLoss(_Reduced, function=functional.kl_div):
    log_target: bool = False


class _Weighted(WeightedLoss):
    weight: Tensor | None = None
    reduction: str = "mean"


class BCELoss(_Weighted, function=functional.binary_cross_entropy): ...
class MultiLabelSoftMarginLoss(_Weighted, function=functional.multilabel_soft_margin_loss): ...


class BCEWithLogitsLoss(_Weighted, function=functional.binary_cross_entropy_with_logits):
    _declared_buffers = {"weight": True, "pos_weight": True}  # noqa: RUF012
    pos_weight: Tensor | None = None


class _OfClasses(WeightedLoss):
    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"


class CrossEntropyLoss(_OfClasses, function=functional.cross_entropy):
    label_smoothing: float = 0.0


class NLLLoss(_OfClasses, function=functional.nll_loss): ...


class CTCLoss(Loss, function=functional.ctc_loss):
    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


class LinearCrossEntropyLoss(WeightedLoss):
    """`CrossEntropyLoss` of a `Linear` layer's outputs, `num_classes` for each of `out_features`.

    With `options`, logits are never stored: see `nn.functional.linear_cross_entropy`.

    >>> loss = genesis.nn.LinearCrossEntropyLoss(2, 3, options=genesis.nn.LinearCrossEntropyOptions())
    >>> loss(genesis.zeros(4, 2), genesis.tensor([0, 1, 2, 0]))
    tensor(1.0986, grad_fn=<DivBackward>)
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device: DeviceLike = None, dtype: DType | None = None, reduction: str = "mean", weight: Tensor | None = None,
        ignore_index: int | None = None, label_smoothing: float = 0.0, options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise ArgumentError(f"LinearCrossEntropyLoss: weight has shape {weight.shape}; want ({num_classes},)")
        if not 0 <= label_smoothing <= 1:
            raise ArgumentError(f"LinearCrossEntropyLoss: label_smoothing is {label_smoothing}; want 0 to 1")
        self.weight = weight
        self.reduction = reduction
        self.out_features = tuple(out_features)
        self.linear = Linear(in_features, num_classes * numel(self.out_features), bias, device, dtype)
        self.num_classes = num_classes
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """`input` (n, in_features), `target` (n, *out_features), or probabilities (n, num_classes, *out_features)."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return functional.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, -1), target, linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self) -> str:
        names = "reduction", "ignore_index", "label_smoothing", "options"
        settings = [f"{name}={getattr(self, name)}" for name in names]
        shape = f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}"
        return ", ".join([shape, f"bias={self.linear.bias is not None}", *settings])


class PoissonNLLLoss(Loss, function=functional.poisson_nll_loss):
    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: str = "mean"

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.poisson_nll_loss`."""
        return functional.poisson_nll_loss(log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(Loss, function=functional.gaussian_nll_loss):
    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


# ---- of margins ----
class _OfMargin(Loss):
    margin: float = 0.0
    reduction: str = "mean"


class MarginRankingLoss(_OfMargin, function=functional.margin_ranking_loss): ...
class CosineEmbeddingLoss(_OfMargin, function=functional.cosine_embedding_loss): ...


class HingeEmbeddingLoss(_OfMargin, function=functional.hinge_embedding_loss):
    margin: float = 1.0


class TripletMarginLoss(Loss, function=functional.triplet_margin_loss):
    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    reduction: str = "mean"


class MultiMarginLoss(WeightedLoss, function=functional.multi_margin_loss):
    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    reduction: str = "mean"


class TripletMarginWithDistanceLoss(Loss, function=functional.triplet_margin_with_distance_loss):
    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"
