"""The cache on disk, end to end: whatever is in its directory, results are right."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from tests.robustness.training import losses
import genesis
print(losses(0, steps=2)[-1], genesis.debug.stats()["kernels_compiled"])
"""


def start(directory: Path) -> subprocess.Popen:
    environment = {**os.environ, "GENESIS_CACHE_DIR": str(directory)}
    return subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> tuple[str, int]:
    """The last loss of the process, and how many kernels it compiled."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    loss, compiled = output.split()
    return loss, int(compiled)


@pytest.fixture(scope="module")
def filled(tmp_path_factory) -> tuple[Path, str, int]:
    """A cache that one process filled, what it computed, and the number of kernels."""
    directory = tmp_path_factory.mktemp("cache")
    return directory, *finish(start(directory))


def test_the_kernels_are_private(filled):
    assert stat.S_IMODE((filled[0] / "kernels").stat().st_mode) == 0o700


def test_damaged_files_are_compiled_anew(filled):
    directory, loss, kernels = filled
    files = sorted(path for path in (directory / "kernels").iterdir() if path.name not in ("swept", "claims"))
    first, choose = files[0].read_bytes(), random.Random(0)
    for number, path in enumerate(files):
        content = bytearray(path.read_bytes())
        if number % 4 == 0:
            del content[len(content) // 2 :]
        elif number % 4 == 1:
            content[choose.randrange(len(content))] ^= 255
        else:
            content[:] = b"" if number % 4 == 2 else first
        path.write_bytes(content)
    assert finish(start(directory)) == (loss, kernels)
    assert finish(start(directory)) == (loss, 0)


def test_without_a_directory_all_is_compiled(filled, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    assert finish(start(tmp_path / "file")) == filled[1:]


def test_processes_may_fill_one_cache_at_once(filled, tmp_path):
    loss = filled[1]
    results = [finish(process) for process in [start(tmp_path) for _ in range(3)]]
    assert {found for found, _ in results} == {loss}
    assert finish(start(tmp_path)) == (loss, 0)
