"""Checks of an entry of PyTorch's operator database. Each raises AssertionError, or whatever the operation raised."""

import contextlib
import itertools
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

import genesis
from tests.conformance.converting import (
    COMPLEX,
    DTYPES,
    UnconvertibleError,
    assert_same,
    converted,
    function_at,
    leaves,
)

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
    "zero_": lambda x: x.clone().zero_(),  # a leaf is not written to
    "svd_lowrank": lambda a, b, **kwargs: genesis.svd_lowrank(a @ b.mT, **kwargs),
    "pca_lowrank": lambda a, b, **kwargs: genesis.pca_lowrank(a @ b.mT, **kwargs),
}


def _symmetric(function):
    return lambda x, *args, **kwargs: function(x + x.mH, *args, **kwargs)


def _triangular(place):
    def decorate(function):
        def of_triangle(*args, upper=False, **kwargs):
            triangle = args[place].triu() if upper else args[place].tril()
            return function(*args[:place], triangle, *args[place + 1 :], upper=upper, **kwargs)

        return of_triangle

    return decorate


# Derivatives are compared where both libraries have the same: of matrices of the kind that the operation is for.
_POINTS = {
    **dict.fromkeys(("cholesky", "linalg.cholesky", "linalg.cholesky_ex", "linalg.eigh", "linalg.eigvalsh"), _symmetric),
    "cholesky_inverse": _triangular(0), "cholesky_solve": _triangular(1),
    "nn.functional.ctc_loss": lambda function: lambda x, *args, **kwargs: function(x.log_softmax(-1), *args, **kwargs),
}


def _derived(op, wanted=torch.float64):
    """The two functions whose derivatives are compared; raises NotImplementedError where there are none."""
    if not op.supports_autograd or not _numbers(op) or not (
        (dtype := dtype_for(op, wanted)).is_floating_point or dtype.is_complex
    ):
        raise NotImplementedError
    within = _POINTS.get(op.name, lambda function: function)
    return within(ours(op)), within(op)


_POLYGAMMA = {"polygamma": "polygamma", "special.polygamma": "special.polygamma"}
_CONVERSIONS = {"bool", "byte", "char", "double", "float", "half", "bfloat16", "int", "long", "short", "cfloat", "cdouble"}
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
        return lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs)
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


def samples(op, dtype=None, grad=False, limit=None, small=False):
    """(sample, torch's result) of those samples that torch computes and that can be converted; results of others are None."""
    torch.manual_seed(0)
    found = op.sample_inputs("cpu", dtype or dtype_for(op), requires_grad=grad)
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
    args = converted([sample.input, *sample.args], keep_strides)
    return args, converted(sample.kwargs, keep_strides)


def _theirs(op, sample, function=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _magnitudes(op, (function or op)(sample.input, *sample.args, **sample.kwargs))


def _exact(op, sample, like):
    """What torch computes in float64, rounded at the end."""
    def wide(x):
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    exact, like = leaves(_theirs(op, sample.transform(wide)), torch.Tensor), leaves(like, torch.Tensor)
    return tuple([found.to(t.dtype) for found, t in zip(exact, like, strict=True)])


def _magnitudes(op, results):
    """Results whose sign is free without it."""
    return tuple([r.abs() for r in results]) if op.name in SIGNS else results


def _numbers(op):
    return op.name not in RANDOM


def check_values(op, limit=None):
    """Values and dtypes of results, of every sample."""
    function = ours(op)
    for sample in samples(op, limit=limit):
        theirs = _theirs(op, sample)
        args, kwargs = arguments(sample)
        assert_same(_magnitudes(op, function(*args, **kwargs)), theirs, _described(sample), _numbers(op))


def check_dtypes(op, limit=3):
    """Values and dtypes in each of the other dtypes that torch takes."""
    function = ours(op)
    for dtype in DTYPES:
        if dtype not in op.dtypes or dtype is dtype_for(op):
            continue
        for sample in samples(op, dtype, limit=limit):
            theirs = _theirs(op, sample)
            args, kwargs = arguments(sample)
            low = dtype in (torch.float16, torch.bfloat16)
            got = _magnitudes(op, function(*args, **kwargs))
            if op.name in TIED and not sample.kwargs.get("stable"):
                got, theirs = _first(got), _first(theirs)
            values, what = _numbers(op) and op.name != "argsort", f"{dtype} {_described(sample)}"
            try:
                assert_same(got, theirs, what, values, scale=1 + 3 * low)
            except AssertionError:
                if not low or not values:
                    raise
                assert_same(got, theirs, what, values=False)  # it may only be nearer to what is right than torch is
                assert_same(tuple(leaves(got, genesis.Tensor)), _exact(op, sample, theirs), what)


def _first(results):
    return results[0] if isinstance(results, tuple) else results


def check_complex(op, limit=None):
    """Values and dtypes of results of complex numbers."""
    function = ours(op)
    for dtype in COMPLEX:
        if dtype not in op.dtypes:
            raise NotImplementedError
        for sample in samples(op, dtype, limit=limit):
            theirs = _theirs(op, sample)
            args, kwargs = arguments(sample)
            assert_same(_magnitudes(op, function(*args, **kwargs)), theirs, f"{dtype} {_described(sample)}", _numbers(op))


def check_complex_gradients(op, limit=None):
    """First derivatives in complex128."""
    if torch.complex128 not in op.dtypes:
        raise NotImplementedError
    check_gradients(op, limit, torch.complex128)


def check_complex_second(op, limit=8):
    """Second derivatives in complex128."""
    if torch.complex128 not in op.dtypes:
        raise NotImplementedError
    check_second(op, limit, torch.complex128)


def check_gradients(op, limit=None, wanted=torch.float64):
    """First derivatives in float64."""
    function, other = _derived(op, wanted)
    for sample in samples(op, dtype_for(op, wanted), grad=True, limit=limit):
        given = [sample.input, *sample.args, sample.kwargs]
        theirs = _differentiable(leaves(_theirs(op, sample, other), torch.Tensor), torch.Tensor)
        inputs = [t for t in leaves(given, torch.Tensor) if t.requires_grad]
        if not theirs or not inputs:
            continue
        args, kwargs = arguments(sample)
        results = leaves(_magnitudes(op, function(*args, **kwargs)), genesis.Tensor)
        results = _differentiable(results, genesis.Tensor)
        seeds = [torch.randn(t.shape, dtype=t.dtype if t.is_complex() else torch.float64).to(t.dtype) for t in theirs]
        want = torch.autograd.grad(theirs, inputs, seeds, allow_unused=True)
        own = [t for t in leaves([args, kwargs], genesis.Tensor) if t.requires_grad]
        assert len(results) in (0, len(theirs)), f"{len(results)} differentiable results for {len(theirs)} {_described(sample)}"
        got = genesis.autograd.grad(results, own, converted(seeds), allow_unused=True) if results else [None] * len(own)
        assert_same(_zeros_for_none(got, own), _zeros_for_none(want, inputs), f"gradient {_described(sample)}")


def check_second(op, limit=8, wanted=torch.float64):
    """Second derivatives in float64."""
    if not op.supports_gradgrad:
        raise NotImplementedError
    function, other = _derived(op, wanted)
    for sample in samples(op, dtype_for(op, wanted), grad=True, limit=limit, small=True):
        given = [sample.input, *sample.args, sample.kwargs]
        inputs = [t for t in leaves(given, torch.Tensor) if t.requires_grad]
        want = None
        with contextlib.suppress(RuntimeError):  # torch's has none in this form
            want = _second(leaves(_theirs(op, sample, other), torch.Tensor), inputs, torch, torch.Tensor)
        if want is None:
            continue
        args, kwargs = arguments(sample)
        own = [t for t in leaves([args, kwargs], genesis.Tensor) if t.requires_grad]
        got = _second(leaves(_magnitudes(op, function(*args, **kwargs)), genesis.Tensor), own, genesis, genesis.Tensor)
        got = [genesis.zeros_like(t) for t in own] if got is None else got
        assert_same(_zeros_for_none(got, own), _zeros_for_none(want, inputs), f"second {_described(sample)}")


def _second(results, inputs, library, kind):
    results = _differentiable(results, kind)
    if not results or not inputs:
        return None
    loss = sum(_real((r * r).sum() + r.sum()) for r in results)
    first = [g for g in library.autograd.grad(loss, inputs, create_graph=True, allow_unused=True) if g is not None]
    first = _differentiable(first, kind)
    if not first:
        return None
    return library.autograd.grad(sum(_real((g * g).sum()) for g in first), inputs, allow_unused=True)


def _real(x):
    """A number of which to take a derivative: of a complex one, both parts count."""
    return x.real + 2 * x.imag if x.is_complex() else x


def _differentiable(tensors, kind):
    return [t for t in tensors if t.requires_grad and t.numel() and (t.dtype in DTYPES | COMPLEX or kind is genesis.Tensor)]


def _zeros_for_none(gradients, inputs):
    return [(torch if isinstance(t, torch.Tensor) else genesis).zeros_like(t).detach() if g is None else g
            for g, t in zip(gradients, inputs, strict=True)]


def check_method(op, limit=None):
    """The method of Tensor."""
    variant = getattr(op, "method_variant", None)
    name = getattr(variant, "__name__", "")
    if variant is None or name == "<lambda>" or not hasattr(torch.Tensor, name):
        raise NotImplementedError
    method = getattr(genesis.Tensor, name)
    for sample in samples(op, limit=limit):
        if not isinstance(sample.input, torch.Tensor):
            continue
        theirs = variant(sample.input, *sample.args, **sample.kwargs)
        args, kwargs = arguments(sample)
        assert_same(method(*args, **kwargs), theirs, _described(sample), _numbers(op))


def check_in_place(op, limit=None):
    """The form that writes into its input."""
    variant = getattr(op, "inplace_variant", None)
    if variant is None:
        raise NotImplementedError
    name = getattr(variant, "__name__", "")
    named = hasattr(torch.Tensor, name)
    function = getattr(genesis.Tensor, name) if named else ours(op)
    for sample in samples(op, limit=limit):
        if not isinstance(sample.input, torch.Tensor):
            continue
        args, kwargs = arguments(sample)
        target = sample.input.clone()
        try:
            theirs = variant(target, *sample.args, **sample.kwargs)
        except (RuntimeError, TypeError, ValueError, IndexError):  # it does not fit into the input
            before = args[0].shape
            with contextlib.suppress(Exception):
                function(*args, **kwargs)
            assert args[0].shape == before, f"in place changes a shape {_described(sample)}"
            continue
        got = function(*args, **kwargs) if named else function(*args, **{**kwargs, "inplace": True})
        assert got is args[0], f"another tensor is returned {_described(sample)}"
        assert_same(got, theirs, _described(sample), _numbers(op))


def check_out(op, limit=None):
    """`out=`: an empty tensor is resized, another shape's is too with a warning, another kind's is refused."""
    if not op.supports_out:
        raise NotImplementedError
    function = ours(op)
    for sample in samples(op, limit=limit):
        theirs = op(sample.input, *sample.args, **sample.kwargs)
        single = isinstance(theirs, torch.Tensor)
        wanted = [theirs] if single else [*theirs] if isinstance(theirs, tuple | list) else [None]
        if not all(isinstance(t, torch.Tensor) and t.dtype in DTYPES for t in wanted):
            continue
        for fitting in (True, False):
            given = [genesis.empty(tuple(t.shape) if fitting else (0,), dtype=DTYPES[t.dtype]) for t in wanted]
            args, kwargs = arguments(sample)
            got = function(*args, **kwargs, out=given[0] if single else tuple(given))
            got = [got] if single else [*got]
            assert all(a is b for a, b in zip(got, given, strict=True)), f"not what out= gave {_described(sample)}"
            assert_same(got, wanted, f"out {_described(sample)}", _numbers(op) and op.name not in SIGNS)
        if single and theirs.dtype.is_floating_point:
            args, kwargs = arguments(sample)
            try:
                function(*args, **kwargs, out=genesis.empty(tuple(theirs.shape), dtype=genesis.int64))
            except (RuntimeError, TypeError):
                continue
            raise AssertionError(f"out= of integers took floats {_described(sample)}")


def check_strided(op, limit=None):
    """Inputs with gaps between their elements."""
    function = ours(op)
    for sample in samples(op, limit=limit):
        gapped = sample.noncontiguous()
        try:
            theirs = _theirs(op, gapped)
        except RuntimeError:  # torch's wants them without gaps
            continue
        args, kwargs = arguments(gapped, keep_strides=True)
        assert_same(_magnitudes(op, function(*args, **kwargs)), theirs, _described(sample), _numbers(op))


def check_compile(op, limit=3):
    """A function made by `genesis.compile`, at the first call and replayed."""
    function = ours(op)
    for sample in samples(op, limit=limit, small=True):
        theirs = _theirs(op, sample)
        compiled = genesis.compile(lambda args, kwargs: function(*args, **kwargs))
        for _ in range(3):
            args, kwargs = arguments(sample)
            assert_same(_magnitudes(op, compiled(args, kwargs)), theirs, _described(sample), _numbers(op))


def check_vmap(op, limit=4):
    """`vmap` over the first tensor, beside torch's."""
    if not _numbers(op):
        raise NotImplementedError
    function = ours(op)
    for sample in samples(op, limit=limit, small=True):
        if not isinstance(sample.input, torch.Tensor):
            continue
        turned = (-2, -1) if op.name in _POINTS and sample.input.ndim > 1 else 0  # symmetric matrices stay that
        stacked = torch.stack([sample.input, sample.input.flip(turned) if sample.input.ndim else sample.input])
        try:
            theirs = _magnitudes(op, torch.func.vmap(lambda x, s=sample: op(x, *s.args, **s.kwargs))(stacked))
        except Exception:
            continue
        args, kwargs = arguments(sample)
        got = genesis.vmap(lambda x, a=args, k=kwargs: function(x, *a[1:], **k))(converted(stacked))
        assert_same(_magnitudes(op, got), theirs, f"vmap {_described(sample)}")


def check_jvp(op, limit=8):
    """Forward derivatives in float64, beside torch's."""
    if not op.supports_forward_ad:
        raise NotImplementedError
    function, other = _derived(op)
    for sample in samples(op, dtype_for(op, torch.float64), limit=limit, small=True):
        if not isinstance(sample.input, torch.Tensor) or not sample.input.is_floating_point():
            continue
        x, tangent = sample.input, torch.randn_like(sample.input)
        try:
            _, theirs = torch.func.jvp(lambda x, s=sample: other(x, *s.args, **s.kwargs), (x,), (tangent,))
        except Exception:
            continue
        args, kwargs = arguments(sample)
        _, got = genesis.func.jvp(lambda x, a=args, k=kwargs: function(x, *a[1:], **k), (args[0],), (converted(tangent),))
        if not isinstance(theirs, torch.Tensor | tuple | list):
            continue
        got, theirs = (_magnitudes(op, changes) for changes in (got, theirs))
        pairs = zip(leaves(got, genesis.Tensor), leaves(theirs, torch.Tensor), strict=True)
        for mine, want in pairs:
            if want.is_floating_point():
                assert_same(mine, want, f"jvp {_described(sample)}")


def check_errors(op, limit=None):
    """What torch refuses is refused. Where it names no reason it refuses numbers, which are operands here: no error."""
    if op.error_inputs_func is None:
        raise NotImplementedError
    function = ours(op)
    for error in itertools.islice(op.error_inputs("cpu"), limit):
        try:
            args, kwargs = arguments(error.sample_input)
        except UnconvertibleError:
            continue
        if {"out", "device"} & {*kwargs} or not error.error_regex:
            continue
        try:
            results = function(*args, **kwargs)
            [t.numpy() for t in leaves(results, genesis.Tensor)]
        except Exception:
            continue
        raise AssertionError(f"nothing raised, want {error.error_type} {error.error_regex!r} {_described(error.sample_input)}")


def _described(sample):
    """The sample in a line: shapes for tensors."""

    def short(value):
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{[*value.shape]}"
        if isinstance(value, tuple | list):
            return f"({', '.join(map(short, value))})"
        return repr(value)[:60]

    settings = "".join(f", {name}={short(value)}" for name, value in sample.kwargs.items())
    return f"({', '.join(map(short, [sample.input, *sample.args]))}{settings})"


CHECKS = {
    "values": check_values, "gradients": check_gradients, "dtypes": check_dtypes, "methods": check_method,
    "in-place": check_in_place, "out": check_out, "strided": check_strided, "compile": check_compile, "second": check_second,
    "complex": check_complex, "complex gradients": check_complex_gradients, "complex second": check_complex_second,
    "vmap": check_vmap, "jvp": check_jvp, "errors": check_errors,
}
