"""What PyTorch raises as a RuntimeError is one here, besides the ValueError, TypeError or IndexError that it is to Python."""

import numpy as np
import pytest
import torch

import genesis
from genesis.ir.errors import also_runtime_error

WRONG = """
    x.reshape(7)
    x.view(7)
    lib.ones(2) @ lib.ones(3)
    x + lib.ones(4)
    lib.cat([x, lib.ones(2, 4)])
    lib.stack([lib.ones(2), lib.ones(3)])
    lib.nn.Linear(3, 2)(lib.ones(4))
    x.expand(3, 3)
    x.gather(1, lib.tensor([[7]])).tolist()
    lib.zeros(-1)
    x.item()
    bool(x)
    lib.einsum("ij,jk", x, x)
    lib.nn.Conv2d(1, 1, 3)(lib.ones(1, 2, 5, 5))
    lib.linalg.cholesky(-lib.eye(2)).tolist()
    lib.linalg.inv(lib.zeros(2, 2)).tolist()
    lib.chunk(x, 0)
    lib.split(x, [1, 2])
    lib.bmm(x, x)
    x.permute(0)
    x.unfold(0, 5, 1)
    lib.multinomial(lib.zeros(3), 1)
    lib.diff(lib.tensor(1.0))
    x.int() @ x
"""


@pytest.mark.parametrize("call", [line.strip() for line in WRONG.strip().splitlines()])
def test_except_clauses_of_either_kind_catch_it(call):
    for lib in (genesis, torch):
        with pytest.raises(RuntimeError) as caught:
            eval(call, {"lib": lib, "x": lib.arange(6.0).reshape(2, 3)})
        if lib is genesis:
            assert isinstance(caught.value, ValueError | TypeError | IndexError)


def test_errors_of_classes_of_their_own_stay_what_they_are():
    own = NotImplementedError("x")
    assert also_runtime_error(own) is own
    found = also_runtime_error(np.linalg.LinAlgError("x"))
    assert isinstance(found, np.linalg.LinAlgError) and isinstance(found, RuntimeError) and str(found) == "x"
    assert also_runtime_error(found) is found
