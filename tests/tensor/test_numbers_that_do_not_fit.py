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


def _assigned(tensor, number):
    tensor[0] = number
    return tensor


def _outcome(library, maker, number, dtype):
    try:
        return MAKERS[maker](library, number, getattr(library, dtype)).tolist()
    except (RuntimeError, ValueError, OverflowError):
        return "refused"


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_what_an_integer_dtype_does_not_hold_is_refused(maker, dtype, number):
    assert _outcome(genesis, maker, number, dtype) == _outcome(torch, maker, number, dtype)


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
