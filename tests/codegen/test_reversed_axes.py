"""Elements that lanes read backwards are loaded side by side and turned round: NumPy's values, no gather."""

import numpy as np
import pytest

import genesis
from genesis.codegen.cpu.emit import emit_kernel
from genesis.execution.plan import plan_for
from genesis.tensor.dispatch import array_of

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "bool"])
def test_reversed_rows_of_any_length_and_dtype(dtype):
    for extent in (2, 7, 8, 33, 64):
        x = (RANDOM.normal(size=(5, extent)) * 3).astype(dtype)
        np.testing.assert_array_equal(genesis.tensor(x).flip(1).numpy(), x[:, ::-1])


def test_reversed_rows_meet_others_and_are_reduced():
    x = RANDOM.integers(-9, 9, (40, 33)).astype(np.float32)
    t = genesis.tensor(x)
    np.testing.assert_array_equal((t.flip(1) * t).sum(0).numpy(), (x[:, ::-1] * x).sum(0))
    np.testing.assert_array_equal((t.flip(1) * t).sum(1).numpy(), (x[:, ::-1] * x).sum(1))
    np.testing.assert_array_equal(t.flip(1).argmax(1).numpy(), x[:, ::-1].argmax(1))
    np.testing.assert_array_equal(t.t().flip(0).contiguous().numpy(), x.T[::-1])


def test_a_reversed_row_is_no_gather():
    y = genesis.tensor(RANDOM.normal(size=(16, 24)).astype(np.float32)).flip(1) + 1
    ((call,),) = plan_for(array_of(y).trace).lowered.schedule.stages
    assert "gathered" not in emit_kernel(call.kernel, 8)
