"""Examples in docstrings take `genesis` as imported."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _examples_have_the_library(doctest_namespace):
    import genesis

    doctest_namespace["genesis"] = genesis
