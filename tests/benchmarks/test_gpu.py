"""The benchmark of GPUs: it says why it cannot run, and its own arithmetic can be followed on the CPU."""

import subprocess
import sys

import pytest

from benchmarks.gpu import floors
from benchmarks.measure import Settings
from genesis.runtime import cuda


@pytest.mark.skipif(not cuda.reason_for_none() and not cuda.SIMULATED, reason="there is a GPU")
def test_without_a_gpu_it_ends_with_a_sentence():
    run = subprocess.run([sys.executable, "-m", "benchmarks.gpu"], capture_output=True, text=True, check=False)
    assert run.returncode == 3 and not run.stdout
    assert run.stderr.startswith("there is no GPU to measure: ") and len(run.stderr.splitlines()) == 1


def test_floors_are_the_best_that_was_measured():
    best, (copy, product) = floors(Settings(quick=True))
    assert best.bandwidth == 8 * 4096 / min(copy.medians.values())
    assert best.flops == 2 * 64**3 / min(product.medians.values())
    assert set(copy.medians) == set(product.medians) == {"genesis", "torch eager"}
