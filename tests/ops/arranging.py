"""Arguments for rows that arrange, count, search and summarize."""

import numpy as np

from tests.ops.arguments import Sample, indices, values

_X, _M = values(2, 3, 4), values(3, 4)
_LAST = np.random.default_rng(2).permutation(24).reshape(2, 3, 4).astype(np.float64)  # distinct in every dtype
_SEQUENCE = np.array([-2.0, -1, 0, 0, 1, 3])
_AMONG = np.array([[-3.0, -2, 0, 0.5], [1, 2, 3, 4]])
_HOLES = np.where(np.abs(_X) < 1, np.nan, _X)
_INTO = (_M, 1, indices(4, 3, 5), values(3, 5, seed=3))
_ROWS = (_M, 0, np.array([2, 0, 2]), values(3, 4, seed=3))

SAMPLES: dict[str, list[Sample]] = {
    "hstack": [Sample(([_M, values(3, 2)],)), Sample(([values(2), np.array(1.5)],))],
    "vstack": [Sample(([_M, values(4)],)), Sample(([_X, _X],))],
    "dstack": [Sample(([_M, _M],)), Sample(([values(3), values(3, seed=1)],)), Sample(([_X, values(2, 3)],))],
    "column_stack": [Sample(([values(3), _M],))],
    "block_diag": [Sample((_M, np.array(2.0), values(3))), Sample((values(2, 2),)), Sample((values(0, 2), values(2, 1)))],
    "cartesian_prod": [Sample((values(2), values(3), values(2, seed=1))), Sample((values(3),))],
    "tile": [Sample((_M, (2, 3))), Sample((_M, (2,))), Sample((_M, (2, 1, 2))), Sample((np.array(1.5), (2,)))],
    "fliplr": [Sample((_X,))], "flipud": [Sample((_X,)), Sample((values(3),))],
    "rot90": [Sample((_X,)), Sample((_M, 2)), Sample((_X, 3, (1, 2))), Sample((_X, -1, (2, 0))), Sample((_M, 4))],
    "diag_embed": [Sample((_M,)), Sample((_M, 1, 0, 2)), Sample((_M, -2, 1, -1)), Sample((values(2, 0),))],
    "diag": [Sample((values(3),)), Sample((values(3), -1)), Sample((_M, 2)), Sample((_M,))],
    "diagflat": [Sample((_M,)), Sample((np.array(1.5), 1))],
    "select_scatter": [Sample((_X, values(2, 4), 1, -1))],
    "slice_scatter": [Sample((_M, values(3, 2, seed=1), 1, 0, 4, 2)), Sample((_M, values(2, 4, seed=1)), {"end": 2})],
    "diagonal_scatter": [Sample((_M, values(3, seed=1))), Sample((_X, values(2, 2, seed=1), -1, 1, 2))],
    "take_along_dim": [
        Sample((_M, indices(4, 3, 3), 1)), Sample((_M, indices(12, 5))), Sample((_X, indices(3, 1, 2, 4), 1)),
    ],
    "diff": [
        Sample((_M,)), Sample((_M, 2, 0)), Sample((_M, 1, 1, values(3, 1), values(3, 2))), Sample((values(1), 3)),
        Sample((_M, 0)),
    ],
    "searchsorted": [
        Sample((_SEQUENCE, _AMONG)), Sample((_SEQUENCE, _AMONG), {"right": True}),
        Sample((np.stack([_SEQUENCE, _SEQUENCE + 1]), _AMONG), {"side": "right", "out_int32": True}),
        Sample((_SEQUENCE[:0], _AMONG)),
    ],
    "bucketize": [Sample((_AMONG, _SEQUENCE)), Sample((_AMONG, _SEQUENCE), {"right": True})],
    "isin": [
        Sample((np.arange(6.0), np.array([3.0, 1, 9]))),
        Sample((np.array([[0.0, 2], [4, 5]]), np.array([4.0, 0])), {"invert": True}), Sample((np.arange(6.0), values(0))),
    ],
    "aminmax": [Sample((_X,)), Sample((_X,), {"dim": 1}), Sample((_X,), {"dim": 0, "keepdim": True})],
    "std_mean": [Sample((_X,)), Sample((_X, (0, 2)), {"keepdim": True}), Sample((_X,), {"dim": 1, "correction": 0})],
    "var_mean": [Sample((_X,)), Sample((_X, (0, 2)), {"keepdim": True}), Sample((_X,), {"dim": 1, "correction": 0})],
    "count_nonzero": [Sample((np.array([[0.0, 1, 2], [0, 0, 3]]),)), Sample((np.array([[0.0, 1, 2], [0, 0, 3]]), 1))],
    "nansum": [Sample((_HOLES,)), Sample((_X, 1)), Sample((_HOLES, (0, 2), True))],
    "nanmean": [Sample((_HOLES,)), Sample((_X, 1)), Sample((_HOLES, (0, 2), True))],
    "quantile": [
        Sample((_X, 0.3)), Sample((_X, np.array([0.1, 0.25, 0.6, 0.9]), 1)), Sample((_X, 0.7, 2, True)),
        Sample((_HOLES, np.array([0.0, 1.0]), 0)),
        *[Sample((_X, np.array([0.1, 0.55]), 2, True), {"interpolation": kind})
          for kind in ("lower", "higher", "midpoint", "nearest")],
    ],
    "nanquantile": [Sample((_X, 0.3)), Sample((_HOLES, np.array([0.0, 0.25, 1.0]), 1)),
                    Sample((_X, np.array([0.2, 0.6]), 2)), Sample((_HOLES, 0.6, 0, True))],
    "kthvalue": [Sample((_LAST, 2)), Sample((_LAST, 2, 0, True)), Sample((np.array(2.0), 1))],
    "msort": [Sample((_X,))],
    "cov": [
        Sample((_M,)), Sample((_M,), {"correction": 0}), Sample((values(5),)),
        Sample((_M,), {"fweights": np.array([1, 2, 1, 3]), "aweights": np.abs(values(4)) + 0.5}),
    ],
    "corrcoef": [Sample((_M,))],
    "trapezoid": [
        Sample((np.abs(_X),)), Sample((np.abs(_M), np.arange(4.0)), {"dim": 1}),
        Sample((_M + 9, np.cumsum(_M + 9, 0)), {"dim": 0}),
        Sample((np.abs(_M),), {"dx": 0.5, "dim": 0}), Sample((np.abs(_M), np.arange(3.0)), {"dim": 0}),
    ],
    "cumulative_trapezoid": [
        Sample((np.abs(_X),)), Sample((np.abs(_M), np.arange(4.0)), {"dim": 1}), Sample((np.abs(_M),), {"dx": 0.5, "dim": 0}),
    ],
    "cummax": [Sample((_X, 1)), Sample((np.array([1.0, 3, 3, np.nan, 2, np.inf]), 0)), Sample((values(2, 0), 1))],
    "cummin": [Sample((_X, -1)), Sample((np.array([1.0, 3, 1, np.nan, 2]), 0))],
    "logcumsumexp": [Sample((_X, 1)), Sample((np.array([-np.inf, 700.0, 710, -5]), 0))],
    "scatter_reduce": [
        Sample((*_INTO, reduce), {"include_self": own}) for reduce in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ],
    "index_reduce": [Sample((*_ROWS, reduce), {"include_self": own}) for reduce in ("prod", "mean", "amax", "amin")
                     for own in (True, False)],
    "vdot": [Sample((values(5), values(5, seed=1)))],
    "kron": [Sample((values(2, 3), values(4, 1, seed=1))), Sample((values(2), values(2, 3, seed=1))),
             Sample((_X, np.array(2.0)))],
    "cross": [Sample((values(4, 3), values(4, 3, seed=1))), Sample((values(3, 4), values(3, 4, seed=1), 0)),
              Sample((values(3, 1, 3), values(1, 2, 3, seed=1), 2))],
}
