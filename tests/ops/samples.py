"""Arguments for every row of the operation table.

Arrays of float64 stand for tensors and are converted to the dtype under test; other arrays keep their dtype.
"""

import numpy as np

from genesis.ir.dtypes import float64
from genesis.ops.layout import Layout
from genesis.ops.registry import OPERATIONS, PRIMITIVES
from tests.ops import arranging, elementwise, linear_algebra, margins, number_theory, recurrent, updates
from tests.ops.arguments import Sample, indices, values

# Rows that other rows and methods are made of, tested through those.
TRANSFORMS = {inverse + kind + axes for inverse in ("", "i") for kind in ("fft", "rfft", "hfft") for axes in ("", "2", "n")}
COMPLEX = {
    *TRANSFORMS, "stft", "istft", "eig", "eigvals", "complex", "conjugates", "real_parts", "imaginary_parts", "part_at",
    "put_part", "view_as_complex", "view_as_real",
}
COLLECTIVES = {  # there once `genesis.distributed` is imported, and tested on ranks
    "all_reduce", "reduce_to", "broadcast_from", "all_gather", "all_gather_transient", "reduce_scatter", "gather_to",
    "scatter_from", "all_to_all", "send_to", "receive_from", "exchange_with",
}
INTERNAL = {
    *COMPLEX, *COLLECTIVES, "view_at", "reshape_copy", "put", "dynamic_view", "dynamic_put", "to_dtype", "stop_gradient",
    "with_value", "overwrite", "index", "index_put", "uniform", "normal", "randint", "randperm",
    "dropout", "full", "arange", "eye", "linspace", "slice", "subscript", "sgd_update", "adam_update", "clip_to_norm",
    "clip_to_value", "clone",
    "unscale", "optimization_barrier",
    "rmsprop_update", "adagrad_update", "adadelta_update", "adamax_update", "asgd_update", "nadam_update",
    "radam_update", "rprop_update", "adafactor_update", "muon_update",
    "im2col", "log1pexp", "batch_statistics", "svd", "linalg_svd", "eigh", "matrix_exp", "recurrent",
    "linalg_lu", "linalg_lu_solve", "linalg_qr", "linalg_slogdet", "least_squares",
    "histogram_values", "even_histogram", "mode_index", "nonzero_indices", "bits_xor",
    "standard_gamma", "standard_beta", "dirichlet", "von_mises", "poisson", "binomial",
    "stirling_error", "digamma_error", "deviance", "gamma_divergence", "log_beta", "log_gamma_density", "log_beta_density",
    "log_dirichlet_density", "csr_matmul", "linear_dynamic",
}
NAN_AS_NUMPY = {"sign", "sgn", "copysign"}  # where torch's treatment of NaN, or of its sign, is not NumPy's
FLOATS = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -3.7, 1e-3, 20, 100, np.inf, -np.inf, np.nan, 1.5, -2.5, 0.3, 7])
INTEGERS = np.array([0.0, 1, -1, 2, -2, 3, 7, -7, 100, 5, 64])
COUNTS = np.array([1.0, 2, 3, 5, 7, 1, 2, 4, 6])  # divisors and shifts that every dtype can take
INTEGER_DIVISION = {"floor_divide", "remainder", "fmod", "bitwise_left_shift", "bitwise_right_shift", "pow"}


_X = values(3, 4, 5)
_REDUCTIONS = [Sample((_X,)), Sample((_X,), {"dim": 1}), Sample((_X,), {"dim": -1, "keepdim": True})]
_OVER_AXES = [*_REDUCTIONS, Sample((_X,), {"dim": (0, 2)}), Sample((values(2, 0),), {"dim": 1})]
_ROWS = [Sample((_X, -1)), Sample((_X, 0)), Sample((_X, 1))]
_M = values(4, 6)
_SHARES = np.random.default_rng(3).uniform(0.1, 0.9, (4, 6))  # probabilities
_SIGNS = np.where(values(4, 6, seed=4) > 0, 1, -1)
_ALL = np.random.default_rng(2).permutation(60).reshape(3, 4, 5).astype(np.float64)
_HOLES = np.array([[4.0, np.nan, 1, 3, np.nan, 2], [9, 5, 6, 7, 8, 0]])

SAMPLES: dict[str, list[Sample]] = {
    **arranging.SAMPLES, **elementwise.SAMPLES, **linear_algebra.SAMPLES, **number_theory.SAMPLES, **recurrent.SAMPLES,
    "sum": _OVER_AXES, "prod": [*_OVER_AXES, Sample((np.array([[2.0, 0, 3], [0, 0, 5], [2, 1, 3]]),), {"dim": 1})],
    "mean": _OVER_AXES, "any": [*_REDUCTIONS, Sample((values(2, 0),), {"dim": 1})],
    "all": [*_REDUCTIONS, Sample((values(2, 0),), {"dim": 1})], "amax": [*_REDUCTIONS, Sample((_X,), {"dim": (0, 2)})],
    "amin": [*_REDUCTIONS, Sample((_X,), {"dim": (0, 2)})], "argmax": _REDUCTIONS, "argmin": _REDUCTIONS,
    "max": _REDUCTIONS, "min": _REDUCTIONS, "var": _OVER_AXES[:4], "std": _OVER_AXES[:4],
    "softmax": _ROWS, "log_softmax": _ROWS, "logsumexp": [*_ROWS, Sample((_X, (0, 1), True))],
    "matmul": [
        Sample((values(3, 4), values(4, 5))), Sample((values(4), values(4))), Sample((values(3, 4), values(4))),
        Sample((values(4), values(4, 5))), Sample((values(2, 3, 4), values(4, 5))),
        Sample((values(2, 1, 3, 4), values(5, 4, 2))), Sample((values(3, 0), values(0, 2))),
    ],
    "linear": [Sample((values(2, 3, 4), values(5, 4), values(5))), Sample((values(3, 4), values(5, 4)))],
    "where": [Sample((_M > 0, _M, values(6, seed=3))), Sample((_M > 0, _M, 2.5))],
    "clamp": [Sample((_M, -1, 1)), Sample((_M,), {"min": 0}), Sample((_M, values(6, seed=1) - 1, values(6, seed=2) + 1))],
    "masked_scatter": [Sample((_M, _M > 0, values(30, seed=4))), Sample((_M, values(6, seed=2) > 0, values(24, seed=4)))],
    "gather": [Sample((_M, 0, indices(4, 3, 6))), Sample((_M, 1, indices(6, 4, 9)))],
    "scatter_add": [Sample((_M, 0, indices(4, 5, 6), values(5, 6))), Sample((_M, 1, indices(6, 4, 9), values(4, 9)))],
    "scatter": [Sample((_M, 1, np.array([[5, 0, 2]] * 4), values(4, 3, seed=5)))],
    "index_select": [Sample((_M, 0, indices(4, 7))), Sample((_X, 2, indices(5, 3)))],
    "embedding": [Sample((indices(4, 2, 3), _M))],
    "one_hot": [Sample((indices(4, 2, 3), 5))],
    "embedding_bag": [
        Sample((indices(4, 3, 2), _M)), Sample((indices(4, 3, 2), _M), {"mode": "sum", "per_sample_weights": values(3, 2)}),
        *[Sample((indices(4, 7), _M, np.array([0, 2, 2, 5])), {"mode": mode}) for mode in ("mean", "sum", "max")],
        Sample((indices(4, 3, 2), _M), {"mode": "max"}),
        Sample((indices(4, 7), _M, np.array([0, 3, 7])), {"include_last_offset": True, "padding_idx": 1}),
        Sample((indices(4, 3, 2), _M), {"mode": "max", "padding_idx": -3}),
    ],
    "cat": [Sample(([_M, values(2, 6)],)), Sample(([_M, values(4, 1), values(4, 0)], 1))],
    "stack": [Sample(([_M, values(4, 6, seed=9)],)), Sample(([_M, _M, _M], -1))],
    "tril": [Sample((_M,)), Sample((_X, -1))], "triu": [Sample((_M,)), Sample((_X, 1))],
    "cumsum": [Sample((_X, 1)), Sample((_X, -1)), Sample((values(2, 0), 0))],
    "cumprod": [Sample((_X, 1)), Sample((_X, -1)), Sample((values(2, 0), 0)), Sample((values(2, 0), 1)),
                Sample((np.array([[2.0, 0, 3, 0.5], [0, 1, 0, 5]]), 1))],
    "roll": [Sample((_X, 2)), Sample((_X, -1, 1)), Sample((_X, (1, 7), (0, 2))), Sample((_X, (1, 2), (1, 1))),
             Sample((values(2, 0), 1, 1))],
    "median": [Sample((_ALL,)), Sample((_ALL, 1)), Sample((_ALL, -1, True)), Sample((_HOLES,)), Sample((_HOLES, 1))],
    "nanmedian": [Sample((_ALL, 1)), Sample((_HOLES,)), Sample((_HOLES, 1, True))],
    "sort": [Sample((_X, 1)), Sample((_X,)), Sample((_X, 0, True))],
    "argsort": [Sample((_X, 1)), Sample((_HOLES,)), Sample((_X,), {"descending": True})],
    "topk": [Sample((_ALL, 2)), Sample((_ALL, 3, 1, False))],
    "silu": [Sample((_X,))], "gelu": [Sample((_X,)), Sample((_X,), {"approximate": "tanh"})],
    "leaky_relu": [Sample((_X,)), Sample((_X, 0.3))],
    "layer_norm": [Sample((_X, (5,))), Sample((_X, (4, 5), values(4, 5), values(4, 5, seed=2)))],
    "elu": [Sample((_X,)), Sample((_X, 0.5))], "celu": [Sample((_X, 0.5))], "selu": [Sample((_X,))],
    "softplus": [Sample((_X * 20,)), Sample((_X, 2.0, 1.0))], "softsign": [Sample((_X,))], "logsigmoid": [Sample((_X * 20,))],
    "mish": [Sample((_X,))], "hardtanh": [Sample((_X,)), Sample((_X, -2, 1.5))], "relu6": [Sample((_X * 4,))],
    "hardsigmoid": [Sample((_X * 2,))], "hardswish": [Sample((_X * 2,))], "hardshrink": [Sample((_X,)), Sample((_X, 1.5))],
    "softshrink": [Sample((_X,)), Sample((_X, 1.5))], "tanhshrink": [Sample((_X,))], "threshold": [Sample((_X, 0.5, 7.0))],
    "prelu": [Sample((_X, np.array([0.25]))), Sample((_X, values(4)))], "glu": [Sample((_M,)), Sample((_X, 1))],
    "bilinear": [Sample((values(2, 3, 2), values(2, 3, 4), values(5, 2, 4), values(5)))],
    "softmin": [Sample((_X, 1))],
    "cosine_similarity": [Sample((_X, values(3, 4, 5, seed=1))), Sample((_M, values(4, 6, seed=1), 0))],
    "pairwise_distance": [Sample((_M, values(4, 6, seed=1))), Sample((_M, values(4, 6, seed=1), 3.0)),
                          Sample((_M, values(4, 6, seed=1), 1.0, 1e-6, True))],
    "smooth_l1_loss": [Sample((_M, values(4, 6, seed=1))),
                       Sample((_M, values(4, 6, seed=1)), {"reduction": "sum", "beta": 0.5})],
    "huber_loss": [Sample((_M, values(4, 6, seed=1))), Sample((_M, values(4, 6, seed=1)), {"reduction": "none", "delta": 2.0})],
    "kl_div": [Sample((_M, np.abs(values(4, 6, seed=1))), {"reduction": "batchmean"}),
               Sample((_M, values(4, 6, seed=1)), {"reduction": "sum", "log_target": True})],
    "binary_cross_entropy": [
        Sample((_SHARES, _SHARES[::-1].copy())), Sample((_SHARES, _SHARES[::-1].copy(), _SHARES), {"reduction": "sum"}),
    ],
    "binary_cross_entropy_with_logits": [
        Sample((_M, _SHARES)), Sample((_M * 30, _SHARES), {"reduction": "none"}),
        Sample((_M, _SHARES, _SHARES), {"pos_weight": np.abs(values(6)), "reduction": "sum"}),
    ],
    "margin_ranking_loss": [Sample((_M, values(4, 6, seed=1), _SIGNS, 0.5))],
    "hinge_embedding_loss": [Sample((_M, _SIGNS)), Sample((_M, _SIGNS, 2.0), {"reduction": "sum"})],
    "soft_margin_loss": [Sample((_M, _SIGNS))],
    "cosine_embedding_loss": [Sample((_M, values(4, 6, seed=1), _SIGNS[:, 0], 0.1))],
    "triplet_margin_loss": [
        Sample((_M, values(4, 6, seed=1), values(4, 6, seed=2))),
        Sample((_M, values(4, 6, seed=1), values(4, 6, seed=2)), {"swap": True, "margin": 2.0, "reduction": "sum"}),
    ],
    "scaled_dot_product_attention": [
        Sample((values(2, 3, 4), values(2, 5, 4), values(2, 5, 2))),
        Sample((values(3, 4), values(3, 4), values(3, 2), None, 0, True)),
        Sample((values(1, 2, 3, 4), values(2, 2, 5, 4), values(2, 2, 5, 2), values(3, 5, seed=7) > 0), {"scale": 0.3}),
        Sample((values(2, 3, 4), values(2, 5, 4), values(2, 5, 2), values(3, 5, seed=7))),
        Sample((values(1, 4, 3, 2), values(1, 2, 3, 2), values(1, 2, 3, 2)), {"enable_gqa": True, "is_causal": True}),
    ],
    "batch_norm": [
        Sample((values(4, 3), values(3), np.abs(values(3)) + 1, values(3, seed=1), values(3, seed=2))),
        Sample((values(2, 3, 4), None, None, values(3, seed=1), values(3, seed=2), True)),
    ],
    "group_norm": [Sample((values(2, 4, 3), 2, values(4), values(4, seed=1))), Sample((values(3, 6), 3))],
    "rms_norm": [Sample((_X, (5,), values(5), 1e-6)), Sample((_X * 1e-4, (5,)))],
    "mse_loss": [Sample((_M, values(4, 6, seed=1))), Sample((_M, values(4, 6, seed=1)), {"reduction": "sum"})],
    "l1_loss": [Sample((_M, values(4, 6, seed=1)), {"reduction": "none"})],
    "cross_entropy": [
        Sample((_M, indices(6, 4))), Sample((_M, indices(6, 4)), {"reduction": "none", "label_smoothing": 0.1}),
        Sample((_X, indices(4, 3, 5)), {"reduction": "sum"}),
        Sample((_M, np.array([1, -100, 5, 0])), {"weight": np.abs(values(6)), "label_smoothing": 0.2}),
    ],
    **margins.SAMPLES,
    "grid_sample": [
        *[Sample((values(1, 2, 3, 4), values(1, 2, 2, 2, seed=1) / 2, mode, padding), {"align_corners": corners})
          for mode, padding, corners in (
              ("bilinear", "zeros", True), ("bilinear", "border", False), ("bilinear", "reflection", True),
              ("bilinear", "reflection", False), ("nearest", "zeros", False), ("bicubic", "zeros", False),
              ("bicubic", "reflection", True), ("bicubic", "border", False))],
        Sample((values(1, 1, 3, 2, 2), values(1, 2, 1, 1, 3, seed=1) / 2, "bilinear", "zeros", False)),
        Sample((values(1, 1, 3, 2, 2), values(1, 2, 1, 1, 3, seed=1) / 2, "nearest", "border", True)),
    ],
    "nll_loss": [
        Sample((_M, np.array([1, -100, 5, 0])), {"weight": np.abs(values(6))}), Sample((_M, indices(6, 4))),
        Sample((_X, indices(4, 3, 5))),
    ],
    "reshape": [Sample((_X, (4, 15))), Sample((_X, (-1,))), Sample((_X, (2, 2, 15)))],
    "view": [Sample((_X, (4, 15))), Sample((_X, (5, -1)))],
    "permute": [Sample((_X, (2, 0, 1)))], "transpose": [Sample((_X, 0, 2)), Sample((_X, -1, -2))],
    "sum_to_size": [Sample((_X, (4, 1))), Sample((_X, (3, 1, 5))), Sample((_X, (1,)))],
    "expand": [Sample((values(3, 1), (3, 4))), Sample((values(4), (2, 3, -1)))],
    "squeeze": [Sample((values(1, 3, 1),)), Sample((values(1, 3, 1), 0)), Sample((values(1, 3, 1), (0, 2)))],
    "unsqueeze": [Sample((_M, 0)), Sample((_M, -1))],
    "flatten": [Sample((_X,)), Sample((_X, 1)), Sample((_X, 0, 1))], "unflatten": [Sample((_M, 1, (2, -1)))],
    "flip": [Sample((_X, (0, 2))), Sample((_X, (1,)))], "narrow": [Sample((_X, 1, 1, 2))],
    "narrow_copy": [Sample((_X, 1, 1, 2))],
    "select": [Sample((_X, 1, -1)), Sample((_X, 0, 0))],
    "diagonal": [Sample((_X,)), Sample((_X, 1, 1, 2)), Sample((_M, -2))],
    "unfold": [
        Sample((_M, 1, 3, 1)), Sample((_M, 0, 2, 2)), Sample((_X, -1, 3, 2)), Sample((_X, 1, 4, 1)), Sample((_X, 2, 1, 3)),
        Sample((np.array(1.5), 0, 1, 1)), Sample((_M, 1, 0, 4)),
    ],
    "pad": [
        Sample((_M, (1, 2))), Sample((_X, (0, 1, 2, -1), "constant", 1.5)), Sample((_X, (2, 1), "reflect")),
        Sample((_X, (2, 3, 1, 0), "replicate")), Sample((_X, (4, -1), "circular")),
    ],
    "fold": [Sample((values(2, 12, 6), (3, 4), 2)), Sample((values(9, 6), (5, 4), 3, 1, 1, (2, 2))),
             Sample((values(4, 6), (4, 5), 2, 2))],
    "conv1d": [
        Sample((values(2, 3, 7), values(4, 3, 3), values(4))),
        Sample((values(2, 7), values(4, 1, 2)), {"groups": 2, "stride": 2}),
        Sample((values(1, 2, 6), values(2, 2, 4), None, 1, "same", 1)),
    ],
    "conv2d": [
        Sample((values(2, 2, 4, 5), values(3, 2, 3, 2), values(3)), {"padding": (1, 0), "stride": (1, 2)}),
        Sample((values(2, 5, 4), values(2, 1, 2, 2)), {"dilation": 2, "groups": 2, "padding": "valid"}),
        Sample((values(1, 2, 3, 3), values(2, 2, 1, 1))),
    ],
    "conv3d": [Sample((values(1, 2, 3, 2, 3), values(2, 2, 2, 1, 2), values(2), 1, 1))],
    "conv_transpose1d": [
        Sample((values(2, 2, 4), values(2, 3, 3), values(3), 2, 1, 1)),
        Sample((values(2, 3), values(2, 2, 2), None, 1, 0, 0, 2)),
    ],
    "conv_transpose2d": [
        Sample((values(1, 2, 3, 2), values(2, 2, 3, 2), values(2)), {"stride": (2, 1), "padding": (1, 0)}),
        Sample((values(1, 2, 3, 2), values(2, 1, 2, 2)), {"dilation": 2, "groups": 2, "output_padding": 1}),
    ],
    "conv_transpose3d": [Sample((values(1, 2, 2, 1, 2), values(2, 1, 2, 2, 1)))],
    "max_pool1d": [Sample((_X, 2)), Sample((_X, 3, 1, 1, 2))],
    "max_pool2d": [
        Sample((_X, 2)), Sample((_X, (3, 2), (1, 2), (1, 0))), Sample((_X, 2, 2, 0, 1, True)),
        Sample((values(1, 2, 1, 3), 2, 2, 0, 1, True)),
        Sample((_X, 2), {"return_indices": True, "padding": 1, "dilation": 2, "stride": 1}),
    ],
    "max_pool3d": [Sample((values(1, 3, 4, 2), 2))],
    "avg_pool1d": [Sample((_X, 2)), Sample((_X, 3, 2, 1, True, False))],
    "avg_pool2d": [
        Sample((_X, 2)), Sample((_X, (3, 2), 1, (1, 0), False, False)), Sample((_X, 2, 2, 1, True, True)),
        Sample((_X, 3, 2, 1, True, False)), Sample((_X, 2), {"divisor_override": 3}),
    ],
    "avg_pool3d": [Sample((values(1, 3, 4, 2), 2, 1))],
    "lp_pool1d": [Sample((np.abs(_X), 2, 3, 1)), Sample((np.abs(_X), 3.0, 2))],
    "lp_pool2d": [Sample((np.abs(_X), 2, 2)), Sample((np.abs(_X), 3.0, (1, 2), 1))],
    "lp_pool3d": [Sample((np.abs(values(1, 3, 4, 2)), 2, 2)), Sample((np.abs(values(1, 2, 3, 4, 2)), 3.0, (1, 2, 2), 1))],
    "adaptive_avg_pool1d": [Sample((_X, 3)), Sample((_X, 5))],
    "adaptive_avg_pool2d": [Sample((_X, 2)), Sample((_X, (None, 3)))],
    "adaptive_avg_pool3d": [Sample((values(1, 3, 4, 5, 3), (2, None, 2)))],
    "adaptive_max_pool3d": [Sample((values(1, 3, 4, 5, 3), (2, 3, None), True))],
    "pixel_shuffle": [Sample((values(2, 8, 3, 2), 2)), Sample((values(9, 1, 2), 3))],
    "pixel_unshuffle": [Sample((values(2, 1, 4, 6), 2))], "channel_shuffle": [Sample((values(2, 6, 3, 2), 3))],
    "interpolate": [
        Sample((values(1, 2, 5), 8)), Sample((values(1, 2, 6), None, 2.0)), Sample((values(1, 2, 3, 4), (6, 3))),
        Sample((values(1, 2, 3, 4), None, (1.7, 0.6), "nearest-exact")), Sample((values(1, 1, 2, 3, 2), None, 2)),
        Sample((values(1, 2, 5), 8, None, "linear")), Sample((values(1, 2, 5), 3, None, "linear", True)),
        Sample((values(1, 2, 3, 4), None, 2, "bilinear")), Sample((values(1, 2, 3, 4), (7, 2), None, "bilinear", True)),
        Sample((values(1, 2, 3, 4), None, (1.7, 0.6), "bilinear", False)),
        Sample((values(1, 1, 3, 4), None, 1.7, "bilinear", False, True)),
        Sample((values(1, 1, 3, 4), (5, 6), None, "bicubic")), Sample((values(1, 1, 3, 4), (1, 6), None, "bicubic", True)),
        Sample((values(1, 1, 2, 3, 2), (3, 2, 4), None, "trilinear")), Sample((values(1, 2, 5, 4), (2, 3), None, "area")),
    ],
    "adaptive_max_pool1d": [Sample((_X, 3)), Sample((_X, 1))],
    "adaptive_max_pool2d": [Sample((_X, 2)), Sample((_X, (3, None), True))],
}

# Calls of internal rows, at which they are differentiated.
_POSITIVE = np.abs(values(2, 3)) + 0.5
_LARGE = np.array([0.7, 9.0, 30.0, 250.0])
INTERNAL_SAMPLES: dict[str, list[Sample]] = {
    **updates.SAMPLES,
    "grid_sample": [
        Sample((values(1, 1, 2, 3), values(1, 1, 2, 2, seed=1) / 2, *settings))
        for settings in (("bilinear", "zeros", True), ("bicubic", "reflection", False))
    ],
    **{name: [Sample((values(2, 3),))] for name in ("airy_ai", "airy_slope")},
    "stirling_error": [Sample((_LARGE,))], "digamma_error": [Sample((_LARGE,))],
    "log_beta": [Sample((_LARGE, _LARGE[::-1] + 1))],
    "deviance": [Sample((_LARGE, _LARGE[::-1] + 20)), Sample((_LARGE, _LARGE * 1.1))],
    "gamma_divergence": [Sample((_LARGE, _LARGE[::-1] + 20, _LARGE * 1.1))],
    "log_gamma_density": [Sample((_LARGE, _LARGE[::-1] / 2 + 3)), Sample((_LARGE, _LARGE * 1.1))],
    "log_beta_density": [Sample((_LARGE, _LARGE[::-1] + 1, np.log(_SHARES[0, :4]), np.log1p(-_SHARES[0, :4])))],
    "log_dirichlet_density": [Sample((_LARGE, np.log(_SHARES[:2, :4])))],
    "histogram_values": [
        Sample((values(6), None, values(6, seed=1), (4,), None, False)),
        Sample((values(2, 3), None, None, (2,), (-1, 1), True)),
        Sample((values(5), np.array([-1.0, 0, 2]), None, (2,), None, False)),
        Sample((values(5, 2), np.array([-1.0, 0, 2, -1, 1]), None, (2, 1), None, True)),
    ],
    "even_histogram": [Sample((values(6), 4, None)), Sample((values(2, 3), 3, (-1, 1)))],
    "csr_matmul": [Sample((
        np.array([0, 2, 2, 3]), np.array([0, 0, 2]), np.array([1, 3, 0]), values(3), values(4, 2, seed=1)))],
    "bits_xor": [Sample((_M, (1,), False)), Sample((_M, (0, 1), True))],
    "mode_index": [Sample((np.round(_M), 1)), Sample((np.round(_M), 0))],
    "nonzero_indices": [Sample((np.round(_M), 8, -1)), Sample((values(2, 3), 9, -1))],
    "matrix_exp": [Sample((values(2, 2, 2) / 4,))], "polygamma": [Sample((1, _POSITIVE)), Sample((2, _POSITIVE))],
    "svd": [Sample((values(3, 2),)), Sample((values(2, 3),))],
    "linalg_lu": [Sample((values(2, 3, 2),)), Sample((values(2, 4),)),
                  Sample((values(3, 3) + 3 * np.eye(3),), {"pivot": False})],
    "linalg_lu_solve": linear_algebra.LU_SOLVE, "lu_factor_ex": [Sample((values(2, 3, 2),)), Sample((values(2, 4),))],
    "linalg_slogdet": [Sample((values(2, 2),))],
    "linalg_qr": [Sample((values(3, 2),)), Sample((values(2, 2), "complete")), Sample((values(2, 3), "r"))],
    "inv_ex": [Sample((values(2, 2, 2),))],
    "linalg_svd": [Sample((values(2, 2, 3), False)), Sample((values(2, 2),))],
    "view_at": [Sample((_M, Layout((2, 3), (6, 2), 1))), Sample((_M, Layout((3, 4), (0, 6), 2)))],
    "reshape_copy": [Sample((values(2, 3), (3, 2)))],
    "put": [Sample((_M, values(3, 2), (3, 2), (6, 3), 1)), Sample((_M, values(4), (4,), (-6,), 18))],
    "dynamic_view": [Sample((_M, np.array(1), (2, 3), (6, 2))), Sample((_M, np.array(23), (2,), (-5,)))],
    "dynamic_put": [
        Sample((_M, values(3, 2), np.array(1), (3, 2), (6, 3))), Sample((_M, values(4), np.array(18), (4,), (-6,))),
    ],
    "subscript": [Sample((_M, (1, (None, None, 2)))), Sample((_M, (None, (3, 0, -1), 2)))],
    "slice": [Sample((_M, 1, 1, 6, 2))],
    "index": [Sample((_X, (1,), indices(4, 2, 3))), Sample((_X, (0, 2), indices(3, 2), indices(5, 3, 1)))],
    "index_put": [
        Sample((_M, values(3, 6), (0,), True, "index", True, np.array([1, 1, 3]))),
        Sample((_M, values(2), (1,), False, "index_copy", False, np.array([4, 0]))),
    ],
    "to_dtype": [Sample((_M, float64))], "clone": [Sample((_M,))], "stop_gradient": [Sample((_M,))],
    "full": [Sample((np.array(2.5), (2, 3), float64))], "arange": [Sample((np.array(2.5), np.array(0.5), 4, float64))],
    "eye": [Sample((np.array(2.5), 3, 2, float64)), Sample((np.array(2.5), 2, 5, float64))],
    "linspace": [Sample((np.array(2.5), np.array(-0.5), 5)), Sample((np.array(2.0), np.array(9.0), 5, float64))],
    "dropout": [Sample((_M, 7, 0, 0.5))],
    "batch_statistics": [Sample((values(3, 2, 4), values(2), np.abs(values(2)), 0.25))],
    "im2col": [Sample((values(1, 2, 4, 3), (3, 2), 1, 1, 2))],
}
NOT_DIFFERENTIATED = {
    **dict.fromkeys(COLLECTIVES, "needs ranks: see tests/distributed/gradients_script.py"),
    **dict.fromkeys(
        ("cholesky", "cholesky_ex", "eigh", "eigvalsh"), "of symmetric matrices: see tests/library/test_decompositions.py"),
    **dict.fromkeys(("cholesky_inverse", "cholesky_solve"), "by both triangles: see test_cholesky_gradients.py"),
    **dict.fromkeys(("floor_divide", "geqrf", "ldl_factor", "ldl_factor_ex"), "has no gradient, as in torch"),
    "ldl_solve": "its gradient is that by B alone: see tests/library/test_factors.py",
    "ctc_loss": "has no second one: see tests/nn/test_sequences.py",
    **dict.fromkeys(("gcd", "lcm", "one_hot"), "takes integers alone"),
    "muon_update": "computes in bfloat16: see tests/optim",
    "linear_dynamic": "has no gradient: see tests/ao",
    "with_value": "its gradient is that of another value, by design",
    **dict.fromkeys(COMPLEX, "of complex numbers: see tests/tensor/test_complex.py, tests/library/test_fourier.py"),
    "uniform": "random", "normal": "random", "randint": "random", "randperm": "random",
    **dict.fromkeys(("standard_gamma", "standard_beta", "dirichlet", "von_mises", "poisson", "binomial"),
                    "random: see tests/distributions/test_gradients.py"),
}
KINKS = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -3, 2.5, 30])


def gradient_samples(name):
    """The calls at which operation `name` is differentiated: few elements, all finite, no kinks near."""
    if name in INTERNAL_SAMPLES:
        return INTERNAL_SAMPLES[name]
    if name in SAMPLES:
        return [sample for sample in SAMPLES[name] if _is_finite(sample)]
    inside = np.random.default_rng(0).uniform(0.15, 0.85, (2, 3)) + (name == "acosh")
    return [Sample((inside,) if len(OPERATIONS[name].operands) == 1 else (inside, inside[0] * 0.7 + 0.1))]


def _is_finite(sample):
    return all(np.isfinite(a).all() for a in sample.arguments if isinstance(a, np.ndarray) and a.dtype == np.float64)


def is_elementwise(name):
    return name not in SAMPLES and name in PRIMITIVES and PRIMITIVES[name].kind == "elementwise"


def samples_of(name, dtype):
    """The calls to try operation `name` with in `dtype`."""
    if name == "topk" and dtype.category == 0:
        return []  # torch promises no order among equal elements
    if name == "interpolate" and dtype.name == "uint8":
        return []  # torch weighs bytes in fixed point
    operation = OPERATIONS[name]
    if name in SAMPLES:
        return SAMPLES[name]
    special = FLOATS if dtype.is_floating_point else INTEGERS if dtype.is_signed else np.abs(INTEGERS)
    if name in NAN_AS_NUMPY:
        special = special[~np.isnan(special)]
    if len(operation.operands) == 1:
        return [Sample((special,)), Sample((values(7, 9),))]
    other = COUNTS if name in INTEGER_DIVISION and dtype.category < 2 else special
    pair = np.repeat(special, len(other)), np.tile(other, len(special))
    return [Sample(pair), Sample((special, float(other[6])))]
