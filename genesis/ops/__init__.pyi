# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, float as Float, int as Int
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload
from genesis.functions.comparison import allclose as allclose, equal as equal
from genesis.functions.copies import alias_copy as alias_copy, resize_ as resize_, resize_as_ as resize_as_
from genesis.functions.counting import (
    bincount as bincount, histc as histc, histogram as histogram, histogramdd as histogramdd, mode as mode,
    repeat_interleave as repeat_interleave, unique_consecutive as unique_consecutive,
)
from genesis.functions.finite_differences import gradient as gradient
from genesis.functions.low_rank import lobpcg as lobpcg, pca_lowrank as pca_lowrank, svd_lowrank as svd_lowrank
from genesis.functions.methods.complex_numbers import (
    adjoint as adjoint, conj as conj, conj_physical as conj_physical, conj_physical_ as conj_physical_,
    is_complex as is_complex, is_conj as is_conj, is_neg as is_neg, resolve_conj as resolve_conj, resolve_neg as resolve_neg,
    view_as_complex as view_as_complex, view_as_real as view_as_real,
)
from genesis.functions.methods.conversion import clone as clone
from genesis.functions.methods.differentiation import detach_ as detach_, requires_grad_ as requires_grad_
from genesis.functions.methods.inspection import (
    is_floating_point as is_floating_point, is_inference as is_inference, is_same_size as is_same_size, is_signed as is_signed,
    numel as numel,
)
from genesis.functions.methods.rarer_names import apply_ as apply_, float_power_ as float_power_, map2_ as map2_, map_ as map_
from genesis.functions.methods.shaping import broadcast_to as broadcast_to, movedim as movedim, ravel as ravel, t as t
from genesis.functions.methods.sharing import share_memory_ as share_memory_
from genesis.functions.methods.storage import hash_tensor as hash_tensor, set_ as set_
from genesis.functions.methods.strides import (
    as_strided as as_strided, as_strided_ as as_strided_, as_strided_scatter as as_strided_scatter,
    fill_diagonal_ as fill_diagonal_, slice_inverse as slice_inverse, t_ as t_,
)
from genesis.functions.methods.writing import (
    bernoulli_ as bernoulli_, cauchy_ as cauchy_, copy_ as copy_, exponential_ as exponential_, fill_ as fill_,
    geometric_ as geometric_, log_normal_ as log_normal_, masked_fill as masked_fill, masked_fill_ as masked_fill_,
    normal_ as normal_, random_ as random_, uniform_ as uniform_, zero_ as zero_,
)
from genesis.functions.ranges import combinations as combinations
from genesis.functions.selection import (
    argwhere as argwhere, index_add as index_add, index_copy as index_copy, index_fill as index_fill, index_put as index_put,
    masked_select as masked_select, nonzero_static as nonzero_static, put as put, take as take, unique as unique,
    where as where,
)
from genesis.functions.splitting import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, broadcast_tensors as broadcast_tensors,
    chunk as chunk, dsplit as dsplit, hsplit as hsplit, split as split, split_with_sizes as split_with_sizes,
    tensor_split as tensor_split, unbind as unbind, vsplit as vsplit,
)
from genesis.ir.annotations import Extents
from genesis.ir.dtypes import DType
from genesis.linalg import matrix_power as matrix_power
from genesis.nn.flow import affine_grid as affine_grid
from genesis.nn.fractional_pooling import (
    fractional_max_pool2d as fractional_max_pool2d, fractional_max_pool3d as fractional_max_pool3d,
)
from genesis.nn.functional import (
    batch_norm as batch_norm, instance_norm as instance_norm, pdist as pdist,
    triplet_margin_with_distance_loss as triplet_margin_with_distance_loss,
)
from genesis.nn.grouped import conv_tbc as conv_tbc, grouped_mm as grouped_mm
from genesis.nn.multi_head import (
    multi_head_attention_forward as multi_head_attention_forward, scaled_dot_product_attention as scaled_dot_product_attention,
)
from genesis.nn.native import (
    native_batch_norm as native_batch_norm, native_group_norm as native_group_norm, native_layer_norm as native_layer_norm,
)
from genesis.nn.noise import gumbel_softmax as gumbel_softmax, rrelu_ as rrelu_
from genesis.nn.sequences import ctc_loss as ctc_loss, linear_cross_entropy as linear_cross_entropy
from genesis.nn.tables import embedding as embedding, embedding_bag as embedding_bag, one_hot as one_hot
from genesis.nn.unpooling import max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d, max_unpool3d as max_unpool3d
from genesis.ops.registry import (
    OPERATIONS as OPERATIONS, Operation as Operation, PRIMITIVES as PRIMITIVES, Primitive as Primitive,
)
from genesis.sparse.methods import (
    resize_as_sparse_ as resize_as_sparse_, sparse_resize_ as sparse_resize_,
    sparse_resize_and_clear_ as sparse_resize_and_clear_,
)
from genesis.tensor.handle import Operand, Tensor
from genesis.tensor.methods import (
    Cholesky, Eigen, Extrema, Extremum, Factored, FactoredInfo, Indefinite, IndefiniteInfo, Inverse, PLU, Parts, QR, Reflected,
    SignAndLog, Solved, Sorted, Transposed, Triangular,
)

def abs(input: Tensor) -> Tensor:
    """As `numpy.absolute`."""
def abs_(input: Tensor) -> Tensor:
    """`abs`, in place."""
def absolute(input: Tensor) -> Tensor:
    """As `numpy.absolute`."""
def absolute_(input: Tensor) -> Tensor:
    """`abs`, in place."""
def acos(input: Tensor) -> Tensor:
    """As `numpy.arccos`."""
def acos_(input: Tensor) -> Tensor:
    """`acos`, in place."""
def acosh(input: Tensor) -> Tensor:
    """As `numpy.arccosh`."""
def acosh_(input: Tensor) -> Tensor:
    """`acosh`, in place."""
def adaptive_avg_pool1d(input: Tensor, output_size: Int | Sequence[Int] | None) -> Tensor:
    """The means of `output_size` parts, as equal as can be, of the last axis; None keeps an extent."""
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
    """The greatest elements of `output_size` parts, as equal as can be, of the last axis."""
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
def add(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`input + alpha * other`."""
def add_(input: Tensor, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`add`, in place."""
def addbmm(input: Operand, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """beta * input + alpha * the sum of bmm(batch1, batch2) over the batch."""
def addbmm_(input: Tensor, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """`addbmm`, in place."""
def addcdiv(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """`input + value * tensor1 / tensor2`. Raises TypeError for integers."""
def addcdiv_(input: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """`addcdiv`, in place."""
def addcmul(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """`input + value * tensor1 * tensor2`."""
def addcmul_(input: Tensor, tensor1: Operand, tensor2: Operand, *, value: Operand = 1) -> Tensor:
    """`addcmul`, in place."""
def addmm(input: Operand, mat1: Operand, mat2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """beta * input + alpha * mat1 @ mat2, for matrices."""
def addmm_(input: Tensor, mat1: Operand, mat2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """`addmm`, in place."""
def addmv(input: Operand, mat: Operand, vec: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """beta * input + alpha * mat @ vec, for a matrix and a vector."""
def addmv_(input: Tensor, mat: Operand, vec: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """`addmv`, in place."""
def addr(input: Operand, vec1: Operand, vec2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""
def addr_(input: Tensor, vec1: Operand, vec2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """`addr`, in place."""
def airy_ai(input: Tensor) -> Tensor:
    """Airy's function Ai: the solution of y'' = x y that vanishes at infinity."""
def all(input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
    """Whether all elements over `dim` are true."""
def alpha_dropout(input: Tensor, p: Float = 0.5, training: Bool = False) -> Tensor:
    """`input` with each element set to SELU's minimum with probability `p`; mean 0 and variance 1 are kept."""
def amax(input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
    """The greatest element over `dim` (all axes, if None); NaN wins."""
def amin(input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
    """The least element over `dim` (all axes, if None); NaN wins."""
def aminmax(input: Tensor, *, dim: Int | None = None, keepdim: Bool = False) -> Extrema:
    """(min, max) over `dim`, or all elements; NaN wins."""
def angle(input: Tensor) -> Tensor:
    """The angle of complex numbers, in [-pi, pi]; for real ones 0, pi where x is negative, NaN for NaN."""
def any(input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False) -> Tensor:
    """Whether any element over `dim` is true."""
def arccos(input: Tensor) -> Tensor:
    """As `numpy.arccos`."""
def arccos_(input: Tensor) -> Tensor:
    """`acos`, in place."""
def arccosh(input: Tensor) -> Tensor:
    """As `numpy.arccosh`."""
def arccosh_(input: Tensor) -> Tensor:
    """`acosh`, in place."""
def arcsin(input: Tensor) -> Tensor:
    """As `numpy.arcsin`."""
def arcsin_(input: Tensor) -> Tensor:
    """`asin`, in place."""
def arcsinh(input: Tensor) -> Tensor:
    """As `numpy.arcsinh`."""
def arcsinh_(input: Tensor) -> Tensor:
    """`asinh`, in place."""
def arctan(input: Tensor) -> Tensor:
    """As `numpy.arctan`."""
def arctan2(input: Operand, other: Operand) -> Tensor:
    """As `numpy.arctan2`."""
def arctan2_(input: Tensor, other: Operand) -> Tensor:
    """`atan2`, in place."""
def arctan_(input: Tensor) -> Tensor:
    """`atan`, in place."""
def arctanh(input: Tensor) -> Tensor:
    """As `numpy.arctanh`."""
def arctanh_(input: Tensor) -> Tensor:
    """`atanh`, in place."""
def argmax(input: Tensor, dim: Int | None = None, keepdim: Bool = False) -> Tensor:
    """The position of the first greatest element along `dim`, int64; NaN wins."""
def argmin(input: Tensor, dim: Int | None = None, keepdim: Bool = False) -> Tensor:
    """The position of the first least element along `dim`, int64; NaN wins."""
def argsort(input: Tensor, dim: Int = -1, descending: Bool = False, stable: Bool = False) -> Tensor:
    """The indices that sort along `dim`. Equal elements keep their order; NaN is the greatest."""
def as_strided_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`as_strided`, in memory of its own."""
def asin(input: Tensor) -> Tensor:
    """As `numpy.arcsin`."""
def asin_(input: Tensor) -> Tensor:
    """`asin`, in place."""
def asinh(input: Tensor) -> Tensor:
    """As `numpy.arcsinh`."""
def asinh_(input: Tensor) -> Tensor:
    """`asinh`, in place."""
def atan(input: Tensor) -> Tensor:
    """As `numpy.arctan`."""
def atan2(input: Operand, other: Operand) -> Tensor:
    """As `numpy.arctan2`."""
def atan2_(input: Tensor, other: Operand) -> Tensor:
    """`atan2`, in place."""
def atan_(input: Tensor) -> Tensor:
    """`atan`, in place."""
def atanh(input: Tensor) -> Tensor:
    """As `numpy.arctanh`."""
def atanh_(input: Tensor) -> Tensor:
    """`atanh`, in place."""
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
def baddbmm(input: Operand, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2)."""
def baddbmm_(input: Tensor, batch1: Operand, batch2: Operand, *, beta: Float = 1, alpha: Float = 1) -> Tensor:
    """`baddbmm`, in place."""
def bessel_j0(input: Tensor) -> Tensor:
    """The Bessel function J0."""
def bessel_j1(input: Tensor) -> Tensor:
    """The Bessel function J1."""
def bessel_y0(input: Tensor) -> Tensor:
    """The Bessel function Y0."""
def bessel_y1(input: Tensor) -> Tensor:
    """The Bessel function Y1."""
def bilinear(input1: Operand, input2: Operand, weight: Operand, bias: Operand | None = None) -> Tensor:
    """input1 @ weight[k] @ input2 + bias[k]: (.., a), (.., b) and `weight` (out, a, b) -> (.., out)."""
def binary_cross_entropy(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """-(t * log(x) + (1 - t) * log(1 - x)) for probabilities x; logarithms are clamped at -100."""
def binary_cross_entropy_with_logits(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean', pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of sigmoid(x), without overflow; `pos_weight` scales the first term."""
def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """As `numpy.bitwise_and`."""
def bitwise_and_(input: Tensor, other: Operand) -> Tensor:
    """`bitwise_and`, in place."""
def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """As `numpy.left_shift`."""
def bitwise_left_shift_(input: Tensor, other: Operand) -> Tensor:
    """`bitwise_left_shift`, in place."""
def bitwise_not(input: Tensor) -> Tensor:
    """As `numpy.invert`."""
def bitwise_not_(input: Tensor) -> Tensor:
    """`bitwise_not`, in place."""
def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """As `numpy.bitwise_or`."""
def bitwise_or_(input: Tensor, other: Operand) -> Tensor:
    """`bitwise_or`, in place."""
def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """As `numpy.right_shift`."""
def bitwise_right_shift_(input: Tensor, other: Operand) -> Tensor:
    """`bitwise_right_shift`, in place."""
def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """As `numpy.bitwise_xor`."""
def bitwise_xor_(input: Tensor, other: Operand) -> Tensor:
    """`bitwise_xor`, in place."""
def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal, and zeros elsewhere; a vector is a row."""
def bmm(input: Operand, mat2: Operand) -> Tensor:
    """The products of matrices pair by pair, (b, m, k) and (b, k, n)."""
def bucketize(input: Operand, boundaries: Operand, *, out_int32: Bool = False, right: Bool = False) -> Tensor:
    """The bucket between ascending `boundaries` (n,) of each element; with `right`, boundaries belong to the next bucket."""
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All rows with an element of each vector; of one vector, itself."""
def cat(tensors: Sequence[Tensor], dim: Int = 0) -> Tensor:
    """The tensors one after the other along `dim`."""
def cdist(x1: Operand, x2: Operand, p: Float = 2.0, compute_mode: str = 'use_mm_for_euclid_dist_if_necessary') -> Tensor:
    """The p-norms of the differences of all rows of `x1` (.., m, k) and `x2` (.., n, k): (.., m, n)."""
def ceil(input: Tensor) -> Tensor:
    """As `numpy.ceil`."""
def ceil_(input: Tensor) -> Tensor:
    """`ceil`, in place."""
def celu(input: Tensor, alpha: Float = 1.0) -> Tensor:
    """x where positive, alpha * (exp(x / alpha) - 1) elsewhere (Barron, 2017)."""
def celu_(input: Tensor, alpha: Float = 1.0) -> Tensor:
    """`celu`, in place."""
def channel_shuffle(input: Tensor, groups: Int) -> Tensor:
    """Interleaves the channels (axis 1) of the groups: the first of each, then the second of each (Zhang et al., 2018)."""
def chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's T: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's U: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's V: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Chebyshev's W: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def cholesky(A: Tensor, upper: Bool = False) -> Tensor:
    """The lower triangular L with L @ L.mH = `A`, Hermitian and positive definite (.., n, n); with `upper`, its adjoint."""
def cholesky_ex(A: Tensor, *, upper: Bool = False, check_errors: Bool = False) -> Cholesky:
    """(L, info) as `cholesky`, where a matrix may fail: `info` (..), int32, is 0 for one that is positive definite."""
def cholesky_inverse(L: Tensor, upper: Bool = False) -> Tensor:
    """The inverses of the matrices (.., n, n) whose lower factor `L`, or upper one, `cholesky` gives."""
def cholesky_solve(B: Operand, L: Operand, upper: Bool = False) -> Tensor:
    """The X with `L` @ L.T @ X = `B`, for a factor `L` that `cholesky` gives (with `upper`, L.T @ L)."""
def clamp(input: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """`input` clamped to [min, max]; the gradient passes inside, bounds included."""
def clamp_(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """`clamp`, in place."""
def clamp_max(input: Operand, max: Operand) -> Tensor:
    """`input`, and `max` where that is less."""
def clamp_max_(input: Tensor, max: Operand) -> Tensor:
    """`clamp_max`, in place."""
def clamp_min(input: Operand, min: Operand) -> Tensor:
    """`input`, and `min` where that is greater."""
def clamp_min_(input: Tensor, min: Operand) -> Tensor:
    """`clamp_min`, in place."""
def clip(input: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """`input` clamped to [min, max]; the gradient passes inside, bounds included."""
def clip_(input: Tensor, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """`clamp`, in place."""
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side; a vector is a column."""
def complex(real: Operand, imag: Operand) -> Tensor:
    """Complex numbers from real and imaginary parts: complex32 of float16, complex64 of float32, complex128 of float64."""
def concat(tensors: Sequence[Tensor], dim: Int = 0) -> Tensor:
    """The tensors one after the other along `dim`."""
def concatenate(tensors: Sequence[Tensor], dim: Int = 0) -> Tensor:
    """The tensors one after the other along `dim`."""
def constant_pad_nd(input: Tensor, pad: Sequence[Int], value: Float = 0) -> Tensor:
    """`pad` with a constant."""
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
def copysign(input: Operand, other: Operand) -> Tensor:
    """As `numpy.copysign`."""
def copysign_(input: Tensor, other: Operand) -> Tensor:
    """`copysign`, in place."""
def corrcoef(input: Tensor) -> Tensor:
    """The correlation coefficients of the rows of `input` (variables, observations), within [-1, 1]."""
def cos(input: Tensor) -> Tensor:
    """As `numpy.cos`."""
def cos_(input: Tensor) -> Tensor:
    """`cos`, in place."""
def cosh(input: Tensor) -> Tensor:
    """As `numpy.cosh`."""
def cosh_(input: Tensor) -> Tensor:
    """`cosh`, in place."""
def cosine_embedding_loss(
    input1: Operand, input2: Operand, target: Operand, margin: Float = 0.0, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """1 - cos(x1, x2) where t is 1, max(0, cos(x1, x2) - margin) where it is -1, along the last axis."""
def cosine_similarity(x1: Operand, x2: Operand, dim: Int = 1, eps: Float = 1e-08) -> Tensor:
    """x1 . x2 / (|x1| |x2|) along `dim`, where norms are at least `eps`."""
def count_nonzero(input: Tensor, dim: Int | Sequence[Int] | None = None) -> Tensor:
    """The number of nonzero elements over `dim`."""
def cov(input: Operand, *, correction: Int = 1, fweights: Operand | None = None, aweights: Operand | None = None) -> Tensor:
    """The covariances of the rows of `input` (variables, observations), or the variance of a vector."""
def cross(input: Operand, other: Operand, dim: Int | None = None) -> Tensor:
    """The cross products of vectors of three elements along `dim` (the first axis with three, if None)."""
def cross_entropy(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None, ignore_index: Int = -100,
    reduce: Bool | None = None, reduction: str = 'mean', label_smoothing: Float = 0.0,
) -> Tensor:
    """-log softmax(input)[target] with classes on axis 1 (axis 0 of a 1-d input)."""
def cummax(input: Tensor, dim: Int) -> Sorted:
    """(values, indices) of the greatest element up to each index of `dim`: of equal ones the last; NaN wins."""
def cummin(input: Tensor, dim: Int) -> Sorted:
    """(values, indices) of the least element up to each index of `dim`: of equal ones the last; NaN wins."""
def cumprod(input: Tensor, dim: Int, *, dtype: DType | None = None) -> Tensor:
    """The products of the elements up to each one along `dim`. Integers and bools multiply to int64."""
def cumprod_(input: Tensor, dim: Int, *, dtype: DType | None = None) -> Tensor:
    """`cumprod`, in place."""
def cumsum(input: Tensor, dim: Int, *, dtype: DType | None = None) -> Tensor:
    """The sums of the elements up to each one along `dim`. Integers and bools sum to int64."""
def cumsum_(input: Tensor, dim: Int, *, dtype: DType | None = None) -> Tensor:
    """`cumsum`, in place."""
def cumulative_trapezoid(y: Operand, x: Operand | None = None, *, dx: Float = 1, dim: Int = -1) -> Tensor:
    """The integrals of `y` up to each point along `dim` but the first, as `trapezoid`."""
def deg2rad(input: Tensor) -> Tensor:
    """As `numpy.deg2rad`."""
def deg2rad_(input: Tensor) -> Tensor:
    """`deg2rad`, in place."""
def det(A: Tensor) -> Tensor:
    """The determinants of matrices (.., n, n)."""
def detach(tensor: Tensor) -> Tensor:
    """A tensor that shares `tensor`'s storage and has no derivation."""
def detach_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`detach`, in memory of its own."""
def diag(input: Tensor, diagonal: Int = 0) -> Tensor:
    """The matrix with the vector `input` as its diagonal, or the diagonal of a matrix."""
def diag_embed(input: Tensor, offset: Int = 0, dim1: Int = -2, dim2: Int = -1) -> Tensor:
    """Matrices, on the axes `dim1` and `dim2`, with the last axis of `input` as their diagonals and zeros elsewhere."""
def diagflat(input: Tensor, offset: Int = 0) -> Tensor:
    """The matrix with all elements of `input`, row by row, as its diagonal."""
def diagonal(input: Tensor, offset: Int = 0, dim1: Int = 0, dim2: Int = 1) -> Tensor:
    """The diagonal `offset` above the main one, as the last axis."""
def diagonal_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`diagonal`, in memory of its own."""
def diagonal_scatter(input: Operand, src: Operand, offset: Int = 0, dim1: Int = 0, dim2: Int = 1) -> Tensor:
    """`input` with `src` on a diagonal, as `diagonal` takes it."""
def diff(
    input: Operand, n: Int = 1, dim: Int = -1, prepend: Operand | None = None, append: Operand | None = None,
) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times; `prepend` and `append` are joined to `input` first."""
def digamma(input: Tensor) -> Tensor:
    """The derivative of `lgamma`."""
def digamma_(input: Tensor) -> Tensor:
    """`digamma`, in place."""
def dist(input: Operand, other: Operand, p: Float = 2) -> Tensor:
    """The p-norm of input - other, taken as one vector."""
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`input / other`, also for integers. `rounding_mode` "trunc" rounds towards zero, as C does, "floor" down, as .."""
def div_(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`div`, in place."""
def divide(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`input / other`, also for integers. `rounding_mode` "trunc" rounds towards zero, as C does, "floor" down, as .."""
def divide_(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`div`, in place."""
def dot(input: Operand, tensor: Operand) -> Tensor:
    """The sum of the products of two vectors."""
def dropout(input: Tensor, p: Float = 0.5, training: Bool = True) -> Tensor:
    """`input` with each element zeroed with probability `p` and the others scaled by 1/(1-p); `input` if not training."""
def dropout1d(input: Tensor, p: Float = 0.5, training: Bool = True) -> Tensor:
    """`dropout` of whole channels of (n, c, l) or (c, l)."""
def dropout2d(input: Tensor, p: Float = 0.5, training: Bool = True) -> Tensor:
    """`dropout` of whole channels of (n, c, h, w) or (n, c, ..) of any rank, as in PyTorch."""
def dropout3d(input: Tensor, p: Float = 0.5, training: Bool = True) -> Tensor:
    """`dropout` of whole channels of (n, c, d, h, w) or (c, ..) of any other rank."""
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors one behind the other, along axis 2."""
def eigh(A: Tensor, UPLO: str = 'L') -> Eigen:
    """(eigenvalues, eigenvectors) of symmetric matrices (.., n, n), in ascending order; vectors are columns."""
def eigvalsh(A: Tensor, UPLO: str = 'L') -> Tensor:
    """The eigenvalues of symmetric matrices (.., n, n), ascending, of which only the triangle `UPLO` is read."""
def einsum(equation: Any, *operands: Any) -> Tensor:
    """The products of the operands' elements, an axis for each letter, summed over the letters that are not in the result."""
def elu(input: Tensor, alpha: Float = 1.0) -> Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere (Clevert, Unterthiner and Hochreiter, 2016)."""
def entr(input: Tensor) -> Tensor:
    """-x log(x) where x is positive, 0 at 0, -inf below."""
def eq(input: Operand, other: Operand) -> Tensor:
    """As `numpy.equal`."""
def eq_(input: Tensor, other: Operand) -> Tensor:
    """`eq`, in place."""
def erf(input: Tensor) -> Tensor:
    """2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
def erf_(input: Tensor) -> Tensor:
    """`erf`, in place."""
def erfc(input: Tensor) -> Tensor:
    """1 - erf(x), without cancellation."""
def erfc_(input: Tensor) -> Tensor:
    """`erfc`, in place."""
def erfcx(input: Tensor) -> Tensor:
    """exp(x^2) erfc(x)."""
def erfinv(input: Tensor) -> Tensor:
    """The inverse of `erf`."""
def erfinv_(input: Tensor) -> Tensor:
    """`erfinv`, in place."""
def exp(input: Tensor) -> Tensor:
    """As `numpy.exp`."""
def exp2(input: Tensor) -> Tensor:
    """As `numpy.exp2`."""
def exp2_(input: Tensor) -> Tensor:
    """`exp2`, in place."""
def exp_(input: Tensor) -> Tensor:
    """`exp`, in place."""
def expand(input: Tensor, *shape: Extents) -> Tensor:
    """Axes of extent 1 (and new leading ones) repeated with stride 0; -1 keeps an extent."""
def expand_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`expand`, in memory of its own."""
def expm1(input: Tensor) -> Tensor:
    """As `numpy.expm1`."""
def expm1_(input: Tensor) -> Tensor:
    """`expm1`, in place."""
def feature_alpha_dropout(input: Tensor, p: Float = 0.5, training: Bool = False) -> Tensor:
    """`alpha_dropout` of whole channels, which are axis 1 of (n, c, ..)."""
def fill(input: Operand, value: Operand) -> Tensor:
    """`value`, a number or a 0-d tensor, everywhere, with the shape and dtype of `input`, whose gradient is zeros."""
def fix(input: Tensor) -> Tensor:
    """As `numpy.trunc`."""
def fix_(input: Tensor) -> Tensor:
    """`trunc`, in place."""
def flatten(input: Tensor, start_dim: Int = 0, end_dim: Int = -1) -> Tensor:
    """The axes from `start_dim` to `end_dim` merged into one."""
def flip(input: Tensor, *dims: Extents) -> Tensor:
    """The axes `dims` walked backwards."""
def fliplr(input: Tensor) -> Tensor:
    """Axis 1 walked backwards."""
def flipud(input: Tensor) -> Tensor:
    """Axis 0 walked backwards."""
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """`input ** exponent` in float64, of complex numbers in complex128."""
def floor(input: Tensor) -> Tensor:
    """As `numpy.floor`."""
def floor_(input: Tensor) -> Tensor:
    """`floor`, in place."""
def floor_divide(input: Operand, other: Operand) -> Tensor:
    """As `numpy.floor_divide`."""
def floor_divide_(input: Tensor, other: Operand) -> Tensor:
    """`floor_divide`, in place."""
def fmax(input: Operand, other: Operand) -> Tensor:
    """As `numpy.fmax`."""
def fmin(input: Operand, other: Operand) -> Tensor:
    """As `numpy.fmin`."""
def fmod(input: Operand, other: Operand) -> Tensor:
    """As `numpy.fmod`."""
def fmod_(input: Tensor, other: Operand) -> Tensor:
    """`fmod`, in place."""
def fold(
    input: Tensor, output_size: Extents, kernel_size: Extents, dilation: Extents = 1, padding: Extents = 0, stride: Extents = 1,
) -> Tensor:
    """Sums columns back into images at their windows' positions: the transpose of `unfold`."""
def frac(input: Tensor) -> Tensor:
    """The part behind the point, `x - trunc(x)`."""
def frac_(input: Tensor) -> Tensor:
    """`frac`, in place."""
def frexp(input: Tensor) -> Parts:
    """(mantissa, exponent), int32, with input = mantissa * 2^exponent; |mantissa| is in [0.5, 1) or 0."""
def gather(input: Operand, dim: Int, index: Operand, *, sparse_grad: Bool = False) -> Tensor:
    """`out[i][j][k] = input[index[i][j][k]][j][k]` for dim 0, and so on for others."""
def gaussian_nll_loss(
    input: Operand, target: Operand, var: Operand, full: Bool = False, eps: Float = 1e-06, reduction: str = 'mean',
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, for a normal distribution with mean `input` and variance `var`."""
def gcd(input: Operand, other: Operand) -> Tensor:
    """The greatest number that divides both; 0 of 0 and 0."""
def gcd_(input: Tensor, other: Operand) -> Tensor:
    """`gcd`, in place."""
def ge(input: Operand, other: Operand) -> Tensor:
    """As `numpy.greater_equal`."""
def ge_(input: Tensor, other: Operand) -> Tensor:
    """`ge`, in place."""
def gelu(input: Tensor, approximate: str = 'none') -> Tensor:
    """x * Phi(x) (Hendrycks and Gimpel, 2016); `approximate="tanh"` takes their tanh formula."""
def geqrf(input: Tensor) -> Reflected:
    """(a, tau) of matrices (.., m, n): R of the QR decomposition is on and above the diagonal of `a`, the reflections .."""
def ger(input: Operand, vec2: Operand) -> Tensor:
    """All products of the elements of two vectors, (m,) and (n,) -> (m, n)."""
def glu(input: Tensor, dim: Int = -1) -> Tensor:
    """a * sigmoid(b) for the halves a and b along `dim` (Dauphin et al., 2017). Raises ValueError for an odd extent."""
def greater(input: Operand, other: Operand) -> Tensor:
    """As `numpy.greater`."""
def greater_(input: Tensor, other: Operand) -> Tensor:
    """`gt`, in place."""
def greater_equal(input: Operand, other: Operand) -> Tensor:
    """As `numpy.greater_equal`."""
def greater_equal_(input: Tensor, other: Operand) -> Tensor:
    """`ge`, in place."""
def grid_sample(
    input: Operand, grid: Operand, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: Bool | None = None,
) -> Tensor:
    """`input` (n, c, h, w) sampled at the positions `grid` (n, i, j, 2): (n, c, i, j); for volumes, positions are triples."""
def grid_sampler_2d(input: Tensor, grid: Tensor, interpolation_mode: Int, padding_mode: Int, align_corners: Bool) -> Tensor:
    """`grid_sample`, with mode and padding by number."""
def grid_sampler_3d(input: Tensor, grid: Tensor, interpolation_mode: Int, padding_mode: Int, align_corners: Bool) -> Tensor:
    """`grid_sample`, with mode and padding by number."""
def group_norm(
    input: Tensor, num_groups: Int, weight: Tensor | None = None, bias: Tensor | None = None, eps: Float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) over groups of channels, then `weight` and `bias` for each channel (Wu and He, 2018)."""
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Tensor:
    """h after one step: gates r, z, n of input (.., in) and h (.., out); h = (1 - z) * n + z * h."""
def gt(input: Operand, other: Operand) -> Tensor:
    """As `numpy.greater`."""
def gt_(input: Tensor, other: Operand) -> Tensor:
    """`gt`, in place."""
def hardshrink(input: Tensor, lambd: Float = 0.5) -> Tensor:
    """x, but 0 within [-lambd, lambd]."""
def hardsigmoid(input: Tensor) -> Tensor:
    """(x + 3) / 6 held within [0, 1]."""
def hardswish(input: Tensor) -> Tensor:
    """x * hardsigmoid(x) (Howard et al., 2019)."""
def hardtanh(input: Tensor, min_val: Float = -1.0, max_val: Float = 1.0) -> Tensor:
    """x clamped to [min_val, max_val]; no gradient at the bounds. Raises ValueError unless min_val is below max_val."""
def heaviside(input: Operand, values: Operand) -> Tensor:
    """1 where `input` is positive, `values` where it is 0, else 0."""
def heaviside_(input: Tensor, values: Operand) -> Tensor:
    """`heaviside`, in place."""
def hermite_polynomial_h(input: Operand, n: Operand) -> Tensor:
    """Hermite's H, of physics: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def hermite_polynomial_he(input: Operand, n: Operand) -> Tensor:
    """Hermite's He, of probability: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def hinge_embedding_loss(
    input: Operand, target: Operand, margin: Float = 1.0, size_average: Bool | None = None, reduce: Bool | None = None,
    reduction: str = 'mean',
) -> Tensor:
    """x where t is 1, max(0, margin - x) where it is -1."""
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side: vectors one after the other, others along axis 1."""
def huber_loss(
    input: Operand, target: Operand, reduction: str = 'mean', delta: Float = 1.0, weight: Tensor | None = None,
) -> Tensor:
    """d^2 / 2 where |d| < delta, delta * (|d| - delta / 2) elsewhere, of d = input - target (Huber, 1964)."""
def hypot(input: Operand, other: Operand) -> Tensor:
    """As `numpy.hypot`."""
def hypot_(input: Tensor, other: Operand) -> Tensor:
    """`hypot`, in place."""
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function I0."""
def i0_(input: Tensor) -> Tensor:
    """`i0`, in place."""
def i0e(input: Tensor) -> Tensor:
    """exp(-|x|) I0(x)."""
def i1(input: Tensor) -> Tensor:
    """The modified Bessel function I1."""
def i1e(input: Tensor) -> Tensor:
    """exp(-|x|) I1(x)."""
def igamma(input: Operand, other: Operand) -> Tensor:
    """The regularized lower incomplete gamma function."""
def igamma_(input: Tensor, other: Operand) -> Tensor:
    """`igamma`, in place."""
def igammac(input: Operand, other: Operand) -> Tensor:
    """The regularized upper incomplete gamma function."""
def igammac_(input: Tensor, other: Operand) -> Tensor:
    """`igammac`, in place."""
def imag(input: Tensor) -> Tensor:
    """The imaginary parts. Raises TypeError for a real tensor."""
def index_add_(input: Tensor, dim: Int, index: Tensor, source: Tensor, *, alpha: Float = 1) -> Tensor:
    """`index_add`, in place."""
def index_copy_(input: Tensor, dim: Int, index: Tensor, source: Tensor) -> Tensor:
    """`index_copy`, in place."""
def index_fill_(input: Tensor, dim: Int, index: Tensor, value: Float) -> Tensor:
    """`index_fill`, in place."""
def index_put_(input: Tensor, indices: Sequence[Tensor], values: Operand, accumulate: Bool = False) -> Tensor:
    """`index_put`, in place."""
def index_reduce(
    input: Operand, dim: Int, index: Operand, source: Operand, reduce: str, *, include_self: Bool = True,
) -> Tensor:
    """`input` with the slices of `source` folded into those at the positions `index` (1-d) along `dim`."""
def index_reduce_(
    input: Tensor, dim: Int, index: Operand, source: Operand, reduce: str, *, include_self: Bool = True,
) -> Tensor:
    """`index_reduce`, in place."""
def index_select(input: Operand, dim: Int, index: Operand) -> Tensor:
    """The slices of `input` at the positions `index` (1-d) along `dim`."""
def inner(input: Operand, other: Operand) -> Tensor:
    """The sums of products along the last axes of both: (.., k) and (.., k) -> (.., ..)."""
def interpolate(
    input: Tensor, size: Int | Sequence[Int] | None = None, scale_factor: Float | Sequence[Float] | None = None,
    mode: str = 'nearest', align_corners: Bool | None = None, recompute_scale_factor: Bool | None = None,
    antialias: Bool = False,
) -> Tensor:
    """`input` (n, c, ..) at another size: `size`, or `scale_factor` times its own, for all axes after c or for each."""
def inv(A: Tensor) -> Tensor:
    """The inverses of matrices (.., n, n). Raises LinAlgError, when evaluated, for a singular one."""
def inv_ex(A: Tensor, *, check_errors: Bool = False) -> Inverse:
    """(inverse, info) as `inv`; a singular matrix sets `info`, as in `lu_factor_ex`, and gives infinities."""
def inverse(A: Tensor) -> Tensor:
    """The inverses of matrices (.., n, n). Raises LinAlgError, when evaluated, for a singular one."""
def isclose(input: Operand, other: Operand, rtol: Float = 1e-05, atol: Float = 1e-08, equal_nan: Bool = False) -> Tensor:
    """Whether |input - other| <= atol + rtol * |other|; infinities are close to themselves, NaN only with `equal_nan`."""
def isfinite(input: Tensor) -> Tensor:
    """As `numpy.isfinite`."""
def isin(elements: Operand, test_elements: Operand, *, assume_unique: Bool = False, invert: Bool = False) -> Tensor:
    """Whether each element is among `test_elements`."""
def isinf(input: Tensor) -> Tensor:
    """As `numpy.isinf`."""
def isnan(input: Tensor) -> Tensor:
    """As `numpy.isnan`."""
def isneginf(input: Tensor) -> Tensor:
    """Whether x is -inf."""
def isposinf(input: Tensor) -> Tensor:
    """Whether x is inf."""
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0, as that of real numbers is."""
def istft(
    input: Tensor, n_fft: Int, hop_length: Int | None = None, win_length: Int | None = None, window: Tensor | None = None,
    center: Bool = True, normalized: Bool = False, onesided: Bool | None = None, length: Int | None = None,
    return_complex: Bool = False,
) -> Tensor:
    """The signal whose `stft`, with the same settings, is closest to `input`: summed windows over summed squared windows."""
def kl_div(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    log_target: Bool = False,
) -> Tensor:
    """target * (log(target) - input) for log-probabilities `input`; with `log_target` the target has logarithms too."""
def kron(input: Operand, other: Operand) -> Tensor:
    """The Kronecker product: each element of `input` is replaced by its product with all of `other`."""
def kthvalue(input: Tensor, k: Int, dim: Int = -1, keepdim: Bool = False) -> Sorted:
    """(value, index) of the `k`-th least element along `dim`, counted from 1."""
def l1_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, times `weight`; see `mse_loss`."""
def laguerre_polynomial_l(input: Operand, n: Operand) -> Tensor:
    """Laguerre's L: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def layer_norm(
    input: Tensor, normalized_shape: tuple[Int, ...], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: Float = 1e-05,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) over the last axes, then `weight` and `bias` (Ba, Kiros and Hinton, 2016)."""
def lcm(input: Operand, other: Operand) -> Tensor:
    """The least number, not negative, that both divide."""
def lcm_(input: Tensor, other: Operand) -> Tensor:
    """`lcm`, in place."""
def ldexp(input: Operand, other: Operand) -> Tensor:
    """`input * 2 ** other`; of integers `other`, where `2 ** other` is no number of the dtype too."""
def ldexp_(input: Tensor, other: Operand) -> Tensor:
    """`ldexp`, in place."""
def ldl_factor(A: Tensor, *, hermitian: Bool = False) -> Indefinite:
    """(LD, pivots) as `ldl_factor_ex`; raises LinAlgError, when evaluated, if a block of D is zero."""
def ldl_factor_ex(A: Tensor, *, hermitian: Bool = False, check_errors: Bool = False) -> IndefiniteInfo:
    """(LD, pivots, info) of symmetric matrices (.., n, n), or Hermitian ones. Only the lower triangle is read. No .."""
def ldl_solve(LD: Operand, pivots: Tensor, B: Operand, *, hermitian: Bool = False) -> Tensor:
    """The X with A @ X = `B` (.., n, k), for the A that `ldl_factor`, with the same `hermitian`, factored into `LD` and .."""
def le(input: Operand, other: Operand) -> Tensor:
    """As `numpy.less_equal`."""
def le_(input: Tensor, other: Operand) -> Tensor:
    """`le`, in place."""
def leaky_relu(input: Tensor, negative_slope: Float = 0.01) -> Tensor:
    """x where positive, `negative_slope` * x elsewhere."""
def legendre_polynomial_p(input: Operand, n: Operand) -> Tensor:
    """Legendre's P: the polynomials of degree `n`, rounded towards 0; 0 of a negative degree."""
def lerp(input: Operand, end: Operand, weight: Operand) -> Tensor:
    """`input + weight * (end - input)`, computed from the nearer end: at weight 1 it is exactly `end`."""
def lerp_(input: Tensor, end: Operand, weight: Operand) -> Tensor:
    """`lerp`, in place."""
def less(input: Operand, other: Operand) -> Tensor:
    """As `numpy.less`."""
def less_(input: Tensor, other: Operand) -> Tensor:
    """`lt`, in place."""
def less_equal(input: Operand, other: Operand) -> Tensor:
    """As `numpy.less_equal`."""
def less_equal_(input: Tensor, other: Operand) -> Tensor:
    """`le`, in place."""
def lgamma(input: Tensor) -> Tensor:
    """The logarithm of |gamma(x)|."""
def lgamma_(input: Tensor) -> Tensor:
    """`lgamma`, in place."""
def linear(input: Operand, weight: Operand, bias: Operand | None = None) -> Tensor:
    """`input @ weight.T + bias` for `input` (.., in), `weight` (out, in) and `bias` (out,)."""
def local_response_norm(input: Tensor, size: Int, alpha: Float = 0.0001, beta: Float = 0.75, k: Float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta (Krizhevsky, Sutskever and Hinton, 2012)."""
def log(input: Tensor) -> Tensor:
    """As `numpy.log`."""
def log10(input: Tensor) -> Tensor:
    """As `numpy.log10`."""
def log10_(input: Tensor) -> Tensor:
    """`log10`, in place."""
def log1p(input: Tensor) -> Tensor:
    """As `numpy.log1p`."""
def log1p_(input: Tensor) -> Tensor:
    """`log1p`, in place."""
def log2(input: Tensor) -> Tensor:
    """As `numpy.log2`."""
def log2_(input: Tensor) -> Tensor:
    """`log2`, in place."""
def log_(input: Tensor) -> Tensor:
    """`log`, in place."""
def log_ndtr(input: Tensor) -> Tensor:
    """log(ndtr(x))."""
def log_softmax(input: Tensor, dim: Int | None = None, dtype: DType | None = None) -> Tensor:
    """log(softmax(x)) along `dim`, without overflow."""
def logaddexp(input: Operand, other: Operand) -> Tensor:
    """log(exp(x) + exp(y)), which overflows nowhere; complex numbers too."""
def logaddexp2(input: Operand, other: Operand) -> Tensor:
    """As `numpy.logaddexp2`."""
def logcumsumexp(input: Tensor, dim: Int) -> Tensor:
    """The logarithms of the sums of exp(x) up to each index of `dim`, without overflow."""
def logdet(input: Tensor) -> Tensor:
    """The logarithms of the determinants of matrices (.., n, n): NaN where negative, unless they are complex."""
def logical_and(input: Operand, other: Operand) -> Tensor:
    """As `numpy.logical_and`."""
def logical_and_(input: Tensor, other: Operand) -> Tensor:
    """`logical_and`, in place."""
def logical_not(input: Tensor) -> Tensor:
    """As `numpy.logical_not`."""
def logical_not_(input: Tensor) -> Tensor:
    """`logical_not`, in place."""
def logical_or(input: Operand, other: Operand) -> Tensor:
    """As `numpy.logical_or`."""
def logical_or_(input: Tensor, other: Operand) -> Tensor:
    """`logical_or`, in place."""
def logical_xor(input: Operand, other: Operand) -> Tensor:
    """As `numpy.logical_xor`."""
def logical_xor_(input: Tensor, other: Operand) -> Tensor:
    """`logical_xor`, in place."""
def logit(input: Tensor, eps: Float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of `sigmoid`; with `eps`, x is clamped to [eps, 1 - eps]."""
def logit_(input: Tensor, eps: Float | None = None) -> Tensor:
    """`logit`, in place."""
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), without overflow."""
def logsumexp(input: Tensor, dim: Int | tuple[Int, ...], keepdim: Bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim`, without overflow; -inf for no elements."""
def lp_pool1d(
    input: Tensor, norm_type: Float, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, ceil_mode: Bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) of each window over the last axis."""
def lp_pool2d(
    input: Tensor, norm_type: Float, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, ceil_mode: Bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) of each window over the last 2 axes."""
def lp_pool3d(
    input: Tensor, norm_type: Float, kernel_size: Extents, stride: Int | Sequence[Int] | None = None, ceil_mode: Bool = False,
) -> Tensor:
    """(sum of x^p)^(1/p) of each window over the last 3 axes."""
def lstm_cell(
    input: Tensor, hx: tuple[Tensor, ...], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """(h, c) after one step: gates i, f, g, o of input (.., in) and h (.., out); c = f * c + i * g, h = o * tanh(c)."""
def lt(input: Operand, other: Operand) -> Tensor:
    """As `numpy.less`."""
def lt_(input: Tensor, other: Operand) -> Tensor:
    """`lt`, in place."""
@overload
def lu(A: Tensor, pivot: Bool = True, get_infos: Literal[False] = False) -> Factored: ...
@overload
def lu(A: Tensor, pivot: Bool = True, *, get_infos: Literal[True]) -> FactoredInfo:
    """As `lu_factor`, or as `lu_factor_ex` with `get_infos`."""
def lu_factor(A: Tensor, *, pivot: Bool = True) -> Factored:
    """(LU, pivots) as `lu_factor_ex`; raises LinAlgError, when evaluated, if the diagonal of U has a zero."""
def lu_factor_ex(A: Tensor, *, pivot: Bool = True, check_errors: Bool = False) -> FactoredInfo:
    """(LU, pivots, info) of matrices (.., m, n): both factors in one matrix, min(m, n) pivots, int32, counted from 1."""
def lu_solve(b: Operand, LU_data: Operand, LU_pivots: Tensor) -> Tensor:
    """The X with A @ X = `b` (.., n, k), for the A that `lu_factor` factored into `LU_data` and `LU_pivots`."""
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: Bool = True, unpack_pivots: Bool = True) -> PLU:
    """(P, L, U) of `lu_factor`'s result: (.., m, m), (.., m, k), (.., k, n), with k = min(m, n)."""
def margin_ranking_loss(
    input1: Operand, input2: Operand, target: Operand, margin: Float = 0.0, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """max(0, -t * (x1 - x2) + margin), for t of 1 or -1."""
def masked_scatter(input: Operand, mask: Operand, source: Operand) -> Tensor:
    """`input` with the elements of `source`, in order, where `mask` holds."""
def masked_scatter_(input: Tensor, mask: Operand, source: Operand) -> Tensor:
    """`masked_scatter`, in place."""
def matmul(input: Operand, other: Operand) -> Tensor:
    """The matrix product: vectors and matrices as NumPy's `@`, leading axes broadcast."""
def matrix_exp(A: Tensor) -> Tensor:
    """The exponentials of matrices (.., n, n): the sum of A^k / k!."""
def matrix_norm(
    A: Tensor, ord: Float | str = 'fro', dim: Sequence[Int] = (-2, -1), keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """The norms of the matrices on two axes: "fro", or the extreme sum of |x| over columns (1, -1) or rows (inf, -inf)."""
@overload
def max(input: Tensor, dim: None = None, keepdim: Bool = False) -> Tensor: ...
@overload
def max(input: Tensor, dim: Int | Tensor, keepdim: Bool = False) -> Extremum:
    """The greatest element; with `dim`, (values, indices) along it; with a tensor, elementwise."""
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
    """The greatest element of each window over the last axis; NaN wins."""
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
def maximum(input: Operand, other: Operand) -> Tensor:
    """As `numpy.maximum`."""
def mean(
    input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """The mean over `dim` (all axes, if None) of a floating tensor."""
@overload
def median(input: Tensor, dim: None = None, keepdim: Bool = False) -> Tensor: ...
@overload
def median(input: Tensor, dim: Int, keepdim: Bool = False) -> Sorted:
    """The lower of the middle elements; with `dim`, (values, indices) along it. NaN where there is one."""
@overload
def min(input: Tensor, dim: None = None, keepdim: Bool = False) -> Tensor: ...
@overload
def min(input: Tensor, dim: Int | Tensor, keepdim: Bool = False) -> Extremum:
    """The least element; with `dim`, (values, indices) along it; with a tensor, elementwise."""
def minimum(input: Operand, other: Operand) -> Tensor:
    """As `numpy.minimum`."""
def mish(input: Tensor) -> Tensor:
    """x * tanh(softplus(x)) (Misra, 2020)."""
def mm(input: Operand, mat2: Operand) -> Tensor:
    """The product of two matrices, (m, k) and (k, n)."""
def modified_bessel_i0(input: Tensor) -> Tensor:
    """As `i0`."""
def modified_bessel_i1(input: Tensor) -> Tensor:
    """As `i1`."""
def modified_bessel_k0(input: Tensor) -> Tensor:
    """The modified Bessel function K0."""
def modified_bessel_k1(input: Tensor) -> Tensor:
    """The modified Bessel function K1."""
def moveaxis(input: Tensor, source: Extents, destination: Extents) -> Tensor:
    """The axes `source` moved to the positions `destination`, the others in their order."""
def mse_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)^2, times `weight` of the same shape."""
def msort(input: Tensor) -> Tensor:
    """The elements in order along axis 0."""
def mul(input: Operand, other: Operand) -> Tensor:
    """As `numpy.multiply`."""
def mul_(input: Tensor, other: Operand) -> Tensor:
    """`mul`, in place."""
def multi_margin_loss(
    input: Operand, target: Operand, p: Int = 1, margin: Float = 1.0, weight: Tensor | None = None,
    size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """The mean over classes of max(0, margin - input[target] + input[class])^p, without the target's own."""
def multilabel_margin_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """The sum over the targets and all other classes of max(0, 1 - input[target] + input[class]), divided by the number .."""
def multilabel_soft_margin_loss(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """The mean over classes (the last axis) of the binary cross entropy of sigmoid(input), times `weight`."""
def multiply(input: Operand, other: Operand) -> Tensor:
    """As `numpy.multiply`."""
def multiply_(input: Tensor, other: Operand) -> Tensor:
    """`mul`, in place."""
def mv(input: Operand, vec: Operand) -> Tensor:
    """The product of a matrix (m, k) and a vector (k,)."""
def mvlgamma(input: Tensor, p: Int) -> Tensor:
    """The logarithm of the multivariate gamma function in `p` dimensions."""
def mvlgamma_(input: Tensor, p: Int) -> Tensor:
    """`mvlgamma`, in place."""
def nan_to_num(input: Tensor, nan: Float | None = None, posinf: Float | None = None, neginf: Float | None = None) -> Tensor:
    """`input` with `nan` (0 if None) for NaN, and `posinf` and `neginf` (the dtype's limits if None) for the infinities."""
def nan_to_num_(
    input: Tensor, nan: Float | None = None, posinf: Float | None = None, neginf: Float | None = None,
) -> Tensor:
    """`nan_to_num`, in place."""
def nanmean(
    input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """The mean over `dim` of what is not NaN."""
@overload
def nanmedian(input: Tensor, dim: None = None, keepdim: Bool = False) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: Int, keepdim: Bool = False) -> Sorted:
    """`median` of the elements that are not NaN; NaN if all are."""
def nanquantile(
    input: Operand, q: Operand, dim: Int | None = None, keepdim: Bool = False, *, interpolation: str = 'linear',
) -> Tensor:
    """As `quantile`, ignoring NaN."""
def nansum(
    input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """The sum over `dim` where NaN counts as 0."""
def narrow(input: Tensor, dim: Int, start: Int, length: Int) -> Tensor:
    """`length` elements from `start` along `dim`."""
def narrow_copy(input: Tensor, dim: Int, start: Int, length: Int) -> Tensor:
    """`length` elements from `start` along `dim`."""
def ndtr(input: Tensor) -> Tensor:
    """The integral of the standard normal density up to x."""
def ndtri(input: Tensor) -> Tensor:
    """The inverse of `ndtr`."""
def ne(input: Operand, other: Operand) -> Tensor:
    """As `numpy.not_equal`."""
def ne_(input: Tensor, other: Operand) -> Tensor:
    """`ne`, in place."""
def neg(input: Tensor) -> Tensor:
    """As `numpy.negative`."""
def neg_(input: Tensor) -> Tensor:
    """`neg`, in place."""
def negative(input: Tensor) -> Tensor:
    """As `numpy.negative`."""
def negative_(input: Tensor) -> Tensor:
    """`neg`, in place."""
def nextafter(input: Operand, other: Operand) -> Tensor:
    """The next number of the dtype after `input` in the direction of `other`."""
def nextafter_(input: Tensor, other: Operand) -> Tensor:
    """`nextafter`, in place."""
def nll_loss(
    input: Operand, target: Operand, weight: Tensor | None = None, size_average: Bool | None = None, ignore_index: Int = -100,
    reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """-input[target] with classes on axis 1, for log-probabilities; arguments and errors as in `cross_entropy`."""
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, one row each; with `as_tuple`, a tensor per axis."""
def norm(
    input: Tensor, p: Float | str | None = 'fro', dim: Int | Sequence[Int] | None = None, keepdim: Bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """sum(|x|^p)^(1/p) over `dim` (all axes, if None); "fro" and None are 2."""
def normalize(input: Tensor, p: Float = 2.0, dim: Int | Sequence[Int] | None = 1, eps: Float = 1e-12) -> Tensor:
    """`input` divided by its p-norm along `dim`, which is clamped at `eps`."""
def not_equal(input: Operand, other: Operand) -> Tensor:
    """As `numpy.not_equal`."""
def not_equal_(input: Tensor, other: Operand) -> Tensor:
    """`ne`, in place."""
def orgqr(input: Operand, tau: Operand) -> Tensor:
    """The first n columns of H1 @ H2 @ .. @ Hk, (.., m, n), for `input` (.., m, n), m >= n, and `tau` (.., k) of `geqrf`."""
def ormqr(input: Operand, tau: Operand, other: Operand, left: Bool = True, transpose: Bool = False) -> Tensor:
    """Q @ `other`, for the whole Q (.., m, m) of `geqrf`'s results; without `left`, `other` @ Q; with `transpose`, Q.H .."""
def outer(input: Operand, vec2: Operand) -> Tensor:
    """All products of the elements of two vectors, (m,) and (n,) -> (m, n)."""
def pad(input: Tensor, pad: Sequence[Int], mode: str = 'constant', value: Float | None = None) -> Tensor:
    """`input` with more elements around it."""
def pairwise_distance(x1: Operand, x2: Operand, p: Float = 2.0, eps: Float = 1e-06, keepdim: Bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis."""
def permute(input: Tensor, *dims: Extents) -> Tensor:
    """Axes in the order `dims`."""
def permute_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`permute`, in memory of its own."""
def pinv(A: Operand, *, atol: Operand | None = None, rtol: Operand | None = None, hermitian: Bool = False) -> Tensor:
    """The pseudo-inverses of matrices (.., m, n) (Moore, 1920; Penrose, 1955)."""
def pinverse(A: Operand, *, atol: Operand | None = None, rtol: Operand | None = None, hermitian: Bool = False) -> Tensor:
    """The pseudo-inverses of matrices (.., m, n) (Moore, 1920; Penrose, 1955)."""
def pixel_shuffle(input: Tensor, upscale_factor: Int) -> Tensor:
    """(.., c * r^2, h, w) -> (.., c, h * r, w * r): every r^2 channels become r x r pixels (Shi et al., 2016)."""
def pixel_unshuffle(input: Tensor, downscale_factor: Int) -> Tensor:
    """(.., c, h * r, w * r) -> (.., c * r^2, h, w): the inverse of `pixel_shuffle`."""
def poisson_nll_loss(
    input: Operand, target: Operand, log_input: Bool = True, full: Bool = False, size_average: Bool | None = None,
    eps: Float = 1e-08, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """rate - target * log(rate), for a Poisson distribution with the rate exp(input), or `input` without `log_input`."""
def polar(abs: Operand, angle: Operand) -> Tensor:
    """Complex numbers from moduli and angles, float32 or float64. Raises as `complex`."""
def polygamma(n: Int, input: Tensor) -> Tensor:
    """The `n`-th derivative of `digamma`. Raises ValueError for a negative `n`."""
def polygamma_(self: Tensor, n: Int) -> Tensor:
    """`polygamma`, in place."""
def positive(input: Tensor) -> Tensor:
    """`input` as it is."""
def pow(input: Operand, exponent: Operand) -> Tensor:
    """`input ** exponent`; a literal exponent of 2, 3, 0.5 or -1 becomes a product, a root or a quotient."""
def pow_(input: Tensor, exponent: Operand) -> Tensor:
    """`pow`, in place."""
def prelu(input: Operand, weight: Operand) -> Tensor:
    """x where positive, weight * x elsewhere; one weight, or one for each channel (axis 1). Raises ValueError otherwise."""
def prod(
    input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """The product over `dim` (all axes, if None). Integers and bools multiply to int64."""
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: Bool = False) -> Tensor:
    """`put`, in place."""
def qr(input: Tensor, some: Bool = True) -> QR:
    """(Q, R) as `linalg.qr`: with `some` in mode "reduced", else "complete"."""
def quantile(
    input: Operand, q: Operand, dim: Int | None = None, keepdim: Bool = False, *, interpolation: str = 'linear',
) -> Tensor:
    """The `q`-th quantiles, a number in [0, 1] or a vector, over `dim` (all elements, if None); NaN propagates."""
def rad2deg(input: Tensor) -> Tensor:
    """As `numpy.rad2deg`."""
def rad2deg_(input: Tensor) -> Tensor:
    """`rad2deg`, in place."""
def real(input: Tensor) -> Tensor:
    """The real parts; a real tensor itself."""
def reciprocal(input: Tensor) -> Tensor:
    """1 / x."""
def reciprocal_(input: Tensor) -> Tensor:
    """`reciprocal`, in place."""
def register_function(name: str, function: Callable[..., Any]) -> None:
    """Replace the operation `name` by `function` wherever it is called: as an operator, method or function."""
def register_operation(name: str, function: Callable[..., Any]) -> None:
    """Make `function` a new operation: `genesis.NAME` and `genesis.ops.NAME`. Registering it again replaces it."""
def relu(input: Tensor) -> Tensor:
    """x where positive, else 0; NaN of NaN."""
def relu6(input: Tensor) -> Tensor:
    """x held within [0, 6]."""
def relu_(input: Tensor) -> Tensor:
    """`relu`, in place."""
def remainder(input: Operand, other: Operand) -> Tensor:
    """As `numpy.remainder`."""
def remainder_(input: Tensor, other: Operand) -> Tensor:
    """`remainder`, in place."""
def renorm(input: Tensor, p: Float, dim: Int, maxnorm: Float) -> Tensor:
    """`input` with its slices along `dim` scaled down to the p-norm `maxnorm` if theirs is greater."""
def renorm_(input: Tensor, p: Float, dim: Int, maxnorm: Float) -> Tensor:
    """`renorm`, in place."""
def reshape(input: Tensor, *shape: Extents) -> Tensor:
    """The same elements in another shape, in row-major order; one extent may be -1 and follows from the others."""
def rms_norm(
    input: Tensor, normalized_shape: tuple[Int, ...], weight: Tensor | None = None, eps: Float | None = None,
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) over the last axes, then `weight` (Zhang and Sennrich, 2019)."""
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Tensor:
    """relu(w_ih @ input + b_ih + w_hh @ h + b_hh)."""
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None,
) -> Tensor:
    """tanh(w_ih @ input + b_ih + w_hh @ h + b_hh)."""
def roll(input: Tensor, shifts: Extents, dims: Int | Sequence[Int] | None = None) -> Tensor:
    """The elements shifted by `shifts` along `dims`; those that leave at one end enter at the other."""
def rot90(input: Tensor, k: Int = 1, dims: Sequence[Int] = (0, 1)) -> Tensor:
    """`input` rotated by `k` quarter turns, from the first of two axes towards the second."""
def round(input: Tensor, *, decimals: Int = 0) -> Tensor:
    """`input` rounded to `decimals` digits, ties to even; negative ones round to tens, hundreds, and so on."""
def round_(input: Tensor, *, decimals: Int = 0) -> Tensor:
    """`round`, in place."""
def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors one below the other; a vector is a row."""
def rrelu(input: Tensor, lower: Float = 0.125, upper: Float = 0.3333333333333333, training: Bool = False) -> Tensor:
    """x where positive, s * x elsewhere: s uniform in [lower, upper), or the middle if not training (Xu et al., 2015)."""
def rsqrt(input: Tensor) -> Tensor:
    """1 / sqrt(x)."""
def rsqrt_(input: Tensor) -> Tensor:
    """`rsqrt`, in place."""
def rsub(input: Operand, other: Operand, alpha: Operand = 1) -> Tensor:
    """`other - alpha * input`."""
def scaled_modified_bessel_k0(input: Tensor) -> Tensor:
    """exp(x) K0(x)."""
def scaled_modified_bessel_k1(input: Tensor) -> Tensor:
    """exp(x) K1(x)."""
def scatter(input: Operand, dim: Int, index: Operand, src: Operand, *, reduce: str | None = None) -> Tensor:
    """`input` with `src[i]` written at `index[i]` along `dim`; of several writes to one element the last wins."""
def scatter_(input: Tensor, dim: Int, index: Operand, src: Operand, *, reduce: str | None = None) -> Tensor:
    """`scatter`, in place."""
def scatter_add(input: Operand, dim: Int, index: Operand, src: Operand) -> Tensor:
    """`input` with `src[i]` added at `index[i]` along `dim`."""
def scatter_add_(input: Tensor, dim: Int, index: Operand, src: Operand) -> Tensor:
    """`scatter_add`, in place."""
def scatter_reduce(
    input: Operand, dim: Int, index: Operand, src: Operand, reduce: str, *, include_self: Bool = True,
) -> Tensor:
    """`input` with `src[i]` folded into it at `index[i]` along `dim`, by "sum", "prod", "mean", "amax" or "amin"."""
def scatter_reduce_(
    input: Tensor, dim: Int, index: Operand, src: Operand, reduce: str, *, include_self: Bool = True,
) -> Tensor:
    """`scatter_reduce`, in place."""
def searchsorted(
    sorted_sequence: Operand, input: Operand, *, out_int32: Bool = False, right: Bool = False, side: str | None = None,
    sorter: Operand | None = None,
) -> Tensor:
    """The index at which each element of `input` would be inserted into `sorted_sequence`: before equal elements, or .."""
def select(input: Tensor, dim: Int, index: Int) -> Tensor:
    """Position `index` along `dim`, which is removed."""
def select_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`select`, in memory of its own."""
def select_scatter(input: Operand, src: Operand, dim: Int, index: Int) -> Tensor:
    """`input` with `src` at position `index` along `dim`."""
def selu(input: Tensor) -> Tensor:
    """1.0507 * elu(x, 1.6733) (Klambauer et al., 2017)."""
def selu_(input: Tensor) -> Tensor:
    """`selu`, in place."""
def sgn(input: Tensor) -> Tensor:
    """`sign`, also for complex numbers: modulus 1 and the same angle, and 0 for 0."""
def sgn_(input: Tensor) -> Tensor:
    """`sgn`, in place."""
def shifted_chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_t` at 2 x - 1, for x in [0, 1]."""
def shifted_chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_u` at 2 x - 1, for x in [0, 1]."""
def shifted_chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_v` at 2 x - 1, for x in [0, 1]."""
def shifted_chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """`chebyshev_polynomial_w` at 2 x - 1, for x in [0, 1]."""
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
def sigmoid_(input: Tensor) -> Tensor:
    """`sigmoid`, in place."""
def sign(input: Tensor) -> Tensor:
    """-1, 0 or 1; 0 of NaN."""
def sign_(input: Tensor) -> Tensor:
    """`sign`, in place."""
def signbit(input: Tensor) -> Tensor:
    """Whether the sign is minus: true of -0.0 as well."""
def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x) (Hendrycks and Gimpel, 2016)."""
def silu_(input: Tensor) -> Tensor:
    """`silu`, in place."""
def sin(input: Tensor) -> Tensor:
    """As `numpy.sin`."""
def sin_(input: Tensor) -> Tensor:
    """`sin`, in place."""
def sinc(input: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
def sinc_(input: Tensor) -> Tensor:
    """`sinc`, in place."""
def sinh(input: Tensor) -> Tensor:
    """As `numpy.sinh`."""
def sinh_(input: Tensor) -> Tensor:
    """`sinh`, in place."""
def slice(input: Tensor, dim: Int, start: Int | None = None, end: Int | None = None, step: Int = 1) -> Tensor:
    """`start:end:step` along `dim`, with Python's clamping."""
def slice_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`slice`, in memory of its own."""
def slice_scatter(
    input: Operand, src: Operand, dim: Int = 0, start: Int | None = None, end: Int | None = None, step: Int = 1,
) -> Tensor:
    """`input` with `src` at `start:end:step` along `dim`."""
def slogdet(A: Tensor) -> SignAndLog:
    """(sign, logabsdet) of the determinants of matrices (.., n, n), which themselves may overflow."""
def smooth_l1_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
    beta: Float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where |d| < beta, |d| - beta / 2 elsewhere, of d = input - target (Girshick, 2015)."""
def soft_margin_loss(
    input: Operand, target: Operand, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """log(1 + exp(-t * x)), for t of 1 or -1."""
def softmax(input: Tensor, dim: Int | None = None, dtype: DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`."""
def softmin(input: Tensor, dim: Int | None = None, dtype: DType | None = None) -> Tensor:
    """softmax(-x) along `dim`."""
def softplus(input: Tensor, beta: Float = 1.0, threshold: Float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds `threshold`."""
def softshrink(input: Tensor, lambd: Float = 0.5) -> Tensor:
    """x - lambd above `lambd`, x + lambd below -lambd, 0 between. Raises ValueError for a negative `lambd`."""
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
def solve(A: Operand, B: Operand, *, left: Bool = True) -> Tensor:
    """The X with `A` @ X = `B`: `A` (.., n, n), `B` (.., n, k) or vectors (.., n); without `left`, X @ `A` = `B`."""
def solve_ex(A: Operand, B: Operand, *, left: Bool = True, check_errors: Bool = False) -> Solved:
    """(result, info) as `solve`; a singular matrix sets `info`, as in `lu_factor_ex`, and gives infinities."""
def solve_triangular(A: Operand, B: Operand, *, upper: Bool, left: Bool = True, unitriangular: Bool = False) -> Tensor:
    """The X with T @ X = `B` for the upper or the lower triangle T of `A` (with ones on its diagonal, if `unitriangular`)."""
def sort(input: Tensor, dim: Int = -1, descending: Bool = False, stable: Bool = False) -> Sorted:
    """(values, indices) sorted along `dim`. Equal elements keep their order; NaN is the greatest."""
def spherical_bessel_j0(input: Tensor) -> Tensor:
    """The spherical Bessel function j0: sin(x) / x, and 1 at 0; below 1/2 by its series, which has exact derivatives."""
def split_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`split`, in memory of its own."""
def split_with_sizes_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`split_with_sizes`, in memory of its own."""
def sqrt(input: Tensor) -> Tensor:
    """As `numpy.sqrt`."""
def sqrt_(input: Tensor) -> Tensor:
    """`sqrt`, in place."""
def square(input: Tensor) -> Tensor:
    """x * x."""
def square_(input: Tensor) -> Tensor:
    """`square`, in place."""
def squeeze(input: Tensor, dim: Int | Sequence[Int] | None = None, *others: Int) -> Tensor:
    """Without the axes of extent 1 (those in `dim`, if given)."""
def squeeze_(input: Tensor, dim: Int | Sequence[Int] | None = None, *others: Int) -> Tensor:
    """`squeeze`, in place."""
def squeeze_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`squeeze`, in memory of its own."""
def stack(tensors: Sequence[Tensor], dim: Int = 0) -> Tensor:
    """The tensors of one shape along a new axis `dim`."""
def std(
    input: Tensor, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
    correction: Float | None = None,
) -> Tensor:
    """The standard deviation over `dim`, as in `var`. Where all elements are equal its gradient is 0."""
def std_mean(
    input: Tensor, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
    correction: Float | None = None,
) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean), as `std` and `mean`."""
def stft(
    input: Tensor, n_fft: Int, hop_length: Int | None = None, win_length: Int | None = None, window: Tensor | None = None,
    center: Bool = True, pad_mode: str = 'reflect', normalized: Bool = False, onesided: Bool | None = None,
    return_complex: Bool | None = None, align_to_window: Bool | None = None,
) -> Tensor:
    """The Fourier transforms of windows of `n_fft` samples along a signal: (.., frequencies, windows)."""
def sub(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`input - alpha * other`."""
def sub_(input: Tensor, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`sub`, in place."""
def subtract(input: Operand, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`input - alpha * other`."""
def subtract_(input: Tensor, other: Operand, *, alpha: Operand = 1) -> Tensor:
    """`sub`, in place."""
def sum(
    input: Tensor, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """The sum over `dim` (all axes, if None). Integers and bools sum to int64."""
def sum_to_size(input: Tensor, *size: Extents) -> Tensor:
    """`input` summed to `size`, a shape that broadcasts to its own. Raises ValueError for a shape that does not."""
def svd(input: Tensor, some: Bool = True, compute_uv: Bool = True) -> Transposed:
    """(U, S, V) of matrices (.., m, n): `input` is U @ diag(S) @ V.mH, S descending; with `some`, min(m, n) vectors."""
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices (.., m, n), descending; `driver` is ignored."""
def swapaxes(input: Tensor, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
    """Two axes exchanged; a tuple longer than two permutes; none reverses the last two."""
def swapaxes_(input: Tensor, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
    """`swapaxes`, in place."""
def swapdims(input: Tensor, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
    """Two axes exchanged; a tuple longer than two permutes; none reverses the last two."""
def swapdims_(input: Tensor, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
    """`swapdims`, in place."""
def t_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`t`, in memory of its own."""
def take_along_dim(input: Operand, indices: Operand, dim: Int | None = None) -> Tensor:
    """The elements at `indices` along `dim`; the two broadcast along other axes. Without `dim`, `input` is flattened."""
def tan(input: Tensor) -> Tensor:
    """As `numpy.tan`."""
def tan_(input: Tensor) -> Tensor:
    """`tan`, in place."""
def tanh(input: Tensor) -> Tensor:
    """As `numpy.tanh`."""
def tanh_(input: Tensor) -> Tensor:
    """`tanh`, in place."""
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
def tensordot(a: Operand, b: Operand, dims: Int | Sequence[Sequence[Int]] = 2) -> Tensor:
    """The sums of products over the last `dims` axes of `a` and the first of `b`, or over the axes in a pair of lists."""
def threshold(input: Tensor, threshold: Float, value: Float) -> Tensor:
    """x where it exceeds `threshold`, `value` elsewhere."""
def tile(input: Tensor, *dims: Int) -> Tensor:
    """Copies of `input` end to end, `dims` along each axis; fewer `dims` apply to the last axes."""
def topk(input: Tensor, k: Int, dim: Int = -1, largest: Bool = True, sorted: Bool = True) -> Sorted:
    """(values, indices) of the `k` greatest (least, without `largest`) elements along `dim`, in order."""
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
def transpose(input: Tensor, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
    """Two axes exchanged; a tuple longer than two permutes; none reverses the last two."""
def transpose_(input: Tensor, *dims: Extents, dim0: Int | None = None, dim1: Int | None = None) -> Tensor:
    """`transpose`, in place."""
def transpose_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`transpose`, in memory of its own."""
def trapezoid(y: Operand, x: Operand | None = None, *, dx: Float = 1, dim: Int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule: at the points `x`, or at distances `dx`."""
def trapz(y: Operand, x: Operand | None = None, *, dx: Float = 1, dim: Int = -1) -> Tensor:
    """The integral of `y` along `dim` by the trapezoidal rule: at the points `x`, or at distances `dx`."""
def triangular_solve(
    b: Operand, A: Operand, upper: Bool = True, transpose: Bool = False, unitriangular: Bool = False,
) -> Triangular:
    """(X, A) with `A` @ X = `b`, of a triangle of `A` as in `solve_triangular`; with `transpose`, A.T @ X = b."""
def tril(input: Tensor, diagonal: Int = 0) -> Tensor:
    """The lower triangle of the last two axes, zeros above."""
def tril_(input: Tensor, diagonal: Int = 0) -> Tensor:
    """`tril`, in place."""
def triplet_margin_loss(
    anchor: Operand, positive: Operand, negative: Operand, margin: Float = 1.0, p: Float = 2.0, eps: Float = 1e-06,
    swap: Bool = False, size_average: Bool | None = None, reduce: Bool | None = None, reduction: str = 'mean',
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), of p-norms."""
def triu(input: Tensor, diagonal: Int = 0) -> Tensor:
    """The upper triangle of the last two axes, zeros below."""
def triu_(input: Tensor, diagonal: Int = 0) -> Tensor:
    """`triu`, in place."""
def true_divide(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`input / other`, also for integers. `rounding_mode` "trunc" rounds towards zero, as C does, "floor" down, as .."""
def true_divide_(input: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """`div`, in place."""
def trunc(input: Tensor) -> Tensor:
    """As `numpy.trunc`."""
def trunc_(input: Tensor) -> Tensor:
    """`trunc`, in place."""
def unbind_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`unbind`, in memory of its own."""
def unflatten(input: Tensor, dim: Int, sizes: Sequence[Int]) -> Tensor:
    """Axis `dim` split into `sizes`."""
def unfold(input: Tensor, dimension: Int, size: Int, step: Int) -> Tensor:
    """All windows of `size` elements along `dimension`, `step` apart; each is a row along a new last axis."""
def unfold_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`unfold`, in memory of its own."""
def unregister_function(name: str) -> None:
    """Undo `register_function`. Raises ValueError if nothing is registered under `name`."""
def unregister_operation(name: str) -> None:
    """Undo `register_operation`. Raises ValueError if there is no such operation."""
def unsafe_chunk(input: Tensor, chunks: Int, dim: Int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal extent along `dim` (the last may be smaller)."""
def unsafe_split(input: Tensor, split_size: Extents, dim: Int = 0) -> tuple[Tensor, ...]:
    """Views of `split_size` along `dim` (the last may be smaller), or of the sizes in a list."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[Int], dim: Int = 0) -> tuple[Tensor, ...]:
    """Views of the given sizes along `dim`."""
def unsqueeze(input: Tensor, dim: Int) -> Tensor:
    """With a new axis of extent 1 at `dim`."""
def unsqueeze_(input: Tensor, dim: Int) -> Tensor:
    """`unsqueeze`, in place."""
def unsqueeze_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`unsqueeze`, in memory of its own."""
def var(
    input: Tensor, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
    correction: Float | None = None,
) -> Tensor:
    """The variance over `dim`: squares over n - `correction` (two passes: mean, then squares)."""
def var_mean(
    input: Tensor, dim: Int | Sequence[Int] | None = None, unbiased: Bool | None = None, keepdim: Bool = False, *,
    correction: Float | None = None,
) -> tuple[Tensor, Tensor]:
    """(variance, mean), as `var` and `mean`."""
def vdot(input: Operand, other: Operand) -> Tensor:
    """As `dot`, with the conjugate of `input`."""
def vecdot(x: Operand, y: Operand, dim: Int = -1) -> Tensor:
    """The sums of the products of `x`, conjugated, and `y` along `dim`, after broadcasting."""
def vector_norm(
    x: Tensor, ord: Float = 2, dim: Int | Sequence[Int] | None = None, keepdim: Bool = False, *, dtype: DType | None = None,
) -> Tensor:
    """sum(|x|^ord)^(1/ord) over `dim` (all axes, if None), whatever the shape."""
def view(input: Tensor, *shape: Extents) -> Tensor:
    """The same elements in another shape, in row-major order; one extent may be -1 and follows from the others."""
def view_copy(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """`view`, in memory of its own."""
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors one below the other; a vector is a row."""
def xlog1py(input: Operand, other: Operand) -> Tensor:
    """x * log(1 + y), and 0 where x is 0."""
def xlogy(input: Operand, other: Operand) -> Tensor:
    """x * log(y), and 0 where x is 0."""
def xlogy_(input: Tensor, other: Operand) -> Tensor:
    """`xlogy`, in place."""
def zeta(input: Operand, other: Operand) -> Tensor:
    """The Hurwitz zeta function: the sum of (k + q)^-x."""
