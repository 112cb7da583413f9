"""The scripts are documents: they are run by the tests, not collected. Every test draws the same random numbers."""

import pytest

import genesis

collect_ignore = ["scripts"]


@pytest.fixture(autouse=True)
def seeded():
    genesis.manual_seed(0)
