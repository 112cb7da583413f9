"""The benchmark of GPUs says why it cannot run."""

import subprocess
import sys

import pytest

from genesis.runtime import cuda


@pytest.mark.skipif(not cuda.reason_for_none() and not cuda.SIMULATED, reason="there is a GPU")
def test_without_a_gpu_it_ends_with_a_sentence():
    run = subprocess.run([sys.executable, "-m", "benchmarks.gpu"], capture_output=True, text=True, check=False)
    assert run.returncode == 3 and not run.stdout
    assert run.stderr.startswith("there is no GPU to measure: ") and len(run.stderr.splitlines()) == 1
