"""Whole programs on a GPU that the host plays: these files run with NUMBA_ENABLE_CUDASIM=1 alone, see test_simulated.py."""

import os

import pytest

import genesis
from genesis.runtime.cuda import memory_of

if not os.environ.get("NUMBA_ENABLE_CUDASIM"):
    collect_ignore_glob = ["*"]


@pytest.fixture
def memory():
    """The GPU's memory, with nothing of an earlier test in it."""
    genesis.cuda.empty_cache()
    genesis.cuda.reset_peak_memory_stats()
    return memory_of(0)
