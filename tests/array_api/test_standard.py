"""The array API's functions: signatures as the standard has them (2024.12), values and dtypes as NumPy's."""

import inspect
import math

import numpy as np
import pytest

import genesis
from genesis import array_api as xp

SIGNATURES = """
    abs(x, /)
    acos(x, /)
    acosh(x, /)
    add(x1, x2, /)
    all(x, /, *, axis=None, keepdims=False)
    any(x, /, *, axis=None, keepdims=False)
    arange(start, /, stop=None, step=1, *, dtype=None, device=None)
    argmax(x, /, *, axis=None, keepdims=False)
    argmin(x, /, *, axis=None, keepdims=False)
    argsort(x, /, *, axis=-1, descending=False, stable=True)
    asarray(obj, /, *, dtype=None, device=None, copy=None)
    asin(x, /)
    asinh(x, /)
    astype(x, dtype, /, *, copy=True, device=None)
    atan(x, /)
    atan2(x1, x2, /)
    atanh(x, /)
    bitwise_and(x1, x2, /)
    bitwise_invert(x, /)
    bitwise_left_shift(x1, x2, /)
    bitwise_or(x1, x2, /)
    bitwise_right_shift(x1, x2, /)
    bitwise_xor(x1, x2, /)
    broadcast_arrays(*arrays)
    broadcast_to(x, /, shape)
    can_cast(from_, to, /)
    ceil(x, /)
    clip(x, /, min=None, max=None)
    concat(arrays, /, *, axis=0)
    conj(x, /)
    copysign(x1, x2, /)
    cos(x, /)
    cosh(x, /)
    count_nonzero(x, /, *, axis=None, keepdims=False)
    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
    diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
    divide(x1, x2, /)
    empty(shape, *, dtype=None, device=None)
    empty_like(x, /, *, dtype=None, device=None)
    equal(x1, x2, /)
    exp(x, /)
    expand_dims(x, /, axis=0)
    expm1(x, /)
    eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    finfo(type, /)
    flip(x, /, *, axis=None)
    floor(x, /)
    floor_divide(x1, x2, /)
    from_dlpack(x, /, *, device=None, copy=None)
    full(shape, fill_value, *, dtype=None, device=None)
    full_like(x, /, fill_value, *, dtype=None, device=None)
    greater(x1, x2, /)
    greater_equal(x1, x2, /)
    hypot(x1, x2, /)
    iinfo(type, /)
    imag(x, /)
    isdtype(dtype, kind)
    isfinite(x, /)
    isinf(x, /)
    isnan(x, /)
    less(x1, x2, /)
    less_equal(x1, x2, /)
    linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    log(x, /)
    log10(x, /)
    log1p(x, /)
    log2(x, /)
    logaddexp(x1, x2, /)
    logical_and(x1, x2, /)
    logical_not(x, /)
    logical_or(x1, x2, /)
    logical_xor(x1, x2, /)
    matmul(x1, x2, /)
    matrix_transpose(x, /)
    max(x, /, *, axis=None, keepdims=False)
    maximum(x1, x2, /)
    mean(x, /, *, axis=None, keepdims=False)
    meshgrid(*arrays, indexing='xy')
    min(x, /, *, axis=None, keepdims=False)
    minimum(x1, x2, /)
    moveaxis(x, source, destination, /)
    multiply(x1, x2, /)
    negative(x, /)
    nextafter(x1, x2, /)
    nonzero(x, /)
    not_equal(x1, x2, /)
    ones(shape, *, dtype=None, device=None)
    ones_like(x, /, *, dtype=None, device=None)
    permute_dims(x, /, axes)
    positive(x, /)
    pow(x1, x2, /)
    prod(x, /, *, axis=None, dtype=None, keepdims=False)
    real(x, /)
    reciprocal(x, /)
    remainder(x1, x2, /)
    repeat(x, repeats, /, *, axis=None)
    reshape(x, /, shape, *, copy=None)
    result_type(*arrays_and_dtypes)
    roll(x, /, shift, *, axis=None)
    round(x, /)
    searchsorted(x1, x2, /, *, side='left', sorter=None)
    sign(x, /)
    signbit(x, /)
    sin(x, /)
    sinh(x, /)
    sort(x, /, *, axis=-1, descending=False, stable=True)
    sqrt(x, /)
    square(x, /)
    squeeze(x, /, axis)
    stack(arrays, /, *, axis=0)
    std(x, /, *, axis=None, correction=0.0, keepdims=False)
    subtract(x1, x2, /)
    sum(x, /, *, axis=None, dtype=None, keepdims=False)
    take(x, indices, /, *, axis=None)
    take_along_axis(x, indices, /, *, axis=-1)
    tan(x, /)
    tanh(x, /)
    tensordot(x1, x2, /, *, axes=2)
    tile(x, repetitions, /)
    tril(x, /, *, k=0)
    triu(x, /, *, k=0)
    trunc(x, /)
    unique_all(x, /)
    unique_counts(x, /)
    unique_inverse(x, /)
    unique_values(x, /)
    unstack(x, /, *, axis=0)
    var(x, /, *, axis=None, correction=0.0, keepdims=False)
    vecdot(x1, x2, /, *, axis=-1)
    where(condition, x1, x2, /)
    zeros(shape, *, dtype=None, device=None)
    zeros_like(x, /, *, dtype=None, device=None)
    linalg.cholesky(x, /, *, upper=False)
    linalg.cross(x1, x2, /, *, axis=-1)
    linalg.det(x, /)
    linalg.diagonal(x, /, *, offset=0)
    linalg.eigh(x, /)
    linalg.eigvalsh(x, /)
    linalg.inv(x, /)
    linalg.matmul(x1, x2, /)
    linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
    linalg.matrix_power(x, n, /)
    linalg.matrix_rank(x, /, *, rtol=None)
    linalg.matrix_transpose(x, /)
    linalg.outer(x1, x2, /)
    linalg.pinv(x, /, *, rtol=None)
    linalg.qr(x, /, *, mode='reduced')
    linalg.slogdet(x, /)
    linalg.solve(x1, x2, /)
    linalg.svd(x, /, *, full_matrices=True)
    linalg.svdvals(x, /)
    linalg.tensordot(x1, x2, /, *, axes=2)
    linalg.trace(x, /, *, offset=0, dtype=None)
    linalg.vecdot(x1, x2, /, *, axis=-1)
    linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
"""
FLOATS, SIGNED, UNSIGNED = ("float32", "float64"), ("int8", "int16", "int32", "int64"), (
    "uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMERIC = INTEGERS + FLOATS
ALL = ("bool", *NUMERIC)
SHAPES = [(), (0,), (1,), (5,), (0, 3), (3, 4), (2, 1, 3)]

# Expressions over x and y, of one dtype and shape, which NumPy and genesis evaluate alike.
OF_ANY_SHAPE = {
    ALL: """
        abs(x) if x.dtype != bool else x; positive(x) if x.dtype != bool else x; equal(x, y); not_equal(x, y); isfinite(x)
        astype(x, float64); astype(x, bool); isnan(x); isinf(x); flip(x); flip(x, axis=0) if x.ndim else x
        reshape(x, (-1,)) if x.size else x; reshape(x, x.shape, copy=True); stack([x, y]); stack([x, y], axis=-1); roll(x, 2)
        broadcast_to(x, (2, *x.shape)); concat([x, y], axis=None); expand_dims(x, axis=0); expand_dims(x, axis=-1)
        permute_dims(x, tuple(range(x.ndim))[::-1]); tile(x, (2,)); tile(x, (1, 2)); tile(x, ()); repeat(x, 2)
        all(x); any(x); all(x, keepdims=True); any(x, keepdims=True); count_nonzero(x)
        zeros_like(x); ones_like(x); full_like(x, 1); where(x == y, x, y); unique_values(x); unique_counts(x)
        unique_inverse(x); unique_all(x); broadcast_arrays(x, expand_dims(y, axis=0)); asarray(x); asarray(x, copy=True)
        empty_like(x) * 0 if x.dtype != bool else x; zeros(x.shape, dtype=x.dtype); ones(x.shape, dtype=x.dtype)
    """,
    NUMERIC: """
        less(x, y); less_equal(x, y); greater(x, y); greater_equal(x, y); add(x, y); subtract(x, y); multiply(x, y)
        maximum(x, y); minimum(x, y); floor(x); ceil(x); trunc(x); round(x); square(x); sign(x); add(x, 1); multiply(2, x)
        max(x) if x.size else x; min(x) if x.size else x; max(x, keepdims=True) if x.size else x
        argmax(x) if x.size else x; argmin(x, keepdims=True) if x.size else x; clip(x, 1, 3); clip(x, min=2); clip(x, max=2)
        clip(x, x, y) if x.dtype == y.dtype else x; real(x); conj(x); minimum(x, 2); less(x, 2)
    """,
    INTEGERS: """
        bitwise_and(x, y); bitwise_or(x, y); bitwise_xor(x, y); bitwise_invert(x); bitwise_left_shift(x, abs(y) % 4)
        bitwise_right_shift(x, abs(y) % 4); floor_divide(x, where(y == 0, ones_like(y), y)); bitwise_and(x, 3)
        remainder(x, where(y == 0, ones_like(y), y)); pow(x, abs(y) % 4); sum(x); prod(x); sum(x, keepdims=True)
        sum(x, dtype=float64)
    """,
    SIGNED: "negative(x)",
    ("bool",): "logical_and(x, y); logical_or(x, y); logical_xor(x, y); logical_not(x); bitwise_and(x, y); bitwise_invert(x)",
    FLOATS: """
        negative(x); divide(x, y); floor_divide(x, y); remainder(x, y); pow(x, y); sum(x); prod(x); sin(x); cos(x); tan(x)
        sinh(x); cosh(x); tanh(x); asin(x); acos(x); atan(x); asinh(x); acosh(x); atanh(x); exp(x); expm1(x); log(x); log1p(x)
        log2(x); log10(x); sqrt(x); reciprocal(x); signbit(x); copysign(x, y); atan2(x, y); hypot(x, y); logaddexp(x, y)
        nextafter(x, y); sum(x, dtype=float64); clip(x, 0.5, 1.5); add(x, 0.5); divide(1.0, x); sum(x, keepdims=True)
        mean(x) if x.size else x; var(x) if x.size else x; std(x, correction=1) if x.size > 1 else x
        maximum(x, y); minimum(x, y); where(x > y, x, 0.0); atan2(x, 1.0); linalg.vector_norm(x); linalg.vector_norm(x, ord=1)
        linalg.vector_norm(x, ord=math.inf) if x.size else x; linalg.vector_norm(x, ord=3, keepdims=True)
    """,
}
OF_MATRICES = {
    ALL: """
        all(x, axis=0); any(x, axis=(0, 1)); all(x, axis=1, keepdims=True); count_nonzero(x, axis=1); flip(x, axis=(0, 1))
        concat([x, y], axis=1); roll(x, 1, axis=0); roll(x, (1, -1), axis=(0, 1)); moveaxis(x, 0, 1); matrix_transpose(x)
        moveaxis(x, (0, 1), (-1, 0)); unstack(x); unstack(x, axis=1); squeeze(x[:1], 0); squeeze(x[:1, :1], (0, 1))
        take(x, i, axis=0); take(x, i, axis=-1); take_along_axis(x, j, axis=0); tril(x); triu(x, k=1); tril(x, k=-1)
        repeat(x, 3, axis=1); nonzero(x); reshape(x, (2, 6)); x.T; x.mT; x[1:, ::2]; x[x == y]; x[None]; x[..., 0]; x[i]
        unique_all(x); linalg.diagonal(x); linalg.diagonal(x, offset=1)
        diff(x) if x.dtype != bool else x; diff(x, axis=0, n=2) if x.dtype != bool else x
    """,
    NUMERIC: """
        max(x, axis=0); min(x, axis=(0, 1)); argmax(x, axis=1); argmin(x, axis=0, keepdims=True); sort(x); sort(x, axis=0)
        sort(x, descending=True); argsort(x); argsort(x, axis=0); cumulative_sum(x, axis=0, dtype=float64)
        cumulative_prod(x, axis=1, dtype=float64); cumulative_sum(x, axis=1, include_initial=True, dtype=float64)
        searchsorted(sort(x[0]), y); searchsorted(sort(x[0]), y[0], side="right"); searchsorted(x[0], y, sorter=argsort(x[0]))
        diff(x, prepend=y, append=x); linalg.trace(x, dtype=float64)
        linalg.cross(x[:, :3], y[:, :3]); linalg.outer(x[0], y[1]); sum(x, axis=(), dtype=float64)
    """,
    SIGNED: """
        matmul(x, y.T); vecdot(x, y); vecdot(x, y, axis=0); tensordot(x, y, axes=2); tensordot(x, y, axes=((0,), (0,)))
    """,
    INTEGERS: "sum(x, axis=0); sum(x, axis=(0, 1), keepdims=True); prod(x, axis=1); cumulative_sum(x, axis=1); sum(x, axis=())",
    FLOATS: """
        matmul(x, y.T); matmul(x[0], y[1]); vecdot(x, y); vecdot(x, y, axis=0); tensordot(x, y, axes=2); x @ y.T
        tensordot(x, y, axes=((1,), (1,))); mean(x, axis=0); var(x, axis=1, correction=1); std(x, axis=(0, 1), keepdims=True)
        linalg.svdvals(x); linalg.matrix_norm(x); linalg.matrix_norm(x, ord=1, keepdims=True); linalg.matrix_norm(x, ord=2)
        linalg.vector_norm(x, axis=0, ord=0); linalg.vector_norm(x, axis=(0, 1), keepdims=True); linalg.pinv(x)
        linalg.matrix_rank(x); linalg.matrix_rank(x, rtol=0.5); abs(linalg.qr(x).R); linalg.svd(x, full_matrices=False).S
        linalg.inv(s); linalg.det(s); linalg.slogdet(s); linalg.solve(s, x); linalg.solve(s, x[:, 0]); linalg.cholesky(s)
        linalg.cholesky(s, upper=True); linalg.eigvalsh(s); linalg.eigh(s).eigenvalues; linalg.matrix_power(s, 3)
        linalg.matrix_power(s, -2); linalg.trace(s, offset=1); linalg.svd(x).Vh.shape; linalg.qr(x, mode="complete").Q.shape
        linalg.vector_norm(x, axis=1, ord=-math.inf)
    """,
}
OF_NUMBERS = """
    arange(5); arange(2, 7); arange(7, 2); arange(7, 2, -2); arange(0, 1, 0.25, dtype=float64); arange(3, dtype=float32)
    arange(-1); linspace(0, 1, 5, dtype=float64); linspace(0, 1, 5, dtype=float64, endpoint=False)
    linspace(2, 2, 1, dtype=float32)
    eye(3, dtype=int32); eye(2, 3, k=1, dtype=float64); eye(3, 2, k=-1, dtype=bool); full((2, 3), 7); full(3, True)
    full((), 2.5, dtype=float32); zeros(3, dtype=int8); ones((2, 0), dtype=bool); asarray([1, 2, 3]); asarray(True)
    asarray([[1.0], [2.0]], dtype=float32); asarray([], dtype=int64); meshgrid(arange(3), arange(2))
    meshgrid(arange(3), arange(2), indexing="ij"); can_cast(int8, int16); can_cast(int64, int8); can_cast(float32, float64)
    can_cast(uint8, int16)
    can_cast(int8, uint16); clip(asarray([1, 2], dtype=uint8), -5, 300); squeeze(asarray(1), 0); can_cast(float64, int64)
    isdtype(int8, "integral"); isdtype(uint8, ("bool", "unsigned integer")); isdtype(float32, "real floating")
    isdtype(bool, "numeric")
    isdtype(int8, int16); isdtype(float64, ("bool", float64)); iinfo(int8).max; iinfo(uint64).max; finfo(float32).bits
    float(finfo(float64).eps); float(finfo(float32).smallest_normal); result_type(int8, int16); result_type(uint8, int8)
    result_type(asarray(1, dtype=float32), asarray([1.0], dtype=float64)); result_type(asarray([1], dtype=int8), 3)
    add(asarray(1.0, dtype=float64), ones(2, dtype=float32)); add(ones(2, dtype=uint8), asarray(1, dtype=int16))
    e; pi; inf; newaxis
    concat([zeros(1, dtype=int8), zeros(1, dtype=int16)]); broadcast_arrays(zeros((2, 1)), zeros(3))[0].shape
    where(asarray([True, False]), asarray([1, 2], dtype=int8), asarray(3, dtype=int16)); astype(asarray([1.5, -1.5]), int64)
"""


class Numpy:
    """NumPy's names, and the standard's where they differ."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def sort(x, axis=-1, descending=False):
        ordered = np.sort(x, axis=axis, stable=True)
        return np.flip(ordered, axis) if descending else ordered

    @staticmethod
    def argsort(x, axis=-1):
        return np.argsort(x, axis=axis, stable=True)

    @staticmethod
    def broadcast_arrays(*arrays):
        return [*np.broadcast_arrays(*arrays)]

    @staticmethod
    def unique_values(x):
        return np.unique(x, equal_nan=False)

    @staticmethod
    def unstack(x, axis=0):
        return tuple(np.unstack(x, axis=axis))


def evaluate(expression, namespace, arrays):
    """The value of an expression over a namespace's functions."""

    class Names(dict):
        def __missing__(self, name):
            return math if name == "math" else getattr(namespace, name)

    builtins_ = {"range": range, "tuple": tuple, "float": float}
    return eval(expression, {"__builtins__": {}}, Names({**builtins_, **arrays}))


def assert_alike(ours, theirs, expression):
    if isinstance(ours, genesis.Tensor):
        theirs = np.asarray(theirs)
        assert ours.dtype.name == theirs.dtype.name, expression
        assert tuple(ours.shape) == theirs.shape, expression
        tight = {"float32": 2e-5, "float64": 1e-11}.get(ours.dtype.name, 0)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=tight, atol=tight, err_msg=expression)
    elif isinstance(ours, tuple | list):
        assert len(ours) == len(theirs), expression
        if hasattr(theirs, "_fields"):
            assert ours._fields == theirs._fields, expression
        for mine, other in zip(ours, theirs, strict=True):
            assert_alike(mine, other, expression)
    elif isinstance(ours, genesis.DType):
        assert ours.name == np.dtype(theirs).name, expression
    else:
        assert ours == theirs, expression


def expressions(table, dtype):
    listed = [text for dtypes, text in table.items() if dtype in dtypes]
    return [part.strip() for text in listed for line in text.splitlines() for part in line.split("; ") if part.strip()]


def compare(table, dtype, shape):
    rng = np.random.default_rng(0)
    values = {name: (rng.integers(-4 if dtype[0] in "fi" else 0, 5, shape) * (0.75 if dtype[0] == "f" else 1)) for name in "xy"}
    arrays = {name: np.asarray(value).astype(dtype) for name, value in values.items()}
    if len(shape) == 2 and table is OF_MATRICES:
        arrays["i"] = np.array([2, 0, -1])
        arrays["j"] = np.array([[0, 1, 2, 0], [1, 1, 0, -1]])
        whole = rng.standard_normal((3, 3)).astype(dtype if dtype[0] == "f" else "float64")
        arrays["s"] = whole @ whole.T + np.eye(3, dtype=whole.dtype)
    ours = {name: genesis.tensor(value) for name, value in arrays.items()}
    for expression in expressions(table, dtype):
        with np.errstate(all="ignore"):
            theirs = evaluate(expression, Numpy(), arrays)
        own = expression.replace("x.size", "x.numel()").replace("!= bool", "!= genesis_bool")
        assert_alike(evaluate(own, xp, ours | {"genesis_bool": genesis.bool}), theirs, expression)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ALL)
def test_functions_of_any_shape_give_what_numpy_gives(dtype, shape):
    compare(OF_ANY_SHAPE, dtype, shape)


@pytest.mark.parametrize("dtype", ALL)
def test_functions_of_matrices_give_what_numpy_gives(dtype):
    compare(OF_MATRICES, dtype, (3, 4))


@pytest.mark.parametrize("expression", expressions({"": OF_NUMBERS}, ""))
def test_what_is_made_of_numbers(expression):
    assert_alike(evaluate(expression, xp, {}), evaluate(expression, Numpy(), {}), expression)


@pytest.mark.parametrize("line", SIGNATURES.split("\n")[1:-1], ids=lambda line: line.strip().partition("(")[0])
def test_signatures_are_the_standards(line):
    path, _, parameters = line.strip()[:-1].partition("(")
    function = xp
    for name in path.split("."):
        function = getattr(function, name)
    expected = inspect.signature(eval(f"lambda {parameters.replace(', /, *', ', /, *')}: None"))
    found = inspect.signature(function)
    assert [(p.name, p.kind) for p in found.parameters.values()] == [(p.name, p.kind) for p in expected.parameters.values()]
    for mine, other in zip(found.parameters.values(), expected.parameters.values(), strict=True):
        assert mine.default == other.default, mine.name


ONE = "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 negative"
ONE += " positive reciprocal round sign signbit sin sinh square sqrt tan tanh trunc"
TWO = "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp multiply nextafter"
TWO += " not_equal pow remainder subtract"


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_are_numpys_with_the_signs_of_zeros(dtype):
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1.5, 1e-40, -1e-40, 1e30]
    values = np.array(special, dtype)
    pairs = [np.ascontiguousarray(grid) for grid in np.meshgrid(values, values)]
    for names, arguments in ((ONE, [values]), (TWO, pairs)):
        for name in names.split():
            ours = getattr(xp, name)(*map(genesis.tensor, arguments)).numpy()
            with np.errstate(all="ignore"):
                theirs = getattr(np, name)(*arguments)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == "float32" else 1e-12, err_msg=name)
            if theirs.dtype != np.bool_:
                known = ~np.isnan(theirs)
                np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(theirs)[known], err_msg=name)


def test_inspection():
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() == genesis.device("cpu") and genesis.device("cpu") in info.devices()
    assert info.default_dtypes()["real floating"] is genesis.float32
    assert set(info.dtypes(kind="signed integer")) == set(SIGNED) and info.dtypes(kind=("bool",)) == {"bool": genesis.bool}
    assert set(info.dtypes()) >= set(ALL)
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="number")


def test_arrays_lead_to_the_namespace():
    x = genesis.ones(2)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2024.12")
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="2099"):
        x.__array_namespace__(api_version="2099.12")
    assert x.to_device("cpu:1").device.index == 1 and x.to_device(x.device) is x


def test_what_the_standard_refuses_is_refused():
    x = genesis.ones(2, 3)
    for wrong, kind in (
        (lambda: xp.squeeze(x, 0), ValueError), (lambda: xp.expand_dims(x, axis=3), IndexError),
        (lambda: xp.cumulative_sum(x), ValueError), (lambda: xp.take(x, genesis.tensor([0])), ValueError),
        (lambda: xp.add(1, 2), TypeError), (lambda: xp.reshape(x.T, (6,), copy=False), ValueError),
        (lambda: xp.asarray([1], copy=False), ValueError), (lambda: xp.asarray(x, dtype=genesis.int8, copy=False), ValueError),
        (lambda: xp.vecdot(x, x[:, :2]), ValueError), (lambda: xp.result_type(1, 2.0), ValueError),
        (lambda: xp.isdtype(genesis.int8, "ints"), ValueError), (lambda: xp.nonzero(genesis.tensor(1)), ValueError),
        (lambda: xp.add(x1=x, x2=x), TypeError), (lambda: xp.sum(x, 0), TypeError),
    ):
        with pytest.raises(kind):
            wrong()


def test_each_nan_is_an_element_of_its_own():
    found = xp.unique_all(genesis.tensor([math.nan, 1.0, math.nan, 1.0]))
    assert found.values.shape == (3,) and found.counts.tolist() == [2, 1, 1] and found.indices.tolist() == [1, 0, 2]
    assert math.isnan(xp.sign(genesis.tensor(math.nan)))

