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


def test_programs_print_what_they_print_under_pytorch(tmp_path):
    script = tmp_path / "in_turn.py"
    script.write_text(IN_TURN)
    ours, theirs = printed_by_all("-m", "genesis.as_torch", str(script)), printed_by_all(str(script))
    assert ours.keys() == theirs.keys() == {*PROGRAMS}
    for program in PROGRAMS:
        texts, numbers = zip(*((NUMBER.sub("#", all_of[program]), [*map(float, NUMBER.findall(all_of[program]))])
                               for all_of in (ours, theirs)), strict=True)
        assert texts[0] == texts[1], program.stem
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-4, abs=2e-4), program.stem
