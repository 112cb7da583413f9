"""Functions of nested tensors in PyTorch's database, by the NumPy references: `python -m tests.conformance` runs them all."""

import pytest

import genesis
from tests.conformance import nested
from tests.conformance.__main__ import outcome
from tests.conformance.expected import FAILURES

CHOSEN = ("sum", "prod", "all", "argmin", "max", "chunk", "matmul", "masked_select", "frexp", "nn.functional.embedding_bag",
          "nn.functional.rms_norm", "select")


@pytest.mark.filterwarnings("ignore")
def test_nested_operators_agree_with_torch():
    failing = {}
    with genesis.eager():
        for entry in nested.entries(CHOSEN):
            found = outcome(lambda e: nested.check_values(e, limit=8), entry)
            if found not in ("ok", "-"):
                failing[nested.title(entry)] = found
    assert not failing


def test_expected_failures_are_entries():
    names = FAILURES["nested values"].keys()
    assert {nested.title(entry) for entry in nested.entries(names)} == names
