"""float16 in vectors, their remainders and single elements: every elementwise operation runs, and gives the same everywhere."""

import numpy as np
import pytest

import genesis
from genesis.ops.registry import OPERATIONS
from genesis.ops.signatures import signature_of
from tests.ops.samples import INTERNAL, is_elementwise

SIZES = (1, 7, 9, 15, 16, 17)
VALUES = np.random.default_rng(0).uniform(0.05, 0.95, (3, 33)).astype(np.float16)
OF_INTEGERS = "bitwise", "gcd", "lcm"
NAMES = [
    name for name in sorted(OPERATIONS) if is_elementwise(name) and name not in INTERNAL and not name.startswith(OF_INTEGERS)
]


def call(name, arrays):
    operands = [genesis.from_numpy(np.array(array)) for array in arrays]
    return getattr(genesis, name)(**dict(zip(signature_of(OPERATIONS[name]).parameters, operands, strict=False)))


@pytest.mark.parametrize("name", NAMES)
def test_an_element_is_what_it_is_among_others(name):
    operands = VALUES[: len(OPERATIONS[name].operands)]
    whole = call(name, operands).numpy()
    for size in SIZES:
        np.testing.assert_array_equal(call(name, operands[:, :size]).numpy(), whole[:size], err_msg=f"{size} elements")
    np.testing.assert_array_equal(call(name, operands[:, 0]).numpy(), whole[0])


@pytest.mark.parametrize("dtype", [genesis.float16, genesis.bfloat16])
def test_numbers_that_are_only_moved_keep_their_bits(dtype):
    bits = np.arange(1 << 16, dtype=np.uint16)
    order = np.random.default_rng(0).permutation(bits.size)
    x, at = genesis.tensor(bits.view(np.int16)).view(dtype), genesis.tensor(order)
    odd = genesis.tensor(bits % 2 == 1)

    def moved(x, at, odd):
        shuffled = x.new_zeros(x.shape).scatter(0, at, x).gather(0, at)
        return genesis.where(odd, shuffled, x.flip(0)).reshape(256, 256).t().contiguous()

    expected = np.where(bits % 2 == 1, bits, bits[::-1]).reshape(256, 256).T
    for function in (moved, genesis.compile(moved)):
        np.testing.assert_array_equal(function(x, at, odd).view(genesis.int16).numpy().view(np.uint16), expected)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_every_half_is_rounded_to_a_whole_number_as_numpy_does(name):
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        expected = getattr(np, name)(halves.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(getattr(genesis, name)(genesis.tensor(halves)).numpy(), expected)
