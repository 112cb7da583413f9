"""`pytest --device cuda`: what runs there, on a GPU by `make test-gpu`, and here a little of it where numba plays a GPU."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from genesis.runtime import cuda

simulator = pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed")
FEW = "values_are_torchs and (relu or matmul or log_softmax or embedding) or random_numbers or losses and SGD"


def pytest_on(device, *arguments, **environment):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--device", device, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


@pytest.mark.skipif(not cuda.reason_for_none(), reason="there is a GPU")
def test_where_there_is_no_gpu_the_reason_is_all_that_is_printed():
    run = pytest_on("cuda", "tests/ops/test_operations.py")
    assert run.returncode == 3
    assert re.search("--device cuda: .*; `python -m genesis doctor` tells more", run.stdout + run.stderr)


@simulator
def test_conformance_on_the_simulated_gpu_and_nothing_that_is_not_marked():
    files = "tests/ops/test_operations.py", "tests/cuda/test_networks_on_device.py", "tests/ops/test_promotion.py"
    run = pytest_on("cuda", *files, "-k", f"{FEW} or test_promotion", "-vv", NUMBA_ENABLE_CUDASIM="1")
    assert run.returncode == 0, run.stdout[-4000:]
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) >= 7 and "test_operations.py::" in run.stdout
    assert "test_promotion.py::" not in run.stdout
