"""Unsigned integers of 16, 32 and 64 bits: conversions, arithmetic of elements, reductions and promotion, beside NumPy's."""

import numpy as np
import pytest

import genesis

UNSIGNED = ["uint16", "uint32", "uint64"]
OTHERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", *UNSIGNED]


def values(dtype):
    most = np.iinfo(dtype).max
    return np.array([0, 1, 5, most, most - 1, most // 2 + 1, most // 2] * 5, dtype)


def same(ours, theirs):
    np.testing.assert_array_equal(ours.numpy(), theirs, strict=True)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_conversions_are_numpys(dtype):
    large, small = values(dtype), np.array([0, 1, 5, 100] * 5)
    for other in OTHERS:
        same(genesis.tensor(large).to(getattr(genesis, other)), large.astype(other))
        same(genesis.tensor(small.astype(other)).to(getattr(genesis, dtype)), small.astype(other).astype(dtype))
    assert genesis.tensor(large)[3].item() == np.iinfo(dtype).max and genesis.tensor(large).tolist() == large.tolist()
    assert repr(genesis.ones(2, dtype=getattr(genesis, dtype))) == f"tensor([1, 1], dtype=genesis.{dtype})"


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("compiled", [False, True])
def test_arithmetic_of_elements_is_numpys(dtype, compiled):
    x, y = values(dtype), np.resize(np.array([3, 7, 2, np.iinfo(dtype).max, 1], dtype), 35)
    for name, theirs in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "floor_divide": np.floor_divide, "remainder": np.remainder,
        "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "maximum": np.maximum,
        "minimum": np.minimum, "lt": np.less, "le": np.less_equal, "gt": np.greater, "eq": np.equal, "ne": np.not_equal,
    }.items():
        function = getattr(genesis, name)
        function = genesis.compile(function) if compiled else function
        same(function(genesis.tensor(x), genesis.tensor(y)), theirs(x, y))
    z = genesis.tensor(x)
    same(genesis.bitwise_right_shift(z, genesis.tensor(y % 9)), x >> (y % 9))
    same(genesis.pow(z, genesis.tensor(y % 4)), x ** (y % 4))
    same(genesis.sign(z), np.sign(x))
    same(z + 1, x + np.array(1, dtype))


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_reductions_orders_and_moves_are_numpys(dtype):
    x = values(dtype).reshape(5, 7)
    z = genesis.tensor(x)
    same(z.amax(0), x.max(0))
    same(z.amin(1), x.min(1))
    assert z.max().item() == x.max() and z.argmax().item() == x.argmax()
    same(z.sort(1).values, np.sort(x, 1))
    same(z.sum(0), x.astype(np.int64).sum(0))
    same(genesis.cat([z, z.flip([0])], 1), np.concatenate([x, x[::-1]], 1))
    same(z[genesis.tensor([3, 0])].T.contiguous(), x[[3, 0]].T)
    same(genesis.where(z > 5, z, z + 1), np.where(x > 5, x, x + np.array(1, dtype)))
    z[0] = 9
    assert z[0].tolist() == [9] * 7


def test_promotion_holds_both():
    for left in UNSIGNED:
        for right in OTHERS:
            expected = np.promote_types(left, right)
            if (left == "uint64" and right.startswith("int")) or right == "float32":
                continue
            assert genesis.promote_types(getattr(genesis, left), getattr(genesis, right)).name == expected.name
    assert genesis.promote_types(genesis.uint32, genesis.float32) is genesis.float32  # PyTorch's: a float is a float
    with pytest.raises(TypeError, match="no integer holds both uint64 and int8"):
        genesis.tensor(np.ones(2, np.uint64)) + genesis.ones(2, dtype=genesis.int8)
    assert not genesis.uint16.is_signed and genesis.iinfo(genesis.uint64).max == 2**64 - 1
