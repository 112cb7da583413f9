# Written by tools/stubs.py from the operation table: do not edit.

from builtins import bool as Bool, int as Int
from collections.abc import Sequence
from math import e as e, inf as inf, nan as nan, pi as pi
from typing import Literal, overload
from genesis import (
    amp as amp, ao as ao, array_api as array_api, autograd as autograd, backends as backends, cuda as cuda, debug as debug,
    fft as fft, func as func, function as function, linalg as linalg, masked as masked, nested as nested, nn as nn,
    onnx as onnx, ops as ops, optim as optim, profiler as profiler, pytree as pytree, quasirandom as quasirandom,
    random as random, serialization as serialization, signal as signal, sparse as sparse, special as special,
    testing as testing, utils as utils,
)
from genesis.autograd.custom import Context as Context
from genesis.autograd.function import Function as Function
from genesis.autograd.grad_manager import GradManager as GradManager
from genesis.autograd.gradients import zero_grad as zero_grad
from genesis.autograd.trace_backward import GraphCycleError as GraphCycleError
from genesis.capture.compiled import compile as compile
from genesis.debug.doctor import doctor as doctor
from genesis.execution.eager import eager as eager
from genesis.execution.synchronization import synchronize as synchronize
from genesis.func.vmap import vmap as vmap
from genesis.function import (
    AddFunction as AddFunction, MatMulFunction as MatMulFunction, MulFunction as MulFunction, ReluFunction as ReluFunction,
)
from genesis.functions.comparison import (
    allclose as allclose, broadcast_shapes as broadcast_shapes, can_cast as can_cast, equal as equal, finfo as finfo,
    iinfo as iinfo, is_nonzero as is_nonzero, is_tensor as is_tensor, result_type as result_type,
)
from genesis.functions.copies import (
    alias_copy as alias_copy, empty_permuted as empty_permuted, empty_strided as empty_strided, resize_ as resize_,
    resize_as_ as resize_as_, unravel_index as unravel_index,
)
from genesis.functions.counting import (
    bincount as bincount, histc as histc, histogram as histogram, histogramdd as histogramdd, mode as mode,
    repeat_interleave as repeat_interleave, unique_consecutive as unique_consecutive,
)
from genesis.functions.creation import (
    empty as empty, empty_like as empty_like, full as full, full_like as full_like, ones as ones, ones_like as ones_like,
    zeros as zeros, zeros_like as zeros_like,
)
from genesis.functions.finite_differences import gradient as gradient
from genesis.functions.from_data import (
    as_tensor as as_tensor, asarray as asarray, from_dlpack as from_dlpack, from_numpy as from_numpy,
    scalar_tensor as scalar_tensor, tensor as tensor,
)
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
from genesis.functions.printing import get_printoptions as get_printoptions, set_printoptions as set_printoptions
from genesis.functions.ranges import (
    arange as arange, combinations as combinations, eye as eye, linspace as linspace, logspace as logspace,
    meshgrid as meshgrid, tril_indices as tril_indices, triu_indices as triu_indices,
)
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
from genesis.functions.variable import Variable as Variable
from genesis.ir.annotations import Extents
from genesis.ir.dtypes import (
    DType as DType, bfloat16 as bfloat16, bool_, complex128 as complex128, complex32 as complex32, complex64 as complex64,
    float16 as float16, float32 as float32, float64 as float64, float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz, float8_e5m2 as float8_e5m2, float8_e5m2fnuz as float8_e5m2fnuz,
    float8_e8m0fnu as float8_e8m0fnu, get_default_dtype as get_default_dtype, int16 as int16, int32 as int32, int64 as int64,
    int8 as int8, promote, uint16 as uint16, uint32 as uint32, uint64 as uint64, uint8 as uint8,
)
from genesis.ir.named_layouts import (
    sparse_bsc as sparse_bsc, sparse_bsr as sparse_bsr, sparse_coo as sparse_coo, sparse_csc as sparse_csc,
    sparse_csr as sparse_csr, strided as strided,
)
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
from genesis.ops import (
    abs as abs, abs_ as abs_, absolute_ as absolute_, acos as acos, acos_ as acos_, acosh as acosh, acosh_ as acosh_,
    adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
    adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d,
    adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool3d as adaptive_max_pool3d, add as add, add_ as add_,
    addbmm as addbmm, addbmm_ as addbmm_, addcdiv as addcdiv, addcdiv_ as addcdiv_, addcmul as addcmul, addcmul_ as addcmul_,
    addmm as addmm, addmm_ as addmm_, addmv as addmv, addmv_ as addmv_, addr as addr, addr_ as addr_, airy_ai as airy_ai,
    all as all, alpha_dropout as alpha_dropout, amax as amax, amin as amin, aminmax as aminmax, angle as angle, any as any,
    arccos_ as arccos_, arccosh_ as arccosh_, arcsin_ as arcsin_, arcsinh_ as arcsinh_, arctan2_ as arctan2_,
    arctan_ as arctan_, arctanh_ as arctanh_, argmax as argmax, argmin as argmin, argsort as argsort,
    as_strided_copy as as_strided_copy, asin as asin, asin_ as asin_, asinh as asinh, asinh_ as asinh_, atan as atan,
    atan2 as atan2, atan2_ as atan2_, atan_ as atan_, atanh as atanh, atanh_ as atanh_, avg_pool1d as avg_pool1d,
    avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d, baddbmm as baddbmm, baddbmm_ as baddbmm_, bessel_j0 as bessel_j0,
    bessel_j1 as bessel_j1, bessel_y0 as bessel_y0, bessel_y1 as bessel_y1, bilinear as bilinear,
    binary_cross_entropy as binary_cross_entropy, binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
    bitwise_and as bitwise_and, bitwise_and_ as bitwise_and_, bitwise_left_shift as bitwise_left_shift,
    bitwise_left_shift_ as bitwise_left_shift_, bitwise_not as bitwise_not, bitwise_not_ as bitwise_not_,
    bitwise_or as bitwise_or, bitwise_or_ as bitwise_or_, bitwise_right_shift as bitwise_right_shift,
    bitwise_right_shift_ as bitwise_right_shift_, bitwise_xor as bitwise_xor, bitwise_xor_ as bitwise_xor_,
    block_diag as block_diag, bmm as bmm, bucketize as bucketize, cartesian_prod as cartesian_prod, cat as cat, cdist as cdist,
    ceil as ceil, ceil_ as ceil_, celu as celu, celu_ as celu_, channel_shuffle as channel_shuffle,
    chebyshev_polynomial_t as chebyshev_polynomial_t, chebyshev_polynomial_u as chebyshev_polynomial_u,
    chebyshev_polynomial_v as chebyshev_polynomial_v, chebyshev_polynomial_w as chebyshev_polynomial_w, cholesky as cholesky,
    cholesky_ex as cholesky_ex, cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve, clamp as clamp,
    clamp_ as clamp_, clamp_max as clamp_max, clamp_max_ as clamp_max_, clamp_min as clamp_min, clamp_min_ as clamp_min_,
    clip_ as clip_, column_stack as column_stack, complex as complex, constant_pad_nd as constant_pad_nd, conv1d as conv1d,
    conv2d as conv2d, conv3d as conv3d, conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d,
    conv_transpose3d as conv_transpose3d, copysign as copysign, copysign_ as copysign_, corrcoef as corrcoef, cos as cos,
    cos_ as cos_, cosh as cosh, cosh_ as cosh_, cosine_embedding_loss as cosine_embedding_loss,
    cosine_similarity as cosine_similarity, count_nonzero as count_nonzero, cov as cov, cross as cross,
    cross_entropy as cross_entropy, cummax as cummax, cummin as cummin, cumprod as cumprod, cumprod_ as cumprod_,
    cumsum as cumsum, cumsum_ as cumsum_, cumulative_trapezoid as cumulative_trapezoid, deg2rad as deg2rad,
    deg2rad_ as deg2rad_, det as det, detach as detach, detach_copy as detach_copy, diag as diag, diag_embed as diag_embed,
    diagflat as diagflat, diagonal as diagonal, diagonal_copy as diagonal_copy, diagonal_scatter as diagonal_scatter,
    diff as diff, digamma as digamma, digamma_ as digamma_, dist as dist, div as div, div_ as div_, divide_ as divide_,
    dot as dot, dropout as dropout, dropout1d as dropout1d, dropout2d as dropout2d, dropout3d as dropout3d, dstack as dstack,
    eigh as eigh, eigvalsh as eigvalsh, einsum as einsum, elu as elu, entr as entr, eq as eq, eq_ as eq_, erf as erf,
    erf_ as erf_, erfc as erfc, erfc_ as erfc_, erfcx as erfcx, erfinv as erfinv, erfinv_ as erfinv_, exp as exp, exp2 as exp2,
    exp2_ as exp2_, exp_ as exp_, expand as expand, expand_copy as expand_copy, expm1 as expm1, expm1_ as expm1_,
    feature_alpha_dropout as feature_alpha_dropout, fill as fill, fix_ as fix_, flatten as flatten, flip as flip,
    fliplr as fliplr, flipud as flipud, float_power as float_power, floor as floor, floor_ as floor_,
    floor_divide as floor_divide, floor_divide_ as floor_divide_, fmax as fmax, fmin as fmin, fmod as fmod, fmod_ as fmod_,
    fold as fold, frac as frac, frac_ as frac_, frexp as frexp, gather as gather, gaussian_nll_loss as gaussian_nll_loss,
    gcd as gcd, gcd_ as gcd_, ge as ge, ge_ as ge_, gelu as gelu, geqrf as geqrf, glu as glu, greater_ as greater_,
    greater_equal_ as greater_equal_, grid_sample as grid_sample, grid_sampler_2d as grid_sampler_2d,
    grid_sampler_3d as grid_sampler_3d, group_norm as group_norm, gru_cell as gru_cell, gt as gt, gt_ as gt_,
    hardshrink as hardshrink, hardsigmoid as hardsigmoid, hardswish as hardswish, hardtanh as hardtanh, heaviside as heaviside,
    heaviside_ as heaviside_, hermite_polynomial_h as hermite_polynomial_h, hermite_polynomial_he as hermite_polynomial_he,
    hinge_embedding_loss as hinge_embedding_loss, hstack as hstack, huber_loss as huber_loss, hypot as hypot, hypot_ as hypot_,
    i0 as i0, i0_ as i0_, i0e as i0e, i1 as i1, i1e as i1e, igamma as igamma, igamma_ as igamma_, igammac as igammac,
    igammac_ as igammac_, imag as imag, index_add_ as index_add_, index_copy_ as index_copy_, index_fill_ as index_fill_,
    index_put_ as index_put_, index_reduce as index_reduce, index_reduce_ as index_reduce_, index_select as index_select,
    inner as inner, interpolate as interpolate, inv as inv, inv_ex as inv_ex, isclose as isclose, isfinite as isfinite,
    isin as isin, isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf, isreal as isreal, istft as istft,
    kl_div as kl_div, kron as kron, kthvalue as kthvalue, l1_loss as l1_loss, laguerre_polynomial_l as laguerre_polynomial_l,
    layer_norm as layer_norm, lcm as lcm, lcm_ as lcm_, ldexp as ldexp, ldexp_ as ldexp_, ldl_factor as ldl_factor,
    ldl_factor_ex as ldl_factor_ex, ldl_solve as ldl_solve, le as le, le_ as le_, leaky_relu as leaky_relu,
    legendre_polynomial_p as legendre_polynomial_p, lerp as lerp, lerp_ as lerp_, less_ as less_, less_equal_ as less_equal_,
    lgamma as lgamma, lgamma_ as lgamma_, linear as linear, local_response_norm as local_response_norm, log as log,
    log10 as log10, log10_ as log10_, log1p as log1p, log1p_ as log1p_, log2 as log2, log2_ as log2_, log_ as log_,
    log_ndtr as log_ndtr, log_softmax as log_softmax, logaddexp as logaddexp, logaddexp2 as logaddexp2,
    logcumsumexp as logcumsumexp, logdet as logdet, logical_and as logical_and, logical_and_ as logical_and_,
    logical_not as logical_not, logical_not_ as logical_not_, logical_or as logical_or, logical_or_ as logical_or_,
    logical_xor as logical_xor, logical_xor_ as logical_xor_, logit as logit, logit_ as logit_, logsigmoid as logsigmoid,
    logsumexp as logsumexp, lp_pool1d as lp_pool1d, lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d, lstm_cell as lstm_cell,
    lt as lt, lt_ as lt_, lu as lu, lu_factor as lu_factor, lu_factor_ex as lu_factor_ex, lu_solve as lu_solve,
    lu_unpack as lu_unpack, margin_ranking_loss as margin_ranking_loss, masked_scatter as masked_scatter,
    masked_scatter_ as masked_scatter_, matmul as matmul, matrix_exp as matrix_exp, matrix_norm as matrix_norm, max as max,
    max_pool1d as max_pool1d, max_pool2d as max_pool2d, max_pool3d as max_pool3d, maximum as maximum, mean as mean,
    median as median, min as min, minimum as minimum, mish as mish, mm as mm, modified_bessel_i0 as modified_bessel_i0,
    modified_bessel_i1 as modified_bessel_i1, modified_bessel_k0 as modified_bessel_k0,
    modified_bessel_k1 as modified_bessel_k1, mse_loss as mse_loss, msort as msort, mul as mul, mul_ as mul_,
    multi_margin_loss as multi_margin_loss, multilabel_margin_loss as multilabel_margin_loss,
    multilabel_soft_margin_loss as multilabel_soft_margin_loss, multiply_ as multiply_, mv as mv, mvlgamma as mvlgamma,
    mvlgamma_ as mvlgamma_, nan_to_num as nan_to_num, nan_to_num_ as nan_to_num_, nanmean as nanmean, nanmedian as nanmedian,
    nanquantile as nanquantile, nansum as nansum, narrow as narrow, narrow_copy as narrow_copy, ndtr as ndtr, ndtri as ndtri,
    ne as ne, ne_ as ne_, neg as neg, neg_ as neg_, negative_ as negative_, nextafter as nextafter, nextafter_ as nextafter_,
    nll_loss as nll_loss, norm as norm, normalize as normalize, not_equal_ as not_equal_, orgqr as orgqr, ormqr as ormqr,
    outer as outer, pad as pad, pairwise_distance as pairwise_distance, permute as permute, permute_copy as permute_copy,
    pinv as pinv, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle, poisson_nll_loss as poisson_nll_loss,
    polar as polar, polygamma as polygamma, positive as positive, pow as pow, pow_ as pow_, prelu as prelu, prod as prod,
    put_ as put_, qr as qr, quantile as quantile, rad2deg as rad2deg, rad2deg_ as rad2deg_, real as real,
    reciprocal as reciprocal, reciprocal_ as reciprocal_, relu as relu, relu6 as relu6, relu_ as relu_, remainder as remainder,
    remainder_ as remainder_, renorm as renorm, renorm_ as renorm_, reshape as reshape, rms_norm as rms_norm,
    rnn_relu_cell as rnn_relu_cell, rnn_tanh_cell as rnn_tanh_cell, roll as roll, rot90 as rot90, round as round,
    round_ as round_, rrelu as rrelu, rsqrt as rsqrt, rsqrt_ as rsqrt_, rsub as rsub,
    scaled_modified_bessel_k0 as scaled_modified_bessel_k0, scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
    scatter as scatter, scatter_ as scatter_, scatter_add as scatter_add, scatter_add_ as scatter_add_,
    scatter_reduce as scatter_reduce, scatter_reduce_ as scatter_reduce_, searchsorted as searchsorted, select as select,
    select_copy as select_copy, select_scatter as select_scatter, selu as selu, selu_ as selu_, sgn as sgn, sgn_ as sgn_,
    shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w, sigmoid as sigmoid, sigmoid_ as sigmoid_, sign as sign,
    sign_ as sign_, signbit as signbit, silu as silu, silu_ as silu_, sin as sin, sin_ as sin_, sinc as sinc, sinc_ as sinc_,
    sinh as sinh, sinh_ as sinh_, slice as slice, slice_copy as slice_copy, slice_scatter as slice_scatter, slogdet as slogdet,
    smooth_l1_loss as smooth_l1_loss, soft_margin_loss as soft_margin_loss, softmax as softmax, softmin as softmin,
    softplus as softplus, softshrink as softshrink, softsign as softsign, solve as solve, solve_ex as solve_ex,
    solve_triangular as solve_triangular, sort as sort, spherical_bessel_j0 as spherical_bessel_j0, split_copy as split_copy,
    split_with_sizes_copy as split_with_sizes_copy, sqrt as sqrt, sqrt_ as sqrt_, square as square, square_ as square_,
    squeeze as squeeze, squeeze_ as squeeze_, squeeze_copy as squeeze_copy, stack as stack, std as std, std_mean as std_mean,
    stft as stft, sub as sub, sub_ as sub_, subtract_ as subtract_, sum as sum, sum_to_size as sum_to_size, svd as svd,
    svdvals as svdvals, swapaxes_ as swapaxes_, swapdims_ as swapdims_, t_copy as t_copy, take_along_dim as take_along_dim,
    tan as tan, tan_ as tan_, tanh as tanh, tanh_ as tanh_, tanhshrink as tanhshrink, tensordot as tensordot,
    threshold as threshold, tile as tile, topk as topk, trace as trace, transpose as transpose, transpose_ as transpose_,
    transpose_copy as transpose_copy, trapezoid as trapezoid, triangular_solve as triangular_solve, tril as tril,
    tril_ as tril_, triplet_margin_loss as triplet_margin_loss, triu as triu, triu_ as triu_, true_divide_ as true_divide_,
    trunc as trunc, trunc_ as trunc_, unbind_copy as unbind_copy, unflatten as unflatten, unfold as unfold,
    unfold_copy as unfold_copy, unsqueeze as unsqueeze, unsqueeze_ as unsqueeze_, unsqueeze_copy as unsqueeze_copy, var as var,
    var_mean as var_mean, vdot as vdot, vecdot as vecdot, vector_norm as vector_norm, view as view, view_copy as view_copy,
    vstack as vstack, xlog1py as xlog1py, xlogy as xlogy, xlogy_ as xlogy_, zeta as zeta,
)
from genesis.random import (
    bernoulli as bernoulli, binomial as binomial, get_rng_state as get_rng_state, initial_seed as initial_seed,
    manual_seed as manual_seed, multinomial as multinomial, normal as normal, poisson as poisson, rand as rand,
    rand_like as rand_like, randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like,
    randperm as randperm, seed as seed, set_rng_state as set_rng_state,
)
from genesis.runtime.cuda.cublas import (
    get_float32_matmul_precision as get_float32_matmul_precision, set_float32_matmul_precision as set_float32_matmul_precision,
)
from genesis.runtime.determinism import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode as get_deterministic_debug_mode,
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode as set_deterministic_debug_mode, use_deterministic_algorithms as use_deterministic_algorithms,
)
from genesis.runtime.devices import Device, get_default_device as get_default_device, set_default_device as set_default_device
from genesis.runtime.logs import set_logs as set_logs
from genesis.runtime.number_of_threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from genesis.runtime.rng import Generator as Generator
from genesis.serialization import load as load, save as save
from genesis.shipping.dynamic import Dim as Dim
from genesis.shipping.export import export as export
from genesis.shipping.exported_program import ExportedProgram as ExportedProgram, load_program as load_program
from genesis.shipping.graph_of_call import ExportError as ExportError
from genesis.sparse.creation import (
    sparse_bsc_tensor as sparse_bsc_tensor, sparse_bsr_tensor as sparse_bsr_tensor,
    sparse_compressed_tensor as sparse_compressed_tensor, sparse_coo_tensor as sparse_coo_tensor,
    sparse_csc_tensor as sparse_csc_tensor, sparse_csr_tensor as sparse_csr_tensor,
)
from genesis.sparse.methods import (
    resize_as_sparse_ as resize_as_sparse_, sparse_resize_ as sparse_resize_,
    sparse_resize_and_clear_ as sparse_resize_and_clear_,
)
from genesis.tensor.handle import Tensor as Tensor
from genesis.tensor.modes import (
    autocast as autocast, enable_grad as enable_grad, inference_mode as inference_mode,
    is_autocast_enabled as is_autocast_enabled, is_grad_enabled as is_grad_enabled,
    is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled,
)
from genesis.tensor.size import Size as Size
from genesis.tracing.scopes import named_scope as named_scope
from genesis.tracing.state import set_default_dtype as set_default_dtype

NDArray = Tensor
__version__: str
absolute = abs
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
bool = bool_
cdouble = complex128
cfloat = complex64
chalf = complex32
clip = clamp
concat = cat
concatenate = cat
device = Device
divide = div
double = float64
dtype = DType
enable_autocast: Bool
fix = trunc
float = float32
ger = outer
greater = gt
greater_equal = ge
half = float16
int = int32
inverse = inv
less = lt
less_equal = le
long = int64
def moveaxis(input: Tensor, source: Extents, destination: Extents) -> Tensor:
    """The axes `source` moved to the positions `destination`, the others in their order."""
multiply = mul
negative = neg
newaxis: None
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, one row each; with `as_tuple`, a tensor per axis."""
not_equal = ne
pinverse = pinv
def polygamma_(self: Tensor, n: Int) -> Tensor:
    """`polygamma`, in place."""
promote_types = promote
row_stack = vstack
short = int16
subtract = sub
swapaxes = transpose
swapdims = transpose
trapz = trapezoid
true_divide = div
def unsafe_chunk(input: Tensor, chunks: Int, dim: Int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` views of equal extent along `dim` (the last may be smaller)."""
def unsafe_split(input: Tensor, split_size: Extents, dim: Int = 0) -> tuple[Tensor, ...]:
    """Views of `split_size` along `dim` (the last may be smaller), or of the sizes in a list."""
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[Int], dim: Int = 0) -> tuple[Tensor, ...]:
    """Views of the given sizes along `dim`."""
