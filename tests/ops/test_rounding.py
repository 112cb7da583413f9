"""Rounded quotients and rounding to decimals, beside torch's."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import genesis

MODES = (None, "trunc", "floor")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float32", "float64"])
def test_quotients_are_torchs(dtype, mode):
    a, b = (np.array(values).astype(dtype) for values in ([[7, 7, 8, 0, 100, 1]], [[2], [3], [4], [127]]))
    signs = [(1, 1)] if dtype == "uint8" else [(1, 1), (-1, 1), (1, -1), (-1, -1)]
    for sign, other in signs:
        x, y = a * np.array(sign, dtype), b * np.array(other, dtype)
        ours, theirs = (
            library.div(library.tensor(x), library.tensor(y), rounding_mode=mode) for library in (genesis, torch)
        )
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@given(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3).filter(lambda y: abs(y) > 1e-3))
def test_quotients_of_floats_are_rounded_as_torchs(x, y):
    for mode in MODES:
        ours, theirs = (
            library.div(library.tensor(x, dtype=library.float64), library.tensor(y, dtype=library.float64), rounding_mode=mode)
            for library in (genesis, torch)
        )
        assert ours.item() == theirs.item()


def test_rounded_quotients_have_gradients_of_zeros():
    for mode in ("trunc", "floor"):
        x = genesis.tensor([3.0, -4.0], requires_grad=True)
        x.div(2.0, rounding_mode=mode).sum().backward()
        assert x.grad.tolist() == [0, 0]


def test_quotients_in_place():
    for mode in ("trunc", "floor"):
        ours, theirs = (
            library.tensor([-7, 7]).div_(2, rounding_mode=mode).tolist() for library in (genesis, torch)
        )
        assert ours == theirs


def test_another_mode_is_refused():
    with pytest.raises(ValueError, match='must be None, "trunc" or "floor", got \'up\''):
        genesis.div(genesis.ones(2), 2, rounding_mode="up")


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rounding_to_decimals(dtype, decimals):
    x = np.concatenate([np.random.default_rng(0).normal(size=500) * 300, [0.125, 2.5, -2.5, 250, np.inf, np.nan]]).astype(dtype)
    np.testing.assert_allclose(
        genesis.tensor(x).round(decimals=decimals).numpy(), torch.tensor(x).round(decimals=decimals).numpy(),
        rtol=1e-15 if dtype == "float64" else 2e-7)


def test_integers_have_no_decimals():
    assert genesis.tensor([7]).round().tolist() == [7]
    with pytest.raises(TypeError, match="int64 has no decimals"):
        genesis.tensor([7]).round(decimals=1)


@pytest.mark.parametrize(("name", "arguments"), [
    ("relu", ()), ("leaky_relu", (0.2,)), ("silu", ()), ("elu", (0.5,)), ("celu", (0.5,)), ("selu", ()), ("mish", ()),
    ("hardtanh", (-0.5, 0.5)), ("relu6", ()), ("hardsigmoid", ()), ("hardswish", ()), ("threshold", (0.1, -2.0)),
])
def test_activations_in_place(name, arguments):
    values = np.linspace(-3, 7, 11)
    for options in ((*arguments, True), arguments):
        results = []
        for library in (genesis, torch):
            x = library.tensor(values, requires_grad=True)
            held = x * 1
            function = getattr(library.nn.functional, name)
            y = function(held, *options, **({} if options[-1:] == (True,) else {"inplace": True}))
            assert y is held
            (y * y).sum().backward()
            results.append((held.detach().numpy(), x.grad.numpy()))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-14)


def test_dropout_in_place():
    x = genesis.ones(4)
    assert genesis.nn.functional.dropout(x, 1.0, True, True) is x and x.tolist() == [0] * 4
    x = genesis.ones(4)
    assert genesis.nn.Dropout(1.0, inplace=True)(x) is x and x.tolist() == [0] * 4


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float32"])
@pytest.mark.parametrize("ends", [
    (3.3,), (0.5, 3.2), (0.5, 3.7, 1), (0, 5, 1.5), (5, 0.5, -1), (5, 0.5, -2), (0.9, 4.0), (2, 7.9, 2), (5.5, 0, -1)])
def test_ranges_between_fractions_have_torchs_length(ends, dtype):
    """Of int64, the ends and the step are whole numbers before it is counted."""
    ours, theirs = (library.arange(*ends, dtype=getattr(library, dtype)).tolist() for library in (genesis, torch))
    assert ours == theirs


def test_scaling_by_powers_of_two_that_are_no_numbers_of_the_dtype_is_torchs():
    values = [0.0, -0.0, 1e-30, 1e-38, 1e30, 1.0, float("inf"), float("nan"), 1.99999999999, 1e-300, 1.7e308]
    exponents = [2000, 200, 140, 200, -140, -149, -500, 5, -1074, 1200, -2097]
    for dtype in ("float16", "float32", "float64"):
        ours, theirs = (
            library.ldexp(library.tensor(values, dtype=getattr(library, dtype)), library.tensor(exponents, dtype=library.int32))
            for library in (genesis, torch))
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("ends", [(0, 1), (-0.1, 0.7), (7, -3), (2.5, 2.5), (1e300, -1e300)])
@pytest.mark.parametrize("steps", [0, 1, 2, 10, 101])
def test_evenly_spaced_numbers_are_numpys(ends, steps):
    want = np.linspace(*ends, steps)
    np.testing.assert_array_equal(genesis.linspace(*ends, steps, dtype=genesis.float64).numpy(), want)
    of_tensors = genesis.linspace(*[genesis.tensor(x, dtype=genesis.float64) for x in ends], steps, dtype=genesis.float64)
    np.testing.assert_array_equal(of_tensors.numpy(), want)


@pytest.mark.parametrize("ends", [(0, 1), (-1, 1), (0.3, 7.7), (200, 3), (2.1, 2.1), (-3, 1000)])
def test_evenly_spaced_numbers_of_float32_are_torchs(ends):
    for steps in (1, 2, 3, 7, 64, 101, 1000):
        for of in (float, lambda x: x / 3):
            ours, theirs = (library.linspace(*map(of, ends), steps).numpy() for library in (genesis, torch))
            np.testing.assert_array_equal(ours, theirs)
    compiled = genesis.compile(lambda end: genesis.linspace(ends[0], end, 7))
    for end in (0.1, 0.7, 3.3):
        np.testing.assert_array_equal(compiled(end).numpy(), torch.linspace(ends[0], end, 7).numpy())


@pytest.mark.parametrize("end, dtype", [(1e6, "float16"), (-1e39, "float32"), (1e39, "complex64"), (300, "uint8")])
def test_evenly_spaced_numbers_have_ends_of_their_dtype(end, dtype):
    for lib in (genesis, torch):
        with pytest.raises(RuntimeError if lib is torch else ValueError, match="without overflow"):
            lib.linspace(1, end, 3, dtype=getattr(lib, dtype))


@pytest.mark.parametrize("base", [2, 3, 10])
def test_powers_at_even_distances_are_exact_integers(base):
    assert genesis.logspace(0, 15, 16, base, dtype=genesis.int64).tolist() == [base**k for k in range(16)]


@pytest.mark.parametrize("function", [genesis.linspace, genesis.logspace])
def test_a_number_of_steps_is_a_whole_one(function):
    for steps, problem in ((2.5, TypeError), (3.0, TypeError), (None, TypeError), (-1, ValueError)):
        with pytest.raises(problem, match=function.__name__):
            function(0, 1, steps)
    assert len(function(0, 1, genesis.tensor(3))) == len(function(0, 1, np.int64(3))) == 3
