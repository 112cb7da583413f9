"""Kernels of 8- and 16-bit elements alone fill registers with them: rows of all lengths beside PyTorch's."""

import numpy as np
import pytest
import torch

import genesis

MOVES = {
    "clone": lambda library, x, y: x.clone(),
    "cat": lambda library, x, y: library.cat([x, y, x], 1),
    "flip": lambda library, x, y: x.flip(1),
    "transpose": lambda library, x, y: x.T.contiguous(),
    "row": lambda library, x, y: x[:1].expand(x.shape).contiguous(),
    "column": lambda library, x, y: x[:, :1].expand(x.shape).contiguous(),
    "every other": lambda library, x, y: x[:, ::2].contiguous(),
    "where": lambda library, x, y: library.where(x == y, x, y),
    "equal": lambda library, x, y: x == y,
}
VALUES = {
    "sum": lambda library, x, y: x + y,
    "product": lambda library, x, y: x * y - x,
    "bits": lambda library, x, y: (x & y) ^ ~x,
    "maximum": lambda library, x, y: library.maximum(x, y),
    "quotient": lambda library, x, y: x // (y | 1),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int16", "float16", "bfloat16"])
def test_rows_of_all_lengths(dtype):
    computed = MOVES | (VALUES if "int" in dtype else {})
    for length in (1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 130):
        numbers = np.random.default_rng(length).integers(0, 100, (2, 5, length))
        ours = [genesis.from_numpy(n).to(getattr(genesis, dtype)).clone() for n in numbers]
        theirs = [torch.from_numpy(n).to(getattr(torch, dtype)) for n in numbers]
        for name, compute in computed.items():
            got, want = compute(genesis, *ours).double().numpy(), compute(torch, *theirs).double().numpy()
            np.testing.assert_array_equal(got, want, err_msg=f"{name} {length}")
