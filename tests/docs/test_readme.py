"""The README's example is a program that runs, and learns."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_runs_and_learns(tmp_path):
    source = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL).group(1)
    script = tmp_path / "example.py"
    script.write_text(source, encoding="utf-8")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=ROOT, env=None, check=False)
    assert run.returncode == 0, run.stderr
    losses = [float(text) for text in re.findall(r"loss ([\d.]+)", run.stdout)]
    assert len(losses) == 6 and losses[-1] < 0.02 < losses[0]
    assert "kernels_compiled" in run.stdout


def test_the_example_is_about_twenty_lines():
    source = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL).group(1)
    assert len([line for line in source.splitlines() if line.strip()]) <= 20


def test_the_compiled_example_runs_and_is_explained(tmp_path):
    source = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[1]
    script = tmp_path / "example.py"
    script.write_text(source, encoding="utf-8")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=ROOT, env=None, check=False)
    assert run.returncode == 0, run.stderr
    loss, heading, *_ = run.stdout.splitlines()
    assert float(loss) < 0.5 and heading == "step: 1 program; is replayed"
    assert "replayed 99 times" in run.stdout
