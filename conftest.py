"""Examples in docstrings take `genesis` as imported, and Python's own names where `genesis` has dtypes of the same names."""

import pytest

collect_ignore = ["genesis/as_torch/children/torch.py"]  # which stands in PyTorch's place, wherever it is imported


@pytest.fixture(autouse=True, scope="session")
def _examples_have_the_library(doctest_namespace):
    import genesis

    doctest_namespace.update(genesis=genesis, bool=bool, float=float, int=int)
