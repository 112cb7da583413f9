# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, float as Float
from collections.abc import Callable
from genesis.ir.annotations import Extents
from genesis.nn.flow import (
    affine_grid as affine_grid, upsample_bilinear as upsample_bilinear, upsample_nearest as upsample_nearest,
)
from genesis.nn.fractional_pooling import (
    fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool3d as fractional_max_pool3d,
)
from genesis.nn.grouped import conv_tbc as conv_tbc, grouped_mm as grouped_mm
from genesis.nn.multi_head import (
    multi_head_attention_forward as multi_head_attention_forward, scaled_dot_product_attention as scaled_dot_product_attention,
)
from genesis.nn.noise import (
    alpha_dropout as alpha_dropout, dropout as dropout, dropout1d as dropout1d, dropout2d as dropout2d, dropout3d as dropout3d,
    feature_alpha_dropout as feature_alpha_dropout, gumbel_softmax as gumbel_softmax, rrelu as rrelu, rrelu_ as rrelu_,
)
from genesis.nn.sequences import ctc_loss as ctc_loss, linear_cross_entropy as linear_cross_entropy
from genesis.nn.tables import embedding as embedding, embedding_bag as embedding_bag, one_hot as one_hot
from genesis.nn.unpooling import max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d, max_unpool3d as max_unpool3d
from genesis.ops import (
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool3d as adaptive_max_pool3d, avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, bilinear as bilinear, binary_cross_entropy as binary_cross_entropy,
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits, channel_shuffle as channel_shuffle, conv1d as conv1d,
    conv2d as conv2d, conv3d as conv3d, conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d, cosine_embedding_loss as cosine_embedding_loss,
    cosine_similarity as cosine_similarity, cross_entropy as cross_entropy, fold as fold,
    gaussian_nll_loss as gaussian_nll_loss, gelu as gelu, glu as glu, grid_sample as grid_sample, group_norm as group_norm,
    hardshrink as hardshrink, hinge_embedding_loss as hinge_embedding_loss, huber_loss as huber_loss,
    interpolate as interpolate, kl_div as kl_div, l1_loss as l1_loss, layer_norm as layer_norm, linear as linear,
    local_response_norm as local_response_norm, log_softmax as log_softmax, logsigmoid as logsigmoid, lp_pool1d as lp_pool1d,
    lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d, margin_ranking_loss as margin_ranking_loss, max_pool1d as max_pool1d,
    max_pool2d as max_pool2d, max_pool3d as max_pool3d, mse_loss as mse_loss, multi_margin_loss as multi_margin_loss,
    multilabel_margin_loss as multilabel_margin_loss, multilabel_soft_margin_loss as multilabel_soft_margin_loss,
    nll_loss as nll_loss, normalize as normalize, pad as pad, pairwise_distance as pairwise_distance,
    pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle, poisson_nll_loss as poisson_nll_loss, prelu as prelu,
    rms_norm as rms_norm, smooth_l1_loss as smooth_l1_loss, soft_margin_loss as soft_margin_loss, softmax as softmax,
    softmin as softmin, softplus as softplus, softshrink as softshrink, softsign as softsign, tanhshrink as tanhshrink,
    triplet_margin_loss as triplet_margin_loss,
)
from genesis.tensor.handle import Tensor

def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: Bool = False, momentum: Float | Tensor = 0.1, eps: Float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) for each channel, then `weight` and `bias` (Ioffe and Szegedy, 2015)."""
def celu(input: Tensor, alpha: Float = 1.0, inplace: Bool = False) -> Tensor:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017)."""
def celu_(input: Tensor, alpha: Float = 1.0) -> Tensor:
    """`celu`, in place."""
def elu(input: Tensor, alpha: Float = 1.0, inplace: Bool = False) -> Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016)."""
def elu_(input: Tensor, alpha: Float = 1.0) -> Tensor:
    """`elu`, in place."""
def hardsigmoid(input: Tensor, inplace: Bool = False) -> Tensor:
    """(x + 3) / 6 held within [0, 1]."""
def hardswish(input: Tensor, inplace: Bool = False) -> Tensor:
    """x * hardsigmoid(x) (Howard et al., 2019)."""
def hardtanh(input: Tensor, min_val: Float = -1.0, max_val: Float = 1.0, inplace: Bool = False) -> Tensor:
    """x clamped to [min_val, max_val]; no gradient at the bounds. Raises ValueError unless min_val is below max_val."""
def hardtanh_(input: Tensor, min_val: Float = -1.0, max_val: Float = 1.0) -> Tensor:
    """`hardtanh`, in place."""
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: Bool = True, momentum: Float = 0.1, eps: Float = 1e-05,
) -> Tensor:
    """`batch_norm` of each example separately; with `use_input_stats` False, by the running mean and variance."""
def leaky_relu(input: Tensor, negative_slope: Float = 0.01, inplace: Bool = False) -> Tensor:
    """x where positive, `negative_slope` * x elsewhere."""
def leaky_relu_(input: Tensor, negative_slope: Float = 0.01) -> Tensor:
    """`leaky_relu`, in place."""
def mish(input: Tensor, inplace: Bool = False) -> Tensor:
    """x * tanh(softplus(x)) (Misra, 2020)."""
def pdist(input: Tensor, p: Float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows of `input` (n, k), in the order (0, 1), (0, 2), .."""
def relu(input: Tensor, inplace: Bool = False) -> Tensor:
    """x where positive, else 0; NaN of NaN."""
def relu6(input: Tensor, inplace: Bool = False) -> Tensor:
    """x held within [0, 6]."""
def relu_(input: Tensor) -> Tensor:
    """`relu`, in place."""
def selu(input: Tensor, inplace: Bool = False) -> Tensor:
    """1.0507 * elu(x, 1.6733) (Klambauer et al., 2017)."""
def selu_(input: Tensor) -> Tensor:
    """`selu`, in place."""
def sigmoid(input: Tensor, inplace: Bool = False) -> Tensor:
    """1 / (1 + exp(-x))."""
def silu(input: Tensor, inplace: Bool = False) -> Tensor:
    """x * sigmoid(x) (Hendrycks and Gimpel, 2016)."""
def tanh(input: Tensor, inplace: Bool = False) -> Tensor:
    """As `numpy.tanh`."""
def threshold(input: Tensor, threshold: Float, value: Float, inplace: Bool = False) -> Tensor:
    """x where it exceeds `threshold`, `value` elsewhere."""
def threshold_(input: Tensor, threshold: Float, value: Float) -> Tensor:
    """`threshold`, in place."""
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: Float = 1.0, swap: Bool = False, reduction: str = 'mean',
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) for a distance d, the Euclidean one if None."""
def unfold(input: Tensor, kernel_size: Extents, dilation: Extents = 1, padding: Extents = 0, stride: Extents = 1) -> Tensor:
    """The windows of images as columns: (n, c, h, w) or (c, h, w) -> (n, c * kernel elements, windows)."""
