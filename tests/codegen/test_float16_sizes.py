"""float16 in vectors, their remainders and single elements: every elementwise operation runs, and gives the same everywhere."""

import numpy as np
import pytest

import genesis
from genesis.ops.registry import OPERATIONS, signature_of
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
