"""PyTorch's public names: which genesis lacks, and why, is said in `tools/torch_names.py`."""

import runpy
from pathlib import Path

import pytest

NAMES = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "torch_names.py"))
LACKING = {name for names in NAMES["LACKING"].values() for name in names.split()}


@pytest.mark.parametrize("path", NAMES["COUNTED"])
def test_what_is_lacking_has_a_reason(path):
    assert [name for name in NAMES["missing"](path) if name not in LACKING] == []


def test_nothing_that_is_there_is_said_to_be_lacking():
    assert {name for path in NAMES["COUNTED"] for name in NAMES["missing"](path)} == LACKING
