"""Functions of sparse tensors in PyTorch's database, by the NumPy references: `python -m tests.conformance` runs them all."""

import pytest

import genesis
from tests.conformance import sparse
from tests.conformance.__main__ import outcome
from tests.conformance.expected import FAILURES

ENTRIES = sparse.entries()


@pytest.mark.filterwarnings("ignore")
def test_sparse_operators_agree_with_torch():
    failing = {}
    with genesis.eager():
        for entry in ENTRIES[::7]:
            found = outcome(lambda e: sparse.check_values(e, limit=2), entry)
            if found not in ("ok", "-") and sparse.title(entry) not in FAILURES["sparse values"]:
                failing[sparse.title(entry)] = found
    assert not failing


def test_expected_failures_are_entries():
    assert FAILURES["sparse values"].keys() <= {sparse.title(entry) for entry in ENTRIES}
