"""In IPython: lines are those of cells, our frames are folded away, and tensors, graphs and programs have a picture."""

import importlib.util
import json
import subprocess
import sys

import pytest

import genesis

needs_ipython = pytest.mark.skipif(importlib.util.find_spec("IPython") is None, reason="IPython is not installed")
SESSION = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
said = []
shell._showtraceback = lambda kind, error, text: said.append("\\n".join(text))
shell.run_line_magic("colors", "NoColor")
results = [shell.run_cell(cell, store_history=True) for cell in json.loads(sys.argv[1])]
print(json.dumps({"values": [str(r.result) for r in results], "said": said}))
"""


def run_cells(*cells):
    run = subprocess.run([sys.executable, "-c", SESSION, json.dumps(cells)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@needs_ipython
def test_lines_are_those_of_cells_and_our_frames_are_folded_away():
    found = run_cells(
        "import genesis\nx = genesis.ones(2, 3)",
        "y = x.exp()\n\ngenesis.debug.graph(y * 2)",
        "def f(z):\n    return z @ z\n\nf(x)",
        "%xmode Verbose\nf(x)",
        "1 / 0",
        "genesis.export(lambda z: z * 2, x)",
        "with genesis.profiler.profile() as p:\n    value = x.sin().sum().item()\np.table(by='line')",
        "p.annotate('Cell In[7]')",
    )
    program, table, source = found["values"][5:]
    assert "# Cell In[6]:1" in program and "Cell In[7]:2" in table and "Cell In[7]: 100.0%" in source and "x.sin()" in source
    graph = found["values"][1]
    assert "Cell In[2]:1" in graph and "Cell In[2]:3" in graph and "ipython" not in graph
    folded, verbose, others = found["said"]
    assert "inner extents differ" in folded and "return z @ z" in folded and "skipping hidden" in folded
    assert "genesis/tensor/" not in folded and "genesis/" in verbose
    assert "ZeroDivisionError" in others and "1 / 0" in others


def test_a_tensor_is_a_table_and_what_it_holds_is_escaped():
    text = genesis.tensor([[1.5, -2.0], [float("nan"), 3.0]], requires_grad=True)._repr_html_()
    assert "float32[2, 2]" in text and "requires_grad=True" in text
    assert text.count("<tr>") == 2 and text.count("<td>") == 4 and "-2.0000" in text and "nan" in text
    long = genesis.arange(5000)._repr_html_()
    assert long.count("<td>") == 7 and "4999" in long and "&hellip;" in long
    assert "<table>" not in genesis.ones(2, 2, 2)._repr_html_() and "<pre>" in genesis.tensor(3.0)._repr_html_()
    graded = (genesis.ones(2, requires_grad=True) * 2)._repr_html_()
    assert "&lt;MulBackward" in graded and "<MulBackward" not in graded


def test_graphs_programs_and_recordings_are_pages_in_frames():
    x = genesis.ones(3) * 2
    for shown in (genesis.debug.graph(x.exp()), genesis.debug.program(x.exp())):
        text = shown._repr_html_()
        assert text.startswith("<iframe") and "&quot;exp&quot;" in text and text.count('"') == 4
    with genesis.debug.Recording() as recording:
        x.sum().item()
    assert "&quot;sum&quot;" in recording._repr_html_()
