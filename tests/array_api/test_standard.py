"""The array API's functions: signatures as the standard has them (2024.12), values and dtypes as NumPy's."""

import contextlib
import math

import numpy as np
import pytest

import genesis
from genesis import array_api as xp

COMPLEX = ("complex64", "complex128")
FLOATS, SIGNED, UNSIGNED = ("float32", "float64"), ("int8", "int16", "int32", "int64"), (
    "uint8", "uint16", "uint32", "uint64")
COMPILED = "bool", "int32", "float32", "complex64"
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
OF_ANY_SHAPE[COMPLEX] = """
    abs(x); positive(x); negative(x); equal(x, y); not_equal(x, y); isfinite(x); isnan(x); isinf(x); real(x); imag(x); conj(x)
    add(x, y); subtract(x, y); multiply(x, y); divide(x, y + 9); pow(x + 0.5j, y); square(x); sign(x); round(x); exp(x)
    expm1(x); log(x + 0.5); log1p(x + 0.5j); log2(x + 0.5); log10(x + 0.5); sqrt(x); sin(x); cos(x); tan(x); sinh(x); cosh(x)
    tanh(x); asin(x + 0.5j); acos(x + 0.5j); atan(x + 0.5); asinh(x + 0.5); acosh(x + 0.5j); atanh(x + 0.5j); reciprocal(x + 9)
    add(x, 1); multiply(2j, x); sum(x); prod(x); sum(x, dtype=complex128); mean(x) if x.size else x; all(x); any(x)
    count_nonzero(x); where(x == y, x, y); stack([x, y]); concat([x, y], axis=None); zeros_like(x); full_like(x, 1j)
    astype(x, complex64); reshape(x, (-1,)) if x.size else x; flip(x); roll(x, 2); linalg.vector_norm(x)
"""
OF_MATRICES = {
    COMPLEX: """
        fft.fft(x); fft.ifft(x, axis=0); fft.fft(x, n=3, norm="ortho"); fft.ifft(x, n=7, norm="forward"); fft.fftn(x)
        fft.ifftn(x, axes=(1,)); fft.fftn(x, s=(2, 5), axes=(0, 1), norm="ortho"); fft.irfft(x, n=6); fft.hfft(x, axis=0, n=4)
        fft.irfftn(x, s=(3, 5), axes=(0, 1)); fft.fftshift(x); fft.ifftshift(x, axes=(0,)); fft.fftshift(x, axes=1)
        x @ matrix_transpose(y); tensordot(x, y, axes=((0, 1), (0, 1))); vecdot(x, y); linalg.trace(x)
        cumulative_sum(x, axis=0); cumulative_prod(x, axis=1); linalg.outer(x[0, ...], y[1, ...]); linalg.diagonal(x); tril(x)
        linalg.cross(x[:, :3], y[:, :3]); linalg.svdvals(x); linalg.matrix_norm(x); linalg.pinv(x); take(x, i, axis=1); diff(x)
        permute_dims(x, (1, 0)); linalg.det(x[:, :3]); linalg.matrix_rank(x)
        linalg.eigvalsh(x[:, :3] + conj(matrix_transpose(x[:, :3])))
    """,
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
        linalg.cross(x[:, :3], y[:, :3]); linalg.cross(x[0, :3], y[:, :3]); linalg.outer(x[0], y[1])
        linalg.cross(x[0, 1:], y[:0, :3]); sum(x, axis=(), dtype=float64)
    """,
    SIGNED: """
        matmul(x, y.T); vecdot(x, y); vecdot(x, y, axis=0); tensordot(x, y, axes=2); tensordot(x, y, axes=((0,), (0,)))
    """,
    INTEGERS: "sum(x, axis=0); sum(x, axis=(0, 1), keepdims=True); prod(x, axis=1); cumulative_sum(x, axis=1); sum(x, axis=())",
    FLOATS: """
        fft.rfft(x); fft.rfft(x, n=7, axis=0, norm="ortho"); fft.ihfft(x, norm="forward"); fft.rfftn(x, axes=(1, 0))
        fft.rfftn(x); matmul(x, y.T); matmul(x[0], y[1]); vecdot(x, y); vecdot(x, y, axis=0); tensordot(x, y, axes=2); x @ y.T
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
    linspace(0, 1j, 3, dtype=complex128); can_cast(float32, complex64); can_cast(float64, complex64)
    can_cast(complex64, float32); fft.fftfreq(4, d=0.5) * ones(4, dtype=float64)
    result_type(complex64, float64); full(2, 1j, dtype=complex64)
    eye(2, dtype=complex64); isdtype(complex64, "numeric")
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
        tight = {"float32": 2e-5, "float64": 1e-11, "complex64": 5e-5, "complex128": 1e-11}.get(ours.dtype.name, 0)
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
    if dtype in COMPLEX:
        arrays = {name: (value + 1j * rng.integers(-4, 5, shape)).astype(dtype) for name, value in arrays.items()}
    if len(shape) == 2 and table is OF_MATRICES:
        arrays["i"] = np.array([2, 0, -1])
        arrays["j"] = np.array([[0, 1, 2, 0], [1, 1, 0, -1]])
        whole = rng.standard_normal((3, 3)).astype(dtype if dtype[0] == "f" else "float64")
        arrays["s"] = whole @ whole.T + np.eye(3, dtype=whole.dtype)
    names = {name: genesis.tensor(value) for name, value in arrays.items()} | {"genesis_bool": genesis.bool}
    listed = expressions(table, dtype)
    # All of ours before the first is looked at: they are one program, which is a third of the kernels to compile. Other tests
    # compile the rows in every dtype.
    with contextlib.nullcontext() if dtype in COMPILED else genesis.eager():
        texts = [text.replace("x.size", "x.numel()").replace("!= bool", "!= genesis_bool") for text in listed]
        ours = [evaluate(text, xp, names) for text in texts]
    with np.errstate(all="ignore"):
        for expression, mine in zip(listed, ours, strict=True):
            assert_alike(mine, evaluate(expression, Numpy(), arrays), expression)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ALL + COMPLEX)
def test_functions_of_any_shape_give_what_numpy_gives(dtype, shape):
    compare(OF_ANY_SHAPE, dtype, shape)


@pytest.mark.parametrize("dtype", ALL + COMPLEX)
def test_functions_of_matrices_give_what_numpy_gives(dtype):
    compare(OF_MATRICES, dtype, (3, 4))


@pytest.mark.parametrize("expression", expressions({"": OF_NUMBERS}, ""))
def test_what_is_made_of_numbers(expression):
    assert_alike(evaluate(expression, xp, {}), evaluate(expression, Numpy(), {}), expression)


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
        tensors = [*map(genesis.tensor, arguments)]
        results = {name: getattr(xp, name)(*tensors) for name in names.split()}
        for name, result in results.items():
            ours = result.numpy()
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

