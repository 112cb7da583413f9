"""The CPU needs nothing of CUDA's, and does not look for it."""

import subprocess
import sys

SCRIPT = """
import sys
import genesis
(genesis.ones(2, requires_grad=True) * 2).sum().backward()
genesis.cuda.OutOfMemoryError
touched = [name for name in sys.modules if name.partition(".")[0] in ("cuda", "numba_cuda", "nvmath", "cupy")
           or name.startswith(("numba.cuda", "genesis.codegen.cuda.", "genesis.runtime.cuda.real"))]
print(touched)
"""


def test_importing_and_computing_touch_no_cuda():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
