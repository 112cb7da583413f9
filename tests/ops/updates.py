"""Calls of the rows that optimizers and what clips gradients are made of."""

import numpy as np

from tests.ops.arguments import Sample, values

_M = values(4, 6)
_POSITIVE = np.abs(values(2, 3)) + 0.5
_BY_SQUARES = ([values(2, 3)], [values(2, 3, seed=1)], [values(2, 3, seed=2)], [_POSITIVE], 0.1, 0.2, 1e-3, 0.9, 0.1, 0.9, 0.1,
               0.01, 0.99, True)

SAMPLES: dict[str, list[Sample]] = {
    "sgd_update": [
        Sample(([_M], [values(4, 6)], [], 0.1, 0, 1, 0, False, False)),
        Sample(([_M], [values(4, 6, seed=1)], [values(4, 6, seed=2)], 0.1, 0.9, 1, 0.01, True, True)),
    ],
    "adam_update": [
        Sample(([values(2, 3)], [values(2, 3, seed=1)], [values(2, 3, seed=2)], [_POSITIVE], [], 0.1, 1e-3, 0.9, 0.1, 0.9,
                0.1, 0.01, 0.99, False)),
    ],
    "rmsprop_update": [
        Sample(([_M], [values(4, 6)], [np.abs(values(4, 6)) + 0.5], [], [], 0.1, 0.9, 0.1, 1e-3, 0, 0, False)),
        Sample(([values(2, 3)], [values(2, 3, seed=1)], [_POSITIVE + 1], [values(2, 3, seed=2) * 0.1], [values(2, 3, seed=3)],
                0.1, 0.9, 0.1, 1e-3, 0.1, 0.9, True)),
    ],
    "adamax_update": [
        Sample(([values(2, 3)], [values(2, 3, seed=1)], [values(2, 3, seed=2)], [_POSITIVE], 0.1, 1e-3, 0.9, 0.1, 0.9, 0.01,
                False)),
    ],
    "nadam_update": [Sample(_BY_SQUARES)], "radam_update": [Sample(_BY_SQUARES)],
    "adadelta_update": [
        Sample(([values(2, 3)], [values(2, 3, seed=1)], [_POSITIVE], [_POSITIVE[::-1].copy()], 0.5, 0.9, 0.1, 1e-3, 0.1,
                False)),
    ],
    "asgd_update": [Sample(([values(2, 3)], [values(2, 3, seed=1)], [values(2, 3, seed=2)], 0.1, 0.9, 0.5, 0.1, False))],
    "rprop_update": [
        Sample(([values(2, 3)], [values(2, 3, seed=1)], [values(2, 3, seed=2)], [_POSITIVE], 0.5, 1.2, 0.1, 9.0, False)),
    ],
    "adafactor_update": [
        Sample(([_M], [values(4, 6, seed=1)], [], [], [np.abs(_M) + 0.5], 0.1, 1e-3, 0.99, 0.9, 0.1, 0.2, 1e-3, False)),
        Sample(([values(2, 3)], [values(2, 3, seed=1)], [_POSITIVE[:, :1]], [_POSITIVE[:1]], [], 0.1, 1e-3, 1, 0.9, 0.1, 0.2,
                1e-3, True)),
    ],
    "adagrad_update": [Sample(([values(2, 3)], [values(2, 3, seed=1)], [_POSITIVE], 0.1, 1e-3, 0.1, False))],
    "clip_to_norm": [Sample(([values(2, 3), values(4)], 1.0, 2.0)), Sample(([values(2, 3)], 1.0, float("inf")))],
    "unscale": [Sample(([values(2, 3), values(4)], 0.5))], "clip_to_value": [Sample(([values(2, 3)], -1.0, 1.0))],
}
