"""Arguments for the elementwise rows that take more than any two numbers."""

import numpy as np

from genesis.ops.polynomials import FAMILIES
from tests.ops.arguments import Sample, values

_M = values(4, 6)
_ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -3.0, 1e3])
_INSIDE = np.random.default_rng(0).uniform(0.15, 0.85, (2, 3))
_ENDS = np.array([0.5, np.nan, np.inf])
_WHOLE = np.array([2, 3, 5], np.float32)
_AROUND = np.random.default_rng(1).uniform(-1.4, 1.4, (3, 4))
_DEGREES = np.arange(-1, 11).reshape(3, 4)

SAMPLES: dict[str, list[Sample]] = {
    "addcmul": [Sample((_M, values(6, seed=1), values(4, 1, seed=2))), Sample((_M, _M, _M), {"value": 3})],
    "addcdiv": [Sample((_M, values(6, seed=1), values(4, 1, seed=2))), Sample((_M, _M, _M + 3), {"value": 0.5})],
    "lerp": [Sample((_M, values(4, 6, seed=1), 0.25)), Sample((_M, values(4, 6, seed=1), values(6, seed=2)))],
    "rsub": [Sample((_M, values(6, seed=1))), Sample((_M, 2.0, 3))],
    "ldexp": [Sample((_M, np.array([0, 1, -2, 3, 10, -5])))], "float_power": [Sample((np.abs(_M), 2.5)), Sample((_M, 3))],
    "frac": [Sample((_M,)), Sample((_ODD,))], "sinc": [Sample((_M,)), Sample((_ODD,))],
    "logit": [Sample((np.linspace(0.1, 0.9, 9),)), Sample((np.append(np.linspace(-0.5, 1.5, 9), np.nan),)),
              Sample((np.linspace(-0.5, 1.5, 8), 0.15))],
    "nan_to_num": [Sample((_M,)), Sample((_ODD,)), Sample((_ODD, 1.5, 20.0, -10))],
    "clamp_min": [Sample((_M, 0.5)), Sample((_M, values(6, seed=1)))],
    "clamp_max": [Sample((_M, 0.5)), Sample((_M, values(6, seed=1)))],
    "isclose": [
        Sample((_M, _M * (1 + 1e-6))), Sample((_ODD, _ODD), {"equal_nan": True}), Sample((_ODD, _ODD[::-1].copy())),
        Sample((_M, _M + 0.5, 0.1, 0.2)),
    ],
    "angle": [Sample((_M,)), Sample((_ODD,))], "signbit": [Sample((_M,)), Sample((_ODD[1:],))],
    "heaviside": [Sample((_ODD[1:], np.arange(7.0)))],
    **{name: [Sample((_INSIDE,)), Sample((_ENDS,))] for name in (
        "lgamma", "digamma", "erfinv", "erfcx", "ndtri", "log_ndtr", "ndtr", "entr", "i0e", "i1e", "modified_bessel_k0",
        "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    )},
    **{name: [Sample((_INSIDE,)), Sample((_ENDS[~np.isinf(_ENDS)],))] for name in (  # at infinity NaN in PyTorch
        "i0", "i1", "modified_bessel_i0", "modified_bessel_i1", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1")},
    **{key: [Sample((_AROUND, _DEGREES)), Sample((_AROUND, 4)), Sample((_AROUND[:1], _DEGREES[:, :1]))] for key in FAMILIES},
    **{f"shifted_{name}": [Sample((_AROUND + 0.4, _DEGREES)), Sample((_AROUND, 3))]
       for name in FAMILIES if name.startswith("chebyshev")},
    "airy_ai": [Sample((_INSIDE,)), Sample(((values(3, 4) * 3).astype(np.float32),))],  # of nine digits in PyTorch
    "spherical_bessel_j0": [Sample((_INSIDE,)), Sample((_INSIDE * 20,)), Sample((_ODD,))],
    "polygamma": [Sample((n, _INSIDE.astype(np.float32))) for n in (1, 3, 0)],  # PyTorch has ten digits in float64
    "mvlgamma": [Sample((_INSIDE + 1, 2)), Sample((_INSIDE + 1, 1))],
    "igamma": [Sample((_WHOLE, _INSIDE))], "igammac": [Sample((_WHOLE, _INSIDE))], "zeta": [Sample((_WHOLE, _INSIDE))],
}
