"""Arguments for rows that take numbers apart, and for those that fill."""

import numpy as np

from tests.ops.arguments import Sample, values

_X = values(3, 4)
_PAIR = np.array([[12, -18, 0, 7], [8, 0, -5, 100]]), np.array([18, 4, 0, -35])

SAMPLES: dict[str, list[Sample]] = {
    "gcd": [Sample(tuple(a.astype(kind) for a in _PAIR)) for kind in (np.int64, np.int32, np.int16, np.int8, np.uint8)]
           + [Sample((_PAIR[0], 6))],
    "lcm": [Sample(tuple(a.astype(kind) for a in _PAIR)) for kind in (np.int64, np.int32, np.int16)],
    "nextafter": [Sample((_X, values(4, seed=1))), Sample((np.array([0.0, 1.0, np.inf, np.nan]), np.array([-1.0, 1, 0, 0])))],
    "frexp": [Sample((_X * 100,)), Sample((np.array([3.0, -0.3, 1e-3]),))],
    "constant_pad_nd": [Sample((_X, (1, 2))), Sample((_X, (0, 1, 2, -1), 1.5))],
    "fill": [Sample((_X, 2.5)), Sample((_X, np.array(-3.0))), Sample((values(0, 2), 1))],
}
