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


# All programs in one process: each begins with a seed of its own.
IN_TURN = """
import runpy, sys
for program in sys.argv[1:]:
    print(">>>", program)
    runpy.run_path(program, run_name="__main__")
"""


def printed_by_all(*options: str) -> dict[Path, str]:
    """What each program prints when Python runs with `options`."""
    command = [sys.executable, "-W", "ignore", *options, *map(str, PROGRAMS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    texts = (text.partition("\n") for text in done.stdout.split(">>> ")[1:])
    return {Path(program): text for program, _, text in texts}


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What programs print under the door, and under PyTorch."""
    script = tmp_path_factory.mktemp("programs") / "in_turn.py"
    script.write_text(IN_TURN)
    return printed_by_all("-m", "genesis.as_torch", str(script)), printed_by_all(str(script))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_prints_what_it_prints_under_pytorch(program, printed):
    ours, theirs = (texts[program] for texts in printed)
    assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs)
    assert [*map(float, NUMBER.findall(ours))] == pytest.approx([*map(float, NUMBER.findall(theirs))], rel=1e-4, abs=2e-4)
