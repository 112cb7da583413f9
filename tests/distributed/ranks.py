"""Runs scripts on several ranks, each with a deadline after which all their processes are killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

HERE = Path(__file__).parent
MPIEXEC = Path(sys.executable).with_name("mpiexec")
needs_mpi = pytest.mark.skipif(
    not (MPIEXEC.exists() or shutil.which("mpiexec")), reason="mpiexec is not installed: pip install -e '.[test]'")


class Ended(NamedTuple):
    """How a job ended: exit status, what was printed, seconds."""

    status: int
    printed: str
    seconds: float


def run_ranks(count: int, *command: str, deadline: float = 60.0) -> Ended:
    """Run `python -m genesis.distributed COMMAND` on `count` ranks; fails where that takes longer than `deadline`."""
    mpiexec = str(MPIEXEC) if MPIEXEC.exists() else "mpiexec"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")])}
    for name in ("GENESIS_NUM_THREADS", "OMP_NUM_THREADS", "PYTHONUNBUFFERED"):  # unbuffered ranks' lines mix
        environment.pop(name, None)
    start = time.monotonic()
    process = subprocess.Popen(
        [mpiexec, "-n", str(count), sys.executable, "-m", "genesis.distributed", *command], env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, cwd=HERE)
    try:
        printed, _ = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
        pytest.fail(f"{' '.join(command)} on {count} ranks took longer than {deadline} s; it printed:\n{printed}")
    return Ended(process.returncode, printed, time.monotonic() - start)
