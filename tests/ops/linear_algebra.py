"""Arguments for products, sums of products and norms."""

import numpy as np

from tests.ops.arguments import Sample, values

_X, _M = values(3, 4, 5), values(4, 6)

_SQUARE = values(2, 3, 3) + 4 * np.eye(3)
_POSITIVE = _SQUARE @ _SQUARE.transpose(0, 2, 1) / 8
_SYMMETRIC = _SQUARE + _SQUARE.transpose(0, 2, 1) - 8 * np.eye(3)
_PIVOTS = np.array([[3, 2, 3], [2, 3, 3]], np.int32)
LU_SOLVE = [
    Sample((_SQUARE, _PIVOTS, values(3, 2)), {"left": left, "adjoint": adjoint}) if left else
    Sample((_SQUARE[0], _PIVOTS[0], values(2, 2, 3)), {"left": left, "adjoint": adjoint})
    for left in (True, False) for adjoint in (True, False)
]

SAMPLES: dict[str, list[Sample]] = {
    "mm": [Sample((values(3, 4), values(4, 5)))], "bmm": [Sample((values(2, 3, 4), values(2, 4, 5)))],
    "mv": [Sample((values(3, 4), values(4)))], "dot": [Sample((values(5), values(5, seed=1)))],
    "inner": [Sample((values(2, 3, 4), values(5, 4))), Sample((values(4), values(4))), Sample((values(3), np.array(2.0)))],
    "outer": [Sample((values(3), values(4, seed=1)))], "vecdot": [Sample((_X, values(4, 5, seed=1))), Sample((_X, _X, 0))],
    "tensordot": [
        Sample((values(2, 3, 4), values(3, 4, 2))), Sample((values(2, 3, 4), values(4, 5, 3), [[1, 2], [2, 0]])),
        Sample((values(2), values(3), 0)),
    ],
    "einsum": [
        Sample(("ij,jk->ik", values(3, 4), values(4, 2))), Sample(("bqhd,bkhd->bhqk", values(2, 3, 2, 4), values(2, 5, 2, 4))),
        Sample(("ii->i", values(3, 3))), Sample(("ijk->j", _X)), Sample(("ij->ji", _M)), Sample(("i,j", values(3), values(2))),
        Sample(("ij,ij", _M, values(4, 6, seed=1))), Sample(("i,ij,j->", values(4), _M, values(6))), Sample(("ba", _M)),
        Sample(("...ij,...jk->...ik", values(2, 1, 3, 4), values(5, 4, 2))), Sample(("...ij->...ji", _X)),
        Sample(("iij,jk->ki", values(2, 2, 3), values(3, 4))), Sample(("i...,i...", values(2, 3), values(2, 3, seed=1))),
        Sample(("ij,kj->", values(1, 3), values(2, 3))), Sample(("ij,j->ij", _M, values(1))),
        Sample(("ij,jk->ik", _M, values(6, 0))),
    ],
    "addmm": [Sample((values(5), values(3, 4), values(4, 5))),
              Sample((values(3, 5), values(3, 4), values(4, 5)), {"beta": 3, "alpha": 2})],
    "addmv": [Sample((values(3), values(3, 4), values(4)), {"alpha": 3})],
    "addr": [Sample((values(3, 4), values(3), values(4, seed=1)), {"beta": 2, "alpha": 3})],
    "baddbmm": [Sample((values(2, 3, 5), values(2, 3, 4), values(2, 4, 5))),
                Sample((np.full((2, 3, 5), np.nan), values(2, 3, 4), values(2, 4, 5)), {"beta": 0})],
    "addbmm": [Sample((values(3, 5), values(2, 3, 4), values(2, 4, 5)), {"alpha": 2})],
    "norm": [Sample((_X,)), Sample((_X, 1, (0, 2))), Sample((_X, 3.0, 1, True)), Sample((_X, np.inf, -1)),
             Sample((_X, None, 0)), Sample((_X, -np.inf)), Sample((np.array(-2.0),)), Sample((values(0),))],
    "vector_norm": [Sample((_X, p, 1)) for p in (2, 1, 0.5, -1.5)] + [Sample((_X, 4, (0, 1), True)), Sample((_X, 0))],
    "matrix_norm": [Sample((_X, p)) for p in ("fro", 1, -1, np.inf, -np.inf)] + [Sample((_X, np.inf, (2, 0), True))],
    "normalize": [Sample((_X,)), Sample((_X, 1.0, -1)), Sample((_M, 3.0, 0)), Sample((_X, 2.0, (0, 2), 5.0))],
    "renorm": [Sample((_M, 2, 0, 1.5)), Sample((_X, 1, 1, 4.0)), Sample((_X, 3.0, -1, 100.0))],
    "trace": [Sample((values(3, 3),)), Sample((values(4, 2),)), Sample((values(0, 2),))],
    "dist": [Sample((_M, values(6, seed=1))), Sample((_M, values(4, 6, seed=1), 1))],
    "cdist": [Sample((values(27, 4), values(2, 4, seed=1))), Sample((values(2, 3, 4), values(5, 4, seed=1))),
              Sample((values(3, 4), values(2, 4, seed=1), 1.0)),
              Sample((values(3, 4), values(2, 4, seed=1), np.inf))],
    "solve": [
        Sample((_SQUARE, values(2, 3, 2))), Sample((_SQUARE, values(2, 3))), Sample((_SQUARE[0], values(3))),
        Sample((_SQUARE, values(3, 2))), Sample((_SQUARE[0], values(2, 3)), {"left": False}),
    ],
    "solve_triangular": [
        Sample((_SQUARE, values(2, 3, 2)), {"upper": True}), Sample((_SQUARE[0], values(3, 2)), {"upper": False}),
        Sample((_SQUARE[0], values(2, 3)), {"upper": True, "left": False, "unitriangular": True}),
    ],
    "cholesky_solve": [Sample((values(3, 2), _SQUARE[0])), Sample((values(3, 2), _SQUARE[1], True))],
    "cholesky_inverse": [Sample((_SQUARE[0],)), Sample((_SQUARE[1], True))],
    "triangular_solve": [
        Sample((values(3, 2), _SQUARE[0])), Sample((values(2, 3, 2), _SQUARE, False)),
        Sample((values(3, 2), _SQUARE[1], True, True)), Sample((values(3, 2), _SQUARE[1], False, True, True)),
    ],
    "least_squares": [
        Sample((values(2, 4, 3), values(2, 4, 2))), Sample((values(2, 3), values(2, 2))), Sample((_SQUARE, values(3, 2))),
    ],
    "inv": [Sample((_SQUARE,)), Sample((np.zeros((2, 0, 0)),))],
    "det": [Sample((_SQUARE,)), Sample((values(2, 2),))], "slogdet": [Sample((-_SQUARE[0],))],
    "logdet": [Sample((_POSITIVE[0],))], "pinv": [Sample((values(2, 4, 3),)), Sample((values(2, 3),))],
    "cholesky": [Sample((_POSITIVE,)), Sample((_POSITIVE[0], True))],
    "eigvalsh": [Sample((_POSITIVE,)), Sample((_POSITIVE, "U"))],
    "svdvals": [Sample((values(2, 3, 2),)), Sample((_SQUARE,))],
    "cholesky_ex": [Sample((_POSITIVE,)), Sample((_POSITIVE[0],), {"upper": True}), Sample((np.zeros((2, 0, 0)),))],
    "qr": [Sample((values(3, 2),)), Sample((values(1, 2, 3),)), Sample((values(2, 2), False))],
    "lu": [Sample((_SQUARE,)), Sample((values(3, 2),), {"get_infos": True})],
    "lu_factor": [Sample((values(2, 3, 2),)),],
    "lu_factor_ex": [
        Sample((_SQUARE,)), Sample((values(2, 3, 2),)), Sample((values(2, 4),)), Sample((np.array([[1.0, np.nan], [3, 4]]),)),
        Sample((np.array([[0.0, 0, 1], [0, 0, 2], [4, 5, 6]]),)),
    ],
    "lu_unpack": [
        Sample((_SQUARE, _PIVOTS)), Sample((values(2, 4), _PIVOTS[1, :1].repeat(2))), Sample((values(4, 3), _PIVOTS[0])),
        Sample((values(4, 3), _PIVOTS[0]), {"unpack_data": False}), Sample((_SQUARE, _PIVOTS), {"unpack_pivots": False}),
    ],
    "lu_solve": [Sample((values(2, 3, 2), _SQUARE, _PIVOTS)), Sample((values(3, 2), _SQUARE[0], _PIVOTS[0]))],
    "solve_ex": [
        Sample((_SQUARE, values(2, 3, 2))), Sample((_SQUARE, values(2, 3))), Sample((_SQUARE[0], values(3))),
        Sample((_SQUARE[0], values(2, 3)), {"left": False}),
    ],
    "orgqr": [Sample((values(2, 4, 3), values(2, 3) * 0.5)), Sample((values(3, 3), values(2)))],
    "ormqr": [
        Sample((values(2, 4, 2), values(2, 2), values(2, 4, 3))), Sample((values(4, 2), values(2), values(4, 3), True, True)),
        Sample((values(4, 2), values(2), values(3, 4), False)), Sample((values(4, 2), values(2), values(3, 4), False, True)),
    ],
    "geqrf": [Sample((values(4, 2),)), Sample((values(2, 2, 3),)), Sample((np.zeros((2, 0, 3)),))],
    "ldl_factor": [Sample((_SYMMETRIC,))],
    "ldl_factor_ex": [Sample((_SYMMETRIC,)), Sample((np.zeros((3, 3)),)), Sample((np.array([[0.0, 2], [2, 0]]),))],
    "ldl_solve": [Sample((_SQUARE, np.array([[1, 2, 3], [1, 2, 3]], np.int32), values(2, 3, 2)))],
    "inv_ex": [Sample((_SQUARE,)), Sample((np.zeros((2, 0, 0)),)), Sample((np.array([[1.0, 2], [2, 4]]),))],
}
