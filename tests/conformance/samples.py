"""The entries of PyTorch's operator database: the functions they are about, and their samples beside torch's results."""

import contextlib
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

import genesis
from genesis.as_torch.stand_ins import aten
from tests.conformance.converting import COMPLEX, DTYPES, UnconvertibleError, converted, function_at, leaves

# What the entries' names have no counterpart for: private names, other kinds of values, code for a device.
_PREFIXES = ("_", "torch.", "jiterator_", "sparse.", "to_sparse")
_DUNDERS = ("__r", "__getitem__")
ATTENTION = ("nn.functional.multi_head_attention_forward",)  # whose tenth argument is a probability
RANDOM = {
    "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform", "bernoulli", "multinomial", "rand_like", "randn",
    "randn_like", "randint", "randint_like", "empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided",
    "empty_permuted", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d", "nn.functional.rrelu",
    "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout", "svd_lowrank", "pca_lowrank",
    "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d",
}
TIED = {"topk", "sort", "argsort", "msort", "kthvalue", "mode"}  # which of equal elements comes first is not promised


def entries():
    """The entries that the suite is about: those of public names."""
    return [op for op in op_db if (not op.name.startswith(_PREFIXES) or op.name.startswith(_DUNDERS))
            and {*op.dtypes} & {*DTYPES, *COMPLEX}]


def title(op):
    """The entry's name with its variant's."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def _max_pool2d_backward(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False, **_):
    settings = kernel_size, stride or kernel_size, padding, dilation, ceil_mode
    values, indices = genesis.nn.functional.max_pool2d(input, *settings, return_indices=True)
    return aten.max_pool2d_with_indices_backward(genesis.ones_like(values), input, *settings, indices)


# Entries whose function takes other arguments than the public one.
_CALLED = {
    "einsum": lambda tensors, equation: genesis.einsum(equation, *tensors),
    "nn.functional.embedding": lambda weight, index, **kwargs: genesis.nn.functional.embedding(index, weight, **kwargs),
    "nn.functional.embedding_bag": lambda weight, index, *args, **kwargs: genesis.nn.functional.embedding_bag(
        index, weight, *args, **kwargs),
    "linalg.pinv.singular": lambda a, b: genesis.linalg.pinv(a @ b.mT),
    "linalg.lstsq.grad_oriented": lambda a, b, driver: genesis.linalg.lstsq(a, b, driver=driver)[0:2],
    "nn.functional.multi_head_attention_forward": lambda *args, **kwargs: genesis.nn.functional.multi_head_attention_forward(
        *args, **kwargs),
    "normal.in_place": lambda x, *args, **kwargs: x.clone().normal_(*args, **kwargs),
    "where": lambda x, condition, other, **kwargs: genesis.where(condition, x, other, **kwargs),
    "max_pool2d_with_indices_backward": _max_pool2d_backward,
    "native_dropout_backward": aten.native_dropout_backward,
    "zero_": lambda x: x.clone().zero_(),  # a leaf is not written to
    "svd_lowrank": lambda a, b, **kwargs: genesis.svd_lowrank(a @ b.mT, **kwargs),
    "pca_lowrank": lambda a, b, **kwargs: genesis.pca_lowrank(a @ b.mT, **kwargs),
}


_POLYGAMMA = {"polygamma": "polygamma", "special.polygamma": "special.polygamma"}
_CONVERSIONS = {"bool", "byte", "char", "double", "float", "half", "bfloat16", "int", "long", "short", "cfloat", "cdouble",
                "chalf"}
SIGNS = {"svd", "linalg.svd", "linalg.eigh", "linalg.eig"}  # their vectors may have either sign: compared by magnitude


def ours(op):
    """The operation: a function below `genesis`, or a method; raises AttributeError."""
    name = op.name
    if (title(op) in _CALLED) or name in _CALLED:
        return _CALLED.get(title(op)) or _CALLED[name]
    if name in _POLYGAMMA:
        function = function_at(name)
        return lambda x, n, **kwargs: function(n, x, **kwargs)
    if name in _CONVERSIONS:
        return getattr(genesis.Tensor, name)
    if name.startswith("__"):
        return getattr(genesis.Tensor, name)
    with contextlib.suppress(AttributeError):
        return function_at(name)
    if name.removesuffix("_") in ("cauchy", "exponential", "geometric", "log_normal", "normal", "uniform"):
        return lambda x, *args, **kwargs: getattr(x.clone(), f"{name}_")(*args, **kwargs)
    if "." in name or (not hasattr(torch.Tensor, name) and not hasattr(torch, name)):
        raise AttributeError(f"genesis has no {name}")
    if not hasattr(genesis.Tensor, name):
        raise AttributeError(f"Tensor has no {name}")
    if isinstance(getattr(genesis.Tensor, name), property):
        return lambda x: getattr(x, name)
    return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def dtype_for(op, wanted=torch.float32):
    """The dtype that samples are taken in."""
    for dtype in (wanted, torch.float32, torch.int64, torch.bool):
        if dtype in op.dtypes:
            return dtype
    return next(dtype for dtype in (*DTYPES, *COMPLEX) if dtype in op.dtypes)


def samples(op, dtype=None, grad=False, limit=None, small=False, references=False):
    """Those samples that can be converted, or with `references` the greater number that PyTorch's own references meet."""
    torch.manual_seed(0)
    found = (op.reference_inputs if references else op.sample_inputs)("cpu", dtype or dtype_for(op), requires_grad=grad)
    count = 0
    for sample in found:
        if small and sum(t.numel() for t in leaves([sample.input, sample.args, sample.kwargs], torch.Tensor)) > 4096:
            continue
        with contextlib.suppress(UnconvertibleError):
            converted([sample.input, sample.args, sample.kwargs])
            if sample.kwargs.get("dropout_p") or (op.name in ATTENTION and sample.args[9] and sample.kwargs["training"]):
                continue
            count += 1
            if limit is not None and count > limit:
                return
            yield sample


def arguments(sample, keep_strides=False):
    """A sample as (arguments, keyword arguments); a view of more memory stays one."""
    keep_strides = keep_strides or (isinstance(sample.input, torch.Tensor) and sample.input._is_view())
    args, kwargs = converted(([sample.input, *sample.args], sample.kwargs), keep_strides)
    return args, kwargs


def theirs_of(op, sample, function=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return magnitudes(op, (function or op)(sample.input, *sample.args, **sample.kwargs))


def magnitudes(op, results):
    """Results whose sign is free without it; 0 for vectors that only complete a basis."""
    if op.name not in SIGNS:
        return results
    kept = [r.abs() for r in results]
    if op.name in ("svd", "linalg.svd"):
        rank, library = kept[1].shape[-1], torch if isinstance(kept[1], torch.Tensor) else genesis
        for part, axis in ((0, -1), (2, -1 if op.name == "svd" else -2)):
            spanning = library.arange(kept[part].shape[axis]) < rank
            kept[part] = kept[part] * (spanning if axis == -1 else spanning[:, None])
    return tuple(kept)


def same_numbers(op):
    return op.name not in RANDOM


def described(sample):
    """The sample in a line: shapes for tensors."""

    def short(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{[*value.shape]}"
        if isinstance(value, tuple | list):
            return f"({', '.join(map(short, value))})"
        return repr(value)[:60]

    settings = "".join(f", {name}={short(value)}" for name, value in sample.kwargs.items())
    return f"({', '.join(map(short, [sample.input, *sample.args]))}{settings})"
