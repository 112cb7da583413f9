"""What does not agree with PyTorch's databases: the entry, and why."""

COMPLEX = "complex numbers are no kind of value here"
INTERNAL = "a function of PyTorch's own insides"
MISSING = "not written yet"
LOOKS = "it looks at values, which one call for all examples cannot do"

# Entries that no check of passes.
_NONE = {
    **dict.fromkeys((
        "view_as_complex", "complex", "stft", "polar", "cdouble", "cfloat", "chalf", "linalg.eig", "linalg.eigvals",
    ), COMPLEX),
    **dict.fromkeys(("max_pool2d_with_indices_backward", "native_dropout_backward", "hash_tensor"), INTERNAL),
    **dict.fromkeys((
        "geqrf", "ormqr", "svd_lowrank", "pca_lowrank", "linalg.householder_product", "linalg.ldl_factor",
        "linalg.ldl_factor_ex", "linalg.ldl_solve", "nn.functional.multi_head_attention_forward",
        "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
    ), MISSING),
}
_SOME: dict[str, dict[str, str]] = {
    "operators vmap": dict.fromkeys((
        "linspace.tensor_overload", "logspace.tensor_overload", "mode", "histogram", "histc", "bincount", "nonzero_static",
        "argwhere",
    ), LOOKS),
    "operators jvp": {"logcumsumexp": "PyTorch's forward derivative is 3e-6 off its own backward one"},
}
KINDS = ("values", "gradients", "dtypes", "methods", "in-place", "out", "strided", "compile", "second", "vmap", "jvp", "errors")
FAILURES = {f"operators {kind}": {**_NONE, **_SOME.get(f"operators {kind}", {})} for kind in KINDS}

MODULE_KINDS = ("build", "repr", "values", "gradients", "copies", "state", "moves", "compile", "errors")
_NO_MODULE = dict.fromkeys(("FractionalMaxPool2d", "FractionalMaxPool3d"), MISSING)
FAILURES |= {f"modules {kind}": dict(_NO_MODULE) for kind in MODULE_KINDS}
FAILURES["modules errors"] |= {
    "NLLLoss": "log-probabilities and weights of two dtypes are promoted",
    "LinearCrossEntropyLoss": "weights of classes are compared with the classes where they are used",
}
