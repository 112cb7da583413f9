"""Python's numbers that an integer dtype does not hold are refused where they would become elements, as PyTorch does."""

import numpy as np
import pytest

import genesis

torch = pytest.importorskip("torch")

NUMBERS = [300, -300, 127, 128, -128, -129, 255, 256, -255, -256, -1, 127.5, -128.5, -1.0, 300.0, 2.5, True, 2**63,
           -(2**63) - 1, float("inf"), float("nan")]
MAKERS = {
    "tensor": lambda library, number, dtype: library.tensor([number], dtype=dtype),
    "full": lambda library, number, dtype: library.full((1,), number, dtype=dtype),
    "full_like": lambda library, number, dtype: library.full_like(library.zeros(1, dtype=dtype), number),
    "fill_": lambda library, number, dtype: library.zeros(1, dtype=dtype).fill_(number),
    "masked_fill": lambda library, number, dtype: library.zeros(1, dtype=dtype).masked_fill(library.tensor([True]), number),
    "setitem": lambda library, number, dtype: _assigned(library.zeros(1, dtype=dtype), number),
}


ZERO = [0]
MAKERS |= {
    "clamp": lambda library, number, dtype: library.ones(1, dtype=dtype).clamp(min=number),
    "clamp_": lambda library, number, dtype: library.ones(1, dtype=dtype).clamp_(0, number),
    "clamp_min": lambda library, number, dtype: library.clamp_min(library.ones(1, dtype=dtype), number),
    "where": lambda library, number, dtype: library.where(library.tensor([True]), number, library.ones(1, dtype=dtype)),
    "constant_pad_nd": lambda library, number, dtype: library.constant_pad_nd(library.ones(1, dtype=dtype), (1, 0), number),
    "scatter": lambda library, number, dtype: library.ones(1, dtype=dtype).scatter(0, library.tensor(ZERO), number),
    "threshold": lambda library, number, dtype: library.nn.functional.threshold(library.ones(1, dtype=dtype), 1, number),
    "addcmul": lambda library, number, dtype: library.addcmul(*[library.full((1,), 3, dtype=dtype)] * 3, value=number),
    "add": lambda library, number, dtype: library.add(*[library.ones(1, dtype=dtype)] * 2, alpha=_alpha(number)),
    "add_": lambda library, number, dtype: library.ones(1, dtype=dtype).add_(
        library.ones(1, dtype=dtype), alpha=_alpha(number)),
    "pow": lambda library, number, dtype: library.ones(1, dtype=dtype) ** number,
    "addmm": lambda library, number, dtype: library.addmm(*[library.ones(1, 1, dtype=dtype)] * 3, alpha=number),
    "baddbmm": lambda library, number, dtype: library.baddbmm(*[library.ones(1, 1, 1, dtype=dtype)] * 3, beta=number),
    "index_add": lambda library, number, dtype: library.ones(1, dtype=dtype).index_add(
        0, library.tensor(ZERO), library.ones(1, dtype=dtype), alpha=number),
    "linspace": lambda library, number, dtype: library.linspace(number, 5, 4, dtype=dtype),
    "logspace": lambda library, number, dtype: library.logspace(0, number, 2, base=1, dtype=dtype),
    "suggested": lambda library, number, dtype: library.tensor([number, -1]),
}


def _alpha(number):
    return 1 if number is True or number == 2**63 else number  # PyTorch alone refuses one, and takes the other in int64


def _assigned(tensor, number):
    tensor[0] = number
    return tensor


def _outcome(library, maker, number, dtype):
    try:
        return maker(library, number, getattr(library, dtype)).tolist()
    except (RuntimeError, ValueError, TypeError, OverflowError):
        return "refused"


@pytest.mark.parametrize("maker", MAKERS)
def test_what_an_integer_dtype_does_not_hold_is_refused(maker, by_references):
    for dtype in ("int8", "uint8", "int32", "int64"):
        ours, theirs = ([_outcome(library, MAKERS[maker], number, dtype) for number in NUMBERS] for library in (genesis, torch))
        assert str(ours) == str(theirs), (dtype, NUMBERS)


FLOATS = [65504, 65519.0, 65520, -1e5, 3.39e38, 3.5e38, -1e39, np.float64(-1e39), complex(1.7e308, -1.7e308), 2.5, float("inf"),
          float("-inf"), float("nan")]


PAIRS = {  # PyTorch rounds where there is one element
    "full": lambda library, number, dtype: library.full((2,), number, dtype=dtype),
    "full_like": lambda library, number, dtype: library.full_like(library.zeros(2, dtype=dtype), number),
    "fill_": lambda library, number, dtype: library.zeros(2, dtype=dtype).fill_(number),
    "masked_fill": lambda library, number, dtype: library.zeros(2, dtype=dtype).masked_fill(library.tensor([True]), number),
    "setitem": lambda library, number, dtype: _assigned(library.zeros(2, dtype=dtype), number),
    "tensor": MAKERS["tensor"],
}
OF_SIXTEEN_BITS = {name: MAKERS[name] for name in ("clamp_min", "constant_pad_nd", "scatter")}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_what_a_floating_dtype_does_not_hold_is_refused(dtype):
    makers = PAIRS | OF_SIXTEEN_BITS if dtype.endswith("16") else PAIRS
    for name, maker in makers.items():
        ours, theirs = ([_outcome(library, maker, number, dtype) for number in FLOATS] for library in (genesis, torch))
        assert str(ours) == str(theirs), (name, FLOATS)


def test_factors_of_sixteen_bits_may_be_larger_than_these():
    for maker in (MAKERS["addcmul"], MAKERS["addmm"], MAKERS["where"]):
        assert _outcome(genesis, maker, 1e5, "float16") == _outcome(torch, maker, 1e5, "float16") != "refused"


@pytest.mark.parametrize("ends", [(-3.7, 9.9, 7), (0.5, 9.9, 4), (0, 7, 7), (100, -3, 8), (5, 9, 1), (2, 9, 0)])
def test_even_distances_between_integers_begin_at_integers(ends):
    assert genesis.linspace(*ends, dtype=genesis.int32).tolist() == torch.linspace(*ends, dtype=torch.int32).tolist()


BOUNDED = {
    "hardtanh": lambda library, tensor, low, high: library.nn.functional.hardtanh(tensor, low, high - 1),
    "random_": lambda library, tensor, low, high: tensor.random_(low, high),
    "randint": lambda library, tensor, low, high: library.randint(low, high, (1,), dtype=tensor.dtype),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_are_held_by_the_dtype(name):
    for library in genesis, torch:
        for dtype, low, high in ("int8", -128, 128), ("uint8", 0, 256):
            tensor = library.ones(1, dtype=getattr(library, dtype))
            BOUNDED[name](library, tensor, low, high)
            for beyond in (low - 1, high), (low, high + 1):
                with pytest.raises(RuntimeError):
                    BOUNDED[name](library, tensor, *beyond)


def test_masked_scatter_takes_one_dtype():
    with pytest.raises(TypeError, match="dtypes differ: int8 and int64"):
        genesis.zeros(1, dtype=genesis.int8).masked_scatter(genesis.tensor([True]), genesis.tensor([300]))


def test_a_dtype_by_another_name_refuses_too():
    with pytest.raises(ValueError, match="cannot be converted to int8 without overflow: 300"):
        genesis.full((1,), 300, dtype="int8")


def test_numbers_of_arrays_wrap_around_as_before():
    values = np.array([300, -1])
    assert genesis.tensor(values, dtype=genesis.uint8).tolist() == torch.tensor(values, dtype=torch.uint8).tolist()


def test_a_compiled_fill_refuses_too():
    @genesis.compile
    def filled(x, number):
        return x.fill_(number) + 0

    x = genesis.zeros(1, dtype=genesis.int8)
    assert [filled(x, number).item() for number in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(ValueError, match="cannot be converted to int8 without overflow: 300"):
        filled(x, 300)


def test_a_compiled_call_with_another_number_refuses_too():
    clamped = genesis.compile(lambda x, number: x.clamp(max=number) + 0)
    x = genesis.full((1,), 100, dtype=genesis.int8)
    assert [clamped(x, number).item() for number in (1, 2, 3, 127)] == [1, 2, 3, 100]
    with pytest.raises(ValueError, match="clamp: value cannot be converted to int8 without overflow: 300"):
        clamped(x, 300)
    assert clamped(x.int(), 300).item() == 100
