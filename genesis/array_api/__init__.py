"""The array API standard, 2024.12: a namespace for libraries that take arrays of any kind (https://data-apis.org/array-api).

`Tensor.__array_namespace__` returns this module. Its functions are those of `genesis` under the standard's names and
keywords. Dtypes promote as the standard has it: an array of no axes counts as much as any.

>>> import genesis
>>> xp = genesis.ones(2).__array_namespace__()
>>> xp.concat([xp.zeros(1), xp.asarray([1.0, 2.0])], axis=0)
tensor([0., 1., 2.])
"""

from __future__ import annotations

import math

from genesis.array_api import fft, linalg
from genesis.array_api.creation import (
    arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones, ones_like, tril, triu,
    zeros, zeros_like,
)
from genesis.array_api.dtypes import __array_namespace_info__, astype, bool, can_cast, finfo, iinfo, isdtype, result_type
from genesis.array_api.elementwise import (
    abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_or,
    bitwise_right_shift, bitwise_xor, ceil, clip, conj, copysign, cos, cosh, divide, equal, exp, expm1, floor, floor_divide,
    greater, greater_equal, hypot, imag, isfinite, isinf, isnan, less, less_equal, log, log1p, log2, log10, logaddexp,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, multiply, negative, nextafter, not_equal, positive,
    pow, real, reciprocal, remainder, round, sign, signbit, sin, sinh, sqrt, square, subtract, tan, tanh, trunc, where,
)
from genesis.array_api.linalg import matmul, tensordot, vecdot
from genesis.array_api.manipulation import (
    argsort, broadcast_arrays, broadcast_to, concat, expand_dims, flip, matrix_transpose, moveaxis, nonzero, permute_dims,
    repeat, reshape, roll, searchsorted, sort, squeeze, stack, take, take_along_axis, tile, unstack,
)
from genesis.array_api.manipulation import unique_all, unique_counts, unique_inverse, unique_values
from genesis.array_api.statistical import (
    all, any, argmax, argmin, count_nonzero, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum, var,
)
from genesis.ir.dtypes import complex64, complex128, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

__array_api_version__ = "2024.12"
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
