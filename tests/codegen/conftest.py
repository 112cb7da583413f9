"""What tests of kernels share."""

import pytest

import genesis


@pytest.fixture(autouse=True)
def _as_many_threads_as_before():
    before = genesis.get_num_threads()
    yield
    genesis.set_num_threads(before)
