"""The examples keep their promises."""

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

TWICE = """
import os, runpy, sys
_, script, first, second, *settings = sys.argv
sys.path[0] = os.path.dirname(script)
for more in ([first], [second, "--compile"]):
    sys.argv = [script, *settings, "--picture", *more]
    runpy.run_path(script, run_name="__main__")
"""


@pytest.mark.parametrize("name", SMALL)
def test_compiled_or_not_an_example_trains_alike(name, tmp_path):
    """What is printed last is the score on what was held out, of the same random numbers: both ways in one process."""
    pictures = [tmp_path / "0.png", tmp_path / "1.png"]
    command = [sys.executable, "-c", TWICE, str(ROOT / "examples" / f"{name}.py"), *map(str, pictures), *SMALL[name]]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    first, second = (float(score) for score in re.findall(r"(?:accuracy|loss)  ([\d.]+)", run.stdout))
    assert first == pytest.approx(second, abs=0.01)
