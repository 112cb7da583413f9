"""The runner of random programs: what it counts, and that a process that ends costs one program."""

import subprocess
import sys
from pathlib import Path

from tools import fuzz

ROOT = Path(fuzz.__file__).parents[1]


def test_programs_are_run_in_batches_and_counted():
    command = [sys.executable, "tools/fuzz.py", "--programs", "4", "--batch", "3", "--seed", "20"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    first, last = done.stdout.splitlines()
    assert (first.split(",")[0], last.split(",")[0]) == ("3 programs", "4 programs")
    assert "0 different, 0 ended" in last


def test_a_process_that_ends_is_told_with_its_seed(monkeypatch, tmp_path, capsys):
    worker = tmp_path / "worker.py"
    worker.write_text(
        "import os, sys\n"
        "for seed in range(int(sys.argv[2]), int(sys.argv[3])):\n"
        "    print(f'@begin {seed}', flush=True)\n"
        "    if seed == 6: os._exit(3)\n"
        "    print('@count replays 2', flush=True)\n"
    )
    monkeypatch.setattr(fuzz, "__file__", str(worker))
    counts = fuzz.run(range(5, 9), False)
    assert counts == {"replays": 6, "ended": 1}
    assert "seed 6 ends its process: exit status 3" in capsys.readouterr().out
