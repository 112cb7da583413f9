"""The tutorials: each notebook's cells run in IPython, one after the other, and their assertions hold."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.ipynb"))
SESSION = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    shell.run_cell(cell, store_history=True).raise_error()
"""


def cells(file, kind):
    notebook = json.loads(file.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_there_are_six_without_stored_results():
    assert [file.stem for file in TUTORIALS] == ["add_an_operation", "compile", "distribute", "look_inside", "ship", "train"]
    for file in TUTORIALS:
        notebook = json.loads(file.read_text(encoding="utf-8"))
        assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")
        assert cells(file, "markdown")[0].startswith("# ")


@pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
@pytest.mark.parametrize("file", TUTORIALS, ids=lambda file: file.stem)
def test_a_tutorial_runs(file, tmp_path):
    run = subprocess.run([sys.executable, "-c", SESSION], input=json.dumps(cells(file, "code")), cwd=tmp_path,
                         capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
