"""Libraries that take arrays of any kind compute with tensors."""

import os
import subprocess
import sys
from pathlib import Path


def test_scipy_scikit_learn_and_einops_dispatch_to_genesis():
    script = Path(__file__).with_name("libraries.py")
    root = str(script.parents[2])
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": root}
    run = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300)
    assert run.stdout == "60 calls\n", run.stdout + run.stderr[-2000:]
