"""What does not agree with PyTorch's databases: the entry, and why."""

OVERWRITTEN = "PyTorch gives the one element that is overwritten a gradient"
ROUNDED = "sums that cancel are rounded to float32, in another order"
LOOKS = "PyTorch calls it for one example after the other; it looks at values, which one call for all cannot do"

_SOME: dict[str, dict[str, str]] = {
    "operators references": {
        **dict.fromkeys(("igamma", "igammac"), "PyTorch's is a number beside NaN"),
        **dict.fromkeys([f"polygamma.polygamma_n_{n}" for n in range(1, 5)], "PyTorch's is NaN at infinity, where it is 0"),
        "special.zeta": "PyTorch's is NaN at 1e20, where it is 0",
        "special.airy_ai": "PyTorch computes sines of what float32 does not hold",
        "signal.windows.kaiser": "PyTorch's Bessel function overflows, and their quotient is NaN",
        **dict.fromkeys(("special.hermite_polynomial_h", "nn.functional.grid_sample", "nn.functional.interpolate.bilinear",
                         "nn.functional.interpolate.bicubic"), ROUNDED),
        **dict.fromkeys([f"special.{name}" for name in (
            "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
            "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
        )], "degrees above 2^20 are refused; PyTorch's values of degree 1e20 are noise"),
    },
    # An element of 0.15 beside others of 2e4, on processors with AVX-512.
    **{f"operators {kind}": {"matrix_exp": ROUNDED} for kind in ("values", "methods", "strided")},
    "operators gradients": {
        "as_strided_scatter": OVERWRITTEN, "istft": "PyTorch finds no gradient of some windows, which have one",
    },
    "operators second": {
        "as_strided_scatter": OVERWRITTEN, "cov": ROUNDED,
        "matrix_exp": "PyTorch's is 6e-6 off where it is 1e14",
        "linalg.norm.subgradients_at_zero": "PyTorch's is NaN at zero",
        "masked.logaddexp": "PyTorch's is NaN beside -inf",
        "nn.functional.linear_cross_entropy.chunked": "PyTorch's leaves out what its chunks have derived already",
    },
    "operators dtypes": {
        **dict.fromkeys([*[f"polygamma.polygamma_n_{n}" for n in range(5)], "special.polygamma.special_polygamma_n_0"],
                        "PyTorch's is large, and of either sign, where it has a pole"),
        **dict.fromkeys(("special.bessel_y1", "special.bessel_j0"), "PyTorch's is 1e-5 off in float64"),
    },
    "operators errors": {"cov": "that weights are negative is seen in their values, which a call does not wait for"},
    "operators vmap": {**dict.fromkeys(("bincount", "argwhere"), LOOKS), "matrix_exp": ROUNDED},
    "operators complex gradients": {
        "as_strided_scatter": OVERWRITTEN,
        "istft": "PyTorch gives the window of a sample no gradient, and a copy of it one",
    },
    "operators complex second": {
        "as_strided_scatter": OVERWRITTEN,
        "matrix_exp": "PyTorch's is 6e-6 off where it is 1e14",
        "linalg.norm.subgradients_at_zero": "PyTorch's is NaN at zero",
    },
    "operators jvp": {
        "logcumsumexp": "PyTorch's forward derivative is 3e-6 off its own backward one",
        "cholesky_inverse": "PyTorch's forward derivative is 2e-5 off",
        "as_strided.partial_views": "a transform's argument is a copy, and lies elsewhere in its storage",
    },
}
KINDS = ("values", "references", "gradients", "dtypes", "methods", "in-place", "out", "strided", "compile", "second", "vmap",
         "jvp", "errors", "complex", "complex gradients", "complex second")
FAILURES = {f"operators {kind}": _SOME.get(f"operators {kind}", {}) for kind in KINDS}

MODULE_KINDS = ("build", "repr", "values", "gradients", "copies", "state", "moves", "compile", "errors")
FAILURES |= {f"modules {kind}": {} for kind in MODULE_KINDS}

FAILURES["sparse values"] = {}
FAILURES["nested values"] = {
    "index_put": "nested tensors are not written to by positions",
}
