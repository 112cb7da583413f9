"""The examples keep their promises."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_digits_are_learned_and_drawn(tmp_path):
    picture = tmp_path / "out" / "digits.png"
    command = [sys.executable, str(ROOT / "examples" / "train_digits.py"), "--picture", str(picture)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    assert float(re.search(r"test accuracy +([\d.]+)", run.stdout).group(1)) >= 0.97
    assert re.search(r"kernels compiled +\d+\nkernels loaded +\d+", run.stdout)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "epoch/s" in run.stderr
