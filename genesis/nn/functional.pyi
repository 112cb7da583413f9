# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, float as Float, int as Int
from collections.abc import Callable, Sequence
from typing import Literal, overload
from genesis.ir.annotations import Extents
from genesis.ir.dtypes import DType
from genesis.nn.flow import (
    affine_grid as affine_grid, upsample_bilinear as upsample_bilinear, upsample_nearest as upsample_nearest,
)
from genesis.nn.fractional_pooling import (
    fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool3d as fractional_max_pool3d,
)
from genesis.nn.grouped import conv_tbc as conv_tbc, grouped_mm as grouped_mm
from genesis.nn.multi_head import multi_head_attention_forward as multi_head_attention_forward
from genesis.nn.noise import (
    alpha_dropout as alpha_dropout, dropout as dropout, dropout1d as dropout1d, dropout2d as dropout2d, dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout, gumbel_softmax as gumbel_softmax, rrelu as rrelu, rrelu_ as rrelu_,
)
from genesis.nn.scaled_attention import scaled_dot_product_attention as scaled_dot_product_attention
from genesis.nn.sequences import ctc_loss as ctc_loss, linear_cross_entropy as linear_cross_entropy
from genesis.nn.tables import embedding as embedding, embedding_bag as embedding_bag, one_hot as one_hot
from genesis.nn.unpooling import max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d, max_unpool3d as max_unpool3d
from genesis.tensor.handle import Operand, Tensor

def adaptive_avg_pool1d(input: Tensor, output_size: Int | Sequence[Int] | None) -> Tensor:
    """The means of `output_size` parts, as equal as can be, of the last 1 axes; None keeps an extent."""
def adaptive_avg_pool2d(input: Tensor, output_size: Int | Sequence[Int] | None) -> Tensor:
    """The means of `output_size` parts, as equal as can be, of the last 2 axes; None keeps an extent."""
def adaptive_avg_pool3d(input: Tensor, output_size: Int | Sequence[Int] | None) -> Tensor:
    """The means of `output_size` parts, as equal as can be, of the last 3 axes; None keeps an extent."""
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Int | Sequence[Int] | None, return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Int | Sequence[Int] | None, return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The greatest elements of `output_size` parts, as equal as can be, of the last 1 axes."""
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Int | Sequence[Int] | None, return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Int | Sequence[Int] | None, return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The greatest elements of `output_size` parts, as equal as can be, of the last 2 axes."""
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Int | Sequence[Int] | None, return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Int | Sequence[Int] | None, return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The greatest elements of `output_size` parts, as equal as can be, of the last 3 axes."""
def avg_pool1d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    ceil_mode: Bool = False, count_include_pad: Bool = True,
) -> Tensor:
    """The mean of each window over the last axis."""
def avg_pool2d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    ceil_mode: Bool = False, count_include_pad: Bool = True, divisor_override: Int | None = None,
) -> Tensor:
    """The mean of each window over the last 2 axes, or its sum over `divisor_override`."""
def avg_pool3d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    ceil_mode: Bool = False, count_include_pad: Bool = True, divisor_override: Int | None = None,
) -> Tensor:
    """The mean of each window over the last 3 axes, or its sum over `divisor_override`."""
def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: Bool = False, momentum: Float | Tensor = 0.1, eps: Float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) for each channel, then `weight` and `bias` (Ioffe and Szegedy, 2015)."""
def bilinear(input1: Operand, input2: Operand, weight: Operand, bias: Operand | None = None) -> Tensor:
    """input1 @ weight[k] @ input2 + bias[k]: (.., a), (.., b) and `weight` (out, a, b) -> (.., out)."""
def binary_cross_entropy(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x, where logarithms count as -100 at least."""
def binary_cross_entropy_with_logits(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean', pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; `pos_weight` is a factor of the first term."""
def celu(input: Tensor, alpha: Float = 1.0, inplace: Bool = False) -> Tensor:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017)."""
def celu_(input: Tensor, alpha: Float = 1.0) -> Tensor:
    """`celu`, in place."""
def channel_shuffle(input: Tensor, groups: Int) -> Tensor:
    """The channels (axis 1) of all groups in turn: the first of each, then the second of each (Zhang et al., 2018)."""
def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Extents = 1, padding: Int | Sequence[Int] | str = 0,
    dilation: Extents = 1, groups: Int = 1,
) -> Tensor:
    """The cross-correlation of `input` with `weight`, over its last 1 axes."""
def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Extents = 1, padding: Int | Sequence[Int] | str = 0,
    dilation: Extents = 1, groups: Int = 1,
) -> Tensor:
    """The cross-correlation of `input` with `weight`, over its last 2 axes."""
def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Extents = 1, padding: Int | Sequence[Int] | str = 0,
    dilation: Extents = 1, groups: Int = 1,
) -> Tensor:
    """The cross-correlation of `input` with `weight`, over its last 3 axes."""
def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Extents = 1, padding: Extents = 0,
    output_padding: Extents = 0, groups: Int = 1, dilation: Extents = 1,
) -> Tensor:
    """The gradient of `conv1d` by its input, as an operation of its own: windows laid over each other."""
def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Extents = 1, padding: Extents = 0,
    output_padding: Extents = 0, groups: Int = 1, dilation: Extents = 1,
) -> Tensor:
    """The gradient of `conv2d` by its input, as an operation of its own: windows laid over each other."""
def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Extents = 1, padding: Extents = 0,
    output_padding: Extents = 0, groups: Int = 1, dilation: Extents = 1,
) -> Tensor:
    """The gradient of `conv3d` by its input, as an operation of its own: windows laid over each other."""
def cosine_embedding_loss(
    input1: Operand, input2: Operand, target: Operand, margin: Float = 0.0, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where it is -1, along the last axis."""
def cosine_similarity(x1: Operand, x2: Operand, dim: Int = 1, eps: Float = 1e-08) -> Tensor:
    """x1 . x2 / (|x1| |x2|) along `dim`, where norms count as `eps` at least."""
def cross_entropy(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None, ignore_index: Int = -100,
    reduce: Bool | None = None, reduction: str = 'mean', label_smoothing: Float = 0.0,
) -> Tensor:
    """-log softmax(input)[target] with classes on axis 1 (axis 0 of a 1-d input)."""
def elu(input: Tensor, alpha: Float = 1.0, inplace: Bool = False) -> Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016)."""
def elu_(input: Tensor, alpha: Float = 1.0) -> Tensor:
    """`elu`, in place."""
def fold(
    input: Tensor, output_size: Extents, kernel_size: Extents, dilation: Extents = 1, padding: Extents = 0, stride: Extents = 1,
) -> Tensor:
    """Columns laid back as windows of images, where they meet summed: the transpose of `unfold`."""
def gaussian_nll_loss(
    input: Operand, target: Operand, var: Operand, full: Bool = False, eps: Float = 1e-06, reduction: str = 'mean',
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, for a normal distribution of the mean `input` and the variance `var`."""
def gelu(input: Tensor, approximate: str = 'none') -> Tensor:
    """x * Phi(x) (Hendrycks and Gimpel, 2016); `approximate="tanh"` takes their tanh formula."""
def glu(input: Tensor, dim: Int = -1) -> Tensor:
    """a * sigmoid(b), of the halves a and b along `dim` (Dauphin et al., 2017). Raises ValueError for an odd extent."""
def grid_sample(
    input: Operand, grid: Operand, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: Bool | None = None,
) -> Tensor:
    """What `input` (n, c, h, w) has at the places `grid` (n, i, j, 2): (n, c, i, j); or volumes, with three numbers each."""
def group_norm(
    input: Tensor, num_groups: Int, weight: Tensor | None = None, bias: Tensor | None = None, eps: Float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) over groups of channels, then `weight` and `bias` for each channel (Wu and He, 2018)."""
def hardshrink(input: Tensor, lambd: Float = 0.5) -> Tensor:
    """x, but 0 within [-lambd, lambd]."""
def hardsigmoid(input: Tensor, inplace: Bool = False) -> Tensor:
    """(x + 3) / 6 held within [0, 1]."""
def hardswish(input: Tensor, inplace: Bool = False) -> Tensor:
    """x * hardsigmoid(x) (Howard et al., 2019)."""
def hardtanh(input: Tensor, min_val: Float = -1.0, max_val: Float = 1.0, inplace: Bool = False) -> Tensor:
    """x held within [min_val, max_val]; no gradient at the bounds. Raises ValueError unless min_val is below max_val."""
def hardtanh_(input: Tensor, min_val: Float = -1.0, max_val: Float = 1.0) -> Tensor:
    """`hardtanh`, in place."""
def hinge_embedding_loss(
    input: Operand, target: Operand, margin: Float = 1.0, size_average: Bool | None = None, reduce: Bool | None = None,
    reduction: str = 'mean',
) -> Tensor:
    """x where t is 1, max(0, margin - x) where it is -1."""
def huber_loss(
    input: Operand, target: Operand, reduction: str = 'mean', delta: Float = 1.0, weight: Tensor | None = None,
) -> Tensor:
    """d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere, of d = input - target (Huber, 1964)."""
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: Bool = True, momentum: Float = 0.1, eps: Float = 1e-05,
) -> Tensor:
    """`batch_norm` of each example by itself; with `use_input_stats` False, by the running mean and variance."""
def interpolate(
    input: Tensor, size: Int | Sequence[Int] | None = None, scale_factor: Float | Sequence[Float] | None = None,
    mode: str = 'nearest', align_corners: Bool | None = None, recompute_scale_factor: Bool | None = None,
    antialias: Bool = False,
) -> Tensor:
    """`input` (n, c, ..) at another size: `size`, or `scale_factor` times its own, for all axes after c or for each."""
def kl_div(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    log_target: Bool = False,
) -> Tensor:
    """target * (log(target) - input), for log-probabilities `input`; with `log_target` the target is one too."""
def l1_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, times `weight`; see `mse_loss`."""
def layer_norm(
    input: Tensor, normalized_shape: tuple[Int, ...], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: Float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) over the last axes, then `weight` and `bias` (Ba, Kiros and Hinton, 2016)."""
def leaky_relu(input: Tensor, negative_slope: Float = 0.01, inplace: Bool = False) -> Tensor:
    """x where positive, `negative_slope` * x elsewhere."""
def leaky_relu_(input: Tensor, negative_slope: Float = 0.01) -> Tensor:
    """`leaky_relu`, in place."""
def linear(input: Operand, weight: Operand, bias: Operand | None = None) -> Tensor:
    """`input @ weight.T + bias` for `input` (.., in), `weight` (out, in) and `bias` (out,)."""
def local_response_norm(input: Tensor, size: Int, alpha: Float = 0.0001, beta: Float = 0.75, k: Float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta (Krizhevsky, Sutskever and Hinton, 2012)."""
def log_softmax(input: Tensor, dim: Int = -1, dtype: DType | None = None) -> Tensor:
    """log(softmax(x)) along `dim`, without overflow."""
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
def lp_pool1d(
    input: Tensor, norm_type: Float, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, ceil_mode: Bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) of each window over the last 1 axes."""
def lp_pool2d(
    input: Tensor, norm_type: Float, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, ceil_mode: Bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) of each window over the last 2 axes."""
def lp_pool3d(
    input: Tensor, norm_type: Float, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, ceil_mode: Bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) of each window over the last 3 axes."""
def margin_ranking_loss(
    input1: Operand, input2: Operand, target: Operand, margin: Float = 0.0, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """max(0, -t * (x1 - x2) + margin), for t of 1 or -1."""
@overload
def max_pool1d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    dilation: Extents = 1, ceil_mode: Bool = False, return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    dilation: Extents = 1, ceil_mode: Bool = False, *, return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The greatest element of each window over the last 1 axes; NaN wins."""
@overload
def max_pool2d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    dilation: Extents = 1, ceil_mode: Bool = False, return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    dilation: Extents = 1, ceil_mode: Bool = False, *, return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The greatest element of each window over the last 2 axes; NaN wins."""
@overload
def max_pool3d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    dilation: Extents = 1, ceil_mode: Bool = False, return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, padding: Extents = 0,
    dilation: Extents = 1, ceil_mode: Bool = False, *, return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The greatest element of each window over the last 3 axes; NaN wins."""
def mish(input: Tensor, inplace: Bool = False) -> Tensor:
    """x * tanh(softplus(x)) (Misra, 2020)."""
def mse_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)^2, times `weight` of the same shape."""
def multi_margin_loss(
    input: Operand, target: Operand, p: Int = 1, margin: Float = 1.0, weight: Tensor | None = None,
    size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """The mean over classes of max(0, margin - input[target] + input[class])^p, the target's own left out."""
def multilabel_margin_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """The sum over the targets and all other classes of max(0, 1 - input[target] + input[class]), over the classes' .."""
def multilabel_soft_margin_loss(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """The mean over classes (the last axis) of the binary cross entropy of sigmoid(input), times `weight`."""
def nll_loss(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None, ignore_index: Int = -100,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """-input[target] with classes on axis 1, for log-probabilities; arguments and errors as those of `cross_entropy`."""
def normalize(input: Tensor, p: Float = 2.0, dim: Int | Sequence[Int] | None = 1, eps: Float = 1e-12) -> Tensor:
    """`input` over its p-norm along `dim`, which counts as `eps` at least."""
def pad(input: Tensor, pad: Sequence[Int], mode: str = 'constant', value: Float | None = None) -> Tensor:
    """`input` with more places around it."""
def pairwise_distance(x1: Operand, x2: Operand, p: Float = 2.0, eps: Float = 1e-06, keepdim: Bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis."""
def pdist(input: Tensor, p: Float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows of `input` (n, k), those of the first with the others first."""
def pixel_shuffle(input: Tensor, upscale_factor: Int) -> Tensor:
    """(.., c * r^2, h, w) -> (.., c, h * r, w * r): every r^2 channels are a square of places (Shi et al., 2016)."""
def pixel_unshuffle(input: Tensor, downscale_factor: Int) -> Tensor:
    """(.., c, h * r, w * r) -> (.., c * r^2, h, w): what `pixel_shuffle` does, undone."""
def poisson_nll_loss(
    input: Operand, target: Operand, log_input: Bool = True, full: Bool = False, size_average: Bool | None = None,
    eps: Float = 1e-08, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """rate - target * log(rate), for a Poisson distribution of the rate exp(input), or `input` without `log_input`."""
def prelu(input: Operand, weight: Operand) -> Tensor:
    """x where positive, weight * x elsewhere; one weight, or one for each channel (axis 1). Raises ValueError otherwise."""
def relu(input: Tensor, inplace: Bool = False) -> Tensor:
    """x where positive, else 0; NaN of NaN."""
def relu6(input: Tensor, inplace: Bool = False) -> Tensor:
    """x held within [0, 6]."""
def relu_(input: Tensor) -> Tensor:
    """`relu`, in place."""
def rms_norm(
    input: Tensor, normalized_shape: tuple[Int, ...], weight: Tensor | None = None, eps: Float | None = None,
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) over the last axes, then `weight` (Zhang and Sennrich, 2019)."""
def selu(input: Tensor, inplace: Bool = False) -> Tensor:
    """1.0507 * elu(x, 1.6733) (Klambauer et al., 2017)."""
def selu_(input: Tensor) -> Tensor:
    """`selu`, in place."""
def sigmoid(input: Tensor, inplace: Bool = False) -> Tensor:
    """1 / (1 + exp(-x))."""
def silu(input: Tensor, inplace: Bool = False) -> Tensor:
    """x * sigmoid(x) (Hendrycks and Gimpel, 2016)."""
def smooth_l1_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    beta: Float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere, of d = input - target (Girshick, 2015)."""
def soft_margin_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """log(1 + exp(-t * x)), for t of 1 or -1."""
def softmax(input: Tensor, dim: Int = -1, dtype: DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
def softmin(input: Tensor, dim: Int = -1, dtype: DType | None = None) -> Tensor:
    """softmax(-x) along `dim`."""
def softplus(input: Tensor, beta: Float = 1.0, threshold: Float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`."""
def softshrink(input: Tensor, lambd: Float = 0.5) -> Tensor:
    """x less `lambd` beyond it, plus `lambd` below -lambd, 0 between. Raises ValueError for a negative one."""
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
def tanh(input: Tensor, inplace: Bool = False) -> Tensor:
    """As `numpy.tanh`."""
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
def threshold(input: Tensor, threshold: Float, value: Float, inplace: Bool = False) -> Tensor:
    """x where it exceeds `threshold`, `value` elsewhere."""
def threshold_(input: Tensor, threshold: Float, value: Float) -> Tensor:
    """`threshold`, in place."""
def triplet_margin_loss(
    anchor: Operand, positive: Operand, negative: Operand, margin: Float = 1.0, p: Float = 2.0, eps: Float = 1e-06,
    swap: Bool = False, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), of p-norms."""
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: Float = 1.0, swap: Bool = False, reduction: str = 'mean',
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) of the distance d, the Euclidean one if None."""
def unfold(input: Tensor, kernel_size: Extents, dilation: Extents = 1, padding: Extents = 0, stride: Extents = 1) -> Tensor:
    """The windows of images as columns: (n, c, h, w) or (c, h, w) -> (n, c * kernel elements, windows)."""
