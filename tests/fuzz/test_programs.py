"""Random programs give what NumPy gives, however they are fused, split, threaded and flushed."""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import genesis
from tests.fuzz.oracle import checked_flushes
from tests.fuzz.programs import Program
from tests.fuzz.steps import STEPS

# GENESIS_FUZZ=5000 runs that many programs of each kind, new ones each time.
EXAMPLES = int(os.environ.get("GENESIS_FUZZ", "0"))
FUZZ = settings(
    max_examples=EXAMPLES or 20, derandomize=not EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck),
    database=None, phases=[Phase.generate, Phase.shrink],
)


@pytest.fixture(autouse=True)
def threads_restored():
    before = genesis.get_num_threads()
    yield
    genesis.set_num_threads(before)


@FUZZ
@given(st.data(), st.integers(1, 3), st.integers(1, 14))
def test_values_are_the_oracles(data, threads, length):
    genesis.set_num_threads(threads)
    genesis.manual_seed(0)
    with checked_flushes():
        program = Program(lambda low, high: data.draw(st.integers(low, high)), gradients=False)
        program.run(length, STEPS)
        program.finish()


@FUZZ
@given(st.data(), st.integers(1, 3), st.integers(1, 8))
def test_gradients_are_the_oracles(data, threads, length):
    genesis.set_num_threads(threads)
    genesis.manual_seed(0)
    with checked_flushes():
        program = Program(lambda low, high: data.draw(st.integers(low, high)), gradients=True)
        program.run(length, STEPS)
        program.finish()
