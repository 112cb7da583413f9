"""Examples in docstrings take `genesis` as imported, and Python's own names where `genesis` has dtypes of the same names."""

import os

import pytest

# What tests compare with computes on one thread, here and in the processes that they start. Threads of theirs wait by spinning:
# on two processors, a test process on each, that took a fifth of all time, and nine tenths of it where other work ran beside.
os.environ |= dict.fromkeys(["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1")

collect_ignore = ["genesis/as_torch/children/torch.py"]  # which stands in PyTorch's place, wherever it is imported


@pytest.fixture(autouse=True, scope="session")
def _examples_have_the_library(doctest_namespace):
    import genesis

    doctest_namespace.update(genesis=genesis, bool=bool, float=float, int=int)


@pytest.fixture(autouse=True)
def _examples_of_distributed_functions_have_a_group(request):
    module = request.node.name.removeprefix("genesis.distributed.")
    if not isinstance(request.node, pytest.DoctestItem) or module == request.node.name or module.startswith("initialization."):
        yield
        return
    import genesis

    genesis.distributed.init_process_group()
    yield
    genesis.distributed.destroy_process_group()
