"""tools/graph_dump.py as a user runs it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
import genesis
x = genesis.tensor([[0.5] * 5] * 5, requires_grad=True)
for step in range(3):
    x.grad = None
    loss = (x @ x * 0.5).exp().sum()
    loss.backward()
    print("loss", loss.item(), *sys.argv[1:])
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "model.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def dump(script, *options):
    command = [sys.executable, str(ROOT / "tools" / "graph_dump.py"), str(script), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_text_of_the_trace_has_a_line_per_node_with_the_users_line(script):
    run = dump(script, "--stage", "trace")
    assert run.returncode == 0, run.stderr
    assert re.search(r"%\d+ = exp\(%\d+\) : float32\[5, 5\] +# model.py:7", run.stdout)
    assert run.stdout.count("## program") == 1 and "runs: 3" in run.stdout


def test_what_the_script_prints_goes_to_stderr_and_its_arguments_arrive(script):
    run = dump(script, "--stage", "trace", "--", "hello")
    assert "loss" not in run.stdout and run.stderr.count("hello") == 3


@pytest.mark.parametrize(("stage", "pattern"), [
    ("lowered", r"%\d+ = matmul\("), ("kernels", r"genesis_\w+: .*exp"),
    ("program", r"(?s)kernel +genesis_.*arena: \d+ bytes"),
])
def test_later_stages_show_what_was_run(script, stage, pattern):
    run = dump(script, "--stage", stage)
    assert run.returncode == 0 and re.search(pattern, run.stdout), run.stdout + run.stderr


def test_dot_is_balanced_and_names_every_edge(script):
    run = dump(script, "--format", "dot", "--stage", "kernels")
    assert run.stdout.count("{") == run.stdout.count("}")
    assert "digraph genesis" in run.stdout and re.search(r"n\d+ -> n\d+;", run.stdout) and "cluster_0" in run.stdout


def test_without_a_stage_one_page_carries_the_programs(script, tmp_path):
    page = tmp_path / "out" / "graph.html"
    run = subprocess.run([sys.executable, "-m", "genesis", "graph", str(script), "-o", str(page)],
                         capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0 and str(page) in run.stdout
    html = page.read_text(encoding="utf-8")
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', html, re.DOTALL).group(1))
    (program,) = data["programs"]
    node = next(n for n in program["nodes"] if n["label"].startswith("exp"))
    assert node["type"] == "float32[5, 5]" and node["text"].startswith(f"%{node['id']} = exp(")
    name, source = program["lines"][node["line"]]
    assert name == "model.py:7" and source.startswith("loss =")
    launch = program["launches"][node["launch"]]
    assert program["scopes"][node["scope"]][0] == "forward" and program["runs"] == 3
    assert "exp(" in launch["source"] and "# model.py:7" in launch["source"]
    assert sum(n["ms"] for n in program["nodes"]) == pytest.approx(program["ms"], rel=1e-3)
    assert not re.search(r'(src|href)="https?:', html)


def test_a_script_that_fails_is_dumped_as_far_as_it_came(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import genesis\ngenesis.ones(2).exp().tolist()\nraise ValueError('no')\n", encoding="utf-8")
    run = dump(path, "--stage", "trace")
    assert "exp" in run.stdout and "raised ValueError: no" in run.stderr


def test_a_missing_script_is_refused(tmp_path):
    run = dump(tmp_path / "absent.py")
    assert run.returncode == 2 and "there is no script" in run.stderr
