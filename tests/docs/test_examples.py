"""The examples keep their promises."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_digits_are_learned_and_drawn(tmp_path):
    picture = tmp_path / "out" / "digits.png"
    command = [sys.executable, str(ROOT / "examples" / "train_digits.py"), "--picture", str(picture)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    assert float(re.search(r"test accuracy +([\d.]+)", run.stdout).group(1)) >= 0.97
    assert re.search(r"kernels compiled +\d+\nkernels loaded +\d+", run.stdout)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "epoch/s" in run.stderr


SMALL = {
    "mnist_like_digits": ("--epochs", "2", "--copies", "2"),
    "cnn": ("--epochs", "1", "--pictures", "256"),
    "bayes": ("--epochs", "2", "--numbers", "3"),
    "fourier_neural_operator": ("--epochs", "2", "--fields", "64", "--width", "4"),
    "graph_network": ("--epochs", "8", "--nodes", "400", "--width", "8", "--attention"),
    "char_gpt": ("--steps", "4", "--layers", "1", "--width", "32", "--heads", "2", "--sample", "3"),
}

# All examples in one process, which imports once, and both ways: each run begins with a seed of its own. Drawing takes as long
# as training, and is the same both ways: once is enough.
TWICE = """
import json, runpy, sys
_, examples, sys.path[0], folder = sys.argv
import training
curves = training.learning_curves
for name, settings in json.loads(examples).items():
    print(">>>", name)
    for way in "", "--compile":
        training.learning_curves = curves if not way else lambda *shown: None
        sys.argv = [f"{sys.path[0]}/{name}.py", *settings, "--picture", f"{folder}/{name}.png", *way.split()]
        runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_compiled_or_not_examples_train_alike(tmp_path):
    """What is printed last is the score on what was held out, of the same random numbers."""
    command = [sys.executable, "-c", TWICE, json.dumps(SMALL), str(ROOT / "examples"), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stdout[-1000:] + run.stderr
    printed = dict(text.split("\n", 1) for text in run.stdout.split(">>> ")[1:])
    assert printed.keys() == SMALL.keys()
    for name, text in printed.items():
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG"), name
        first, second = (float(score) for score in re.findall(r"(?:accuracy|loss)  ([\d.]+)", text))
        assert first == pytest.approx(second, abs=0.01), name
