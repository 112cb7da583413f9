"""Arguments for losses of counts, of normal distributions and of margins, and for norms over neighbouring channels."""

import numpy as np

from tests.ops.arguments import Sample, indices, values

_X, _M = values(3, 4), values(2, 5, 4, 3)
_COUNTS = np.random.default_rng(1).poisson(2.0, (3, 4)) + 0.25
_VARIANCES = np.abs(values(3, 4, seed=3)) + 0.2
_TARGETS = np.array([[1, 3, -1, 0], [2, -1, 1, 1], [3, 2, 1, 0]])
_BITS = (values(3, 4, seed=2) > 0).astype(np.float64)
_LOGS = np.log(np.abs(values(6, 2, 4)) + 0.1)

SAMPLES: dict[str, list[Sample]] = {
    "poisson_nll_loss": [
        Sample((_X, _COUNTS)), Sample((_X, _COUNTS), {"full": True, "reduction": "sum"}),
        Sample((_VARIANCES, _COUNTS), {"log_input": False, "reduction": "none", "eps": 1e-2}),
    ],
    "gaussian_nll_loss": [
        Sample((_X, _COUNTS, _VARIANCES)), Sample((_X, _COUNTS, _VARIANCES[:, :1].copy()), {"full": True, "reduction": "sum"}),
        Sample((_X, _COUNTS, _VARIANCES[:, 0].copy()), {"reduction": "none"}),
        Sample((_X, _COUNTS, _VARIANCES), {"eps": 0.01}),
    ],
    "multi_margin_loss": [
        Sample((_X, indices(4, 3))), Sample((_X[0], np.array(2)), {"p": 2, "margin": 0.5}),
        Sample((_X, indices(4, 3)), {"weight": np.abs(values(4)), "reduction": "none", "p": 2}),
    ],
    "multilabel_margin_loss": [
        Sample((_X, _TARGETS)), Sample((_X, _TARGETS), {"reduction": "none"}), Sample((_X[0], _TARGETS[0])),
    ],
    "ctc_loss": [
        Sample((_LOGS, indices(3, 2, 3) + 1, np.array([6, 4]), np.array([3, 2])), {"reduction": reduction})
        for reduction in ("none", "sum", "mean")
    ],
    "multilabel_soft_margin_loss": [
        Sample((_X * 5, _BITS)), Sample((_X, _BITS), {"weight": np.abs(values(4)), "reduction": "none"}),
    ],
    "local_response_norm": [Sample((_M, 3)), Sample((_M, 2, 0.5, 0.6, 2.0)), Sample((_M, 9, 1.0))],
}
