"""Threads of a simulated block wait for one another where they are told to, and only there."""

import numpy as np
import pytest

from genesis.codegen.cuda.signature import Function
from genesis.codegen.cuda.simulate import run
from genesis.codegen.cuda.target import SIMULATED

pytest.importorskip("numba_cuda")
pytestmark = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator: see test_in_the_simulator.py")

NEIGHBOURS = """
def neighbours(x, y, distance):
    i, start = cuda.threadIdx.x, 8 * cuda.blockIdx.x
    given = cuda.shared.array(8, float64)
    given[i] = x[start + i]
    {barrier}
    y[start + i] = given[(i + distance) % 8]
"""


def neighbours(x, distance, barrier):
    """What the threads of four blocks take from the neighbours so far away."""
    function = Function("neighbours", NEIGHBOURS.format(barrier=barrier), ("float64*", "float64*", "int64"), ())
    y = np.zeros(32)
    run(function, (4, 1), (8, 1), [x.ctypes.data, y.ctypes.data, distance])
    return y.reshape(4, 8)


@pytest.mark.parametrize("distance", [1, 3, 7])
def test_a_barrier_is_waited_at_and_its_lack_is_noticed(distance):
    x = np.arange(32.0)
    expected = np.roll(x.reshape(4, 8), -distance, 1)
    np.testing.assert_array_equal(neighbours(x, distance, "cuda.syncthreads()"), expected)
    wrong = neighbours(x + 100, distance, "pass") != expected + 100
    assert wrong[::2].any() and wrong[1::2].any()


def test_threads_that_have_ended_are_not_waited_for():
    source = """
def some(x, y):
    i = cuda.threadIdx.x
    if i > 5:
        return
    x[i] = i
    cuda.syncthreads()
    y[i] = x[5 - i]
"""
    x, y = np.zeros(8), np.zeros(8)
    run(Function("some", source, ("float64*", "float64*"), ()), (1, 1), (8, 1), [x.ctypes.data, y.ctypes.data])
    assert y.tolist() == [5, 4, 3, 2, 1, 0, 0, 0]


def test_what_a_thread_raises_ends_the_others_and_is_raised():
    source = """
def failing(x):
    i = cuda.threadIdx.x
    x[i] = 1
    if i == 5:
        raise ValueError("the sixth")
    cuda.syncthreads()
    x[i] = 2
"""
    x = np.zeros(8)
    with pytest.raises(ValueError, match="the sixth"):
        run(Function("failing", source, ("float64*",), ()), (1, 1), (8, 1), [x.ctypes.data])
    assert set(x) == {0, 1}
    y = np.arange(32.0)
    np.testing.assert_array_equal(neighbours(y, 1, "cuda.syncthreads()"), np.roll(y.reshape(4, 8), -1, 1))
