"""Whole programs, written for PyTorch, print under the door what they print under PyTorch."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


def printed(program: Path, *options: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", *options, str(program)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_prints_what_it_prints_under_pytorch(program):
    ours, theirs = printed(program, "-m", "genesis.as_torch"), printed(program)
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    assert [*map(float, NUMBER.findall(ours))] == pytest.approx([*map(float, NUMBER.findall(theirs))], rel=1e-4, abs=2e-4)
