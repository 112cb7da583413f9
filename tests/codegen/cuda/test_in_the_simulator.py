"""The tests of this folder once more, in a process where kernels run in numba's simulator: it is chosen at import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from genesis.codegen.cuda.target import SIMULATED

pytest.importorskip("numba_cuda")


@pytest.mark.skipif(SIMULATED, reason="this is the simulator")
def test_the_simulator_agrees_with_numpy():
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(Path(__file__).parent)]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"})
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-1000:]
    assert "." in run.stdout.split()[0]
