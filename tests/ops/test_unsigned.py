"""Unsigned integers of 16, 32 and 64 bits: conversions, arithmetic of elements, reductions and promotion, beside NumPy's."""

import numpy as np
import pytest

import genesis

UNSIGNED = ["uint16", "uint32", "uint64"]
OTHERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", *UNSIGNED]


PAIRS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floor_divide": np.floor_divide, "remainder": np.remainder,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "maximum": np.maximum,
    "minimum": np.minimum, "lt": np.less, "le": np.less_equal, "gt": np.greater, "eq": np.equal, "ne": np.not_equal,
}


def values(dtype):
    most = np.iinfo(dtype).max
    return np.array([0, 1, 5, most, most - 1, most // 2 + 1, most // 2] * 5, dtype)


def same(ours, theirs):
    np.testing.assert_array_equal(ours.numpy(), theirs, strict=True)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_conversions_are_numpys(dtype):
    large, small = values(dtype), np.array([0, 1, 5, 100] * 5)
    there = [genesis.tensor(large).to(getattr(genesis, other)) for other in OTHERS]
    back = [genesis.tensor(small.astype(other)).to(getattr(genesis, dtype)) for other in OTHERS]
    for other, to, of in zip(OTHERS, there, back, strict=True):
        same(to, large.astype(other))
        same(of, small.astype(other).astype(dtype))
    assert genesis.tensor(large)[3].item() == np.iinfo(dtype).max and genesis.tensor(large).tolist() == large.tolist()
    assert repr(genesis.ones(2, dtype=getattr(genesis, dtype))) == f"tensor([1, 1], dtype=genesis.{dtype})"


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("compiled", [False, True])
def test_arithmetic_of_elements_is_numpys(dtype, compiled):
    x, y = values(dtype), np.resize(np.array([3, 7, 2, np.iinfo(dtype).max, 1], dtype), 35)
    def results(z, other, few, fewer):
        pairs = [getattr(genesis, name)(z, other) for name in PAIRS]
        return [*pairs, genesis.bitwise_right_shift(z, few), genesis.pow(z, fewer), genesis.sign(z), z + 1]

    ours = (genesis.compile(results) if compiled else results)(*map(genesis.tensor, (x, y, y % 9, y % 4)))
    pairs = [theirs(x, y) for theirs in PAIRS.values()]
    for mine, theirs in zip(ours, [*pairs, x >> (y % 9), x ** (y % 4), np.sign(x), x + np.array(1, dtype)], strict=True):
        same(mine, theirs)


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_reductions_orders_and_moves_are_numpys(dtype):
    x = values(dtype).reshape(5, 7)
    z = genesis.tensor(x)
    ours = [z.amax(0), z.amin(1), z.max(), z.argmax(), z.sort(1).values, z.sum(0), genesis.cat([z, z.flip([0])], 1),
            z[genesis.tensor([3, 0])].T.contiguous(), genesis.where(z > 5, z, z + 1)]
    theirs = [x.max(0), x.min(1), np.array(x.max()), np.array(x.argmax()), np.sort(x, 1), x.astype(np.int64).sum(0),
              np.concatenate([x, x[::-1]], 1), x[[3, 0]].T, np.where(x > 5, x, x + np.array(1, dtype))]
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)
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
