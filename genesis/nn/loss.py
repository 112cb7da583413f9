"""Losses."""

from __future__ import annotations

from inspect import signature

from genesis.ir.dtypes import DType
from genesis.ir.shapes import numel
from genesis.nn import functional
from genesis.nn.layer import KW_ONLY, Layer
from genesis.nn.linear import Linear
from genesis.nn.sequences import LinearCrossEntropyOptions
from genesis.ops.size_average import takes_size_average
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HuberLoss", "KLDivLoss", "L1Loss",
    "LinearCrossEntropyLoss", "MSELoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss",
]


class Loss(Layer):
    """The base of losses: `reduction` is "mean", "sum" or "none".

    Losses of old PyTorch versions also take `size_average` and `reduce`, at the positions of their functions.
    """

    _printed = ()  # as in PyTorch

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "function" in vars(cls) and "size_average" in (names := [*signature(cls.function).parameters]):
            following = names[names.index("size_average") + 1]
            cls.__init__ = takes_size_average("reduction" if following == "reduce" else following)(cls.__init__)  # type: ignore[method-assign]


class WeightedLoss(Loss):
    """The base of losses with a weight per class or element, which is a buffer."""

    _declared_buffers = {"weight": True}  # noqa: RUF012


class CrossEntropyLoss(WeightedLoss):
    """-log softmax(input)[target], classes on axis 1.

    Args:
        weight: a factor per class, of shape (classes,).
        ignore_index: a target that adds no loss and is not counted.
        reduction: "mean", "sum" or "none".
        label_smoothing: the fraction of the target spread over all classes.

    >>> loss = genesis.nn.CrossEntropyLoss()
    >>> round(loss(genesis.zeros(4, 10), genesis.tensor([1, 2, 3, 4])).item(), 4)
    2.3026
    """

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0
    function = functional.cross_entropy


class NLLLoss(WeightedLoss):
    """-input[target] for log-probabilities, classes on axis 1; `weight` is a factor per class.

    >>> logp = genesis.log_softmax(genesis.zeros(1, 4), dim=1)
    >>> genesis.nn.NLLLoss()(logp, genesis.tensor([2]))
    tensor(1.3863)
    """

    weight: Tensor | None = None
    ignore_index: int = -100
    reduction: str = "mean"
    function = functional.nll_loss


class MSELoss(Loss):
    """(input - target)^2.

    >>> genesis.nn.MSELoss()(genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 1.0]))
    tensor(2.)
    """

    reduction: str = "mean"
    function = functional.mse_loss


class L1Loss(Loss):
    """|input - target|.

    >>> genesis.nn.L1Loss()(genesis.tensor([1.0, 3.0]), genesis.tensor([1.0, 1.0]))
    tensor(1.)
    """

    reduction: str = "mean"
    function = functional.l1_loss


class CTCLoss(Loss):
    """-log of the probability of label sequences, summed over all alignments: see `nn.functional.ctc_loss`.

    >>> log_probs = genesis.full((3, 1, 2), 0.5).log()
    >>> genesis.nn.CTCLoss(reduction="sum")(log_probs, genesis.tensor([[1]]), [3], [1])
    tensor(0.2877)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False
    function = functional.ctc_loss


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
            raise ValueError(f"LinearCrossEntropyLoss: weight has shape {weight.shape}; want ({num_classes},)")
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"LinearCrossEntropyLoss: label_smoothing is {label_smoothing}; want 0 to 1")
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


class SmoothL1Loss(Loss):
    """d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere, of d = input - target.

    >>> genesis.nn.SmoothL1Loss()(genesis.tensor([0.5, 3.0]), genesis.tensor([0.0, 0.0]))
    tensor(1.3125)
    """

    reduction: str = "mean"
    beta: float = 1.0
    function = functional.smooth_l1_loss


class HuberLoss(Loss):
    """d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere, of d = input - target.

    Raises TypeError for a delta that is no real number.

    >>> genesis.nn.HuberLoss(delta=2.0)(genesis.tensor([0.5, 3.0]), genesis.tensor([0.0, 0.0]))
    tensor(2.0625)
    """

    reduction: str = "mean"
    delta: float = 1.0
    function = functional.huber_loss

    def __post_init__(self) -> None:
        if not isinstance(self.delta, float | int):
            raise TypeError(f"HuberLoss: delta is {self.delta!r}; want a float or an int")


class KLDivLoss(Loss):
    """target * (log(target) - input), for log-probabilities; `reduction` may be "batchmean" too.

    >>> genesis.nn.KLDivLoss(reduction="batchmean")(genesis.zeros(1, 2), genesis.tensor([[0.5, 0.5]]))
    tensor(-0.6931)
    """

    reduction: str = "mean"
    log_target: bool = False
    function = functional.kl_div


class BCELoss(WeightedLoss):
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x.

    >>> genesis.nn.BCELoss()(genesis.tensor([0.5, 0.25]), genesis.tensor([1.0, 0.0]))
    tensor(0.4904)
    """

    weight: Tensor | None = None
    reduction: str = "mean"
    function = functional.binary_cross_entropy


class BCEWithLogitsLoss(WeightedLoss):
    """BCELoss of sigmoid(x), without overflow; `pos_weight` scales the first term.

    >>> genesis.nn.BCEWithLogitsLoss()(genesis.tensor([0.0, -100.0]), genesis.tensor([1.0, 0.0]))
    tensor(0.3466)
    """

    _declared_buffers = {"weight": True, "pos_weight": True}  # noqa: RUF012
    weight: Tensor | None = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None
    function = functional.binary_cross_entropy_with_logits


class PoissonNLLLoss(Loss):
    """rate - target * log(rate), for a Poisson distribution with the rate exp(input), or `input` without `log_input`.

    >>> genesis.nn.PoissonNLLLoss(log_input=False)(genesis.tensor([1.0, 1.0]), genesis.tensor([2.0, 3.0]))
    tensor(1.)
    """

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8
    reduction: str = "mean"
    function = functional.poisson_nll_loss

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """See `nn.functional.poisson_nll_loss`."""
        return functional.poisson_nll_loss(log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(Loss):
    """(log(var) + (input - target)^2 / var) / 2, for a normal distribution; `full` adds log(2 pi) / 2.

    >>> genesis.nn.GaussianNLLLoss()(genesis.tensor([1.0]), genesis.tensor([3.0]), genesis.tensor([1.0]))
    tensor(2.)
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"
    function = functional.gaussian_nll_loss
