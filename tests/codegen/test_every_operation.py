"""Every operation, dtype and width of a row, compiled for this processor and for one with AVX2 alone."""

import os
import subprocess
import sys

import pytest

from genesis.runtime.machine_code import target
from tests.runtime.kernels import run_python

HOST = target()
TARGETS = {"host": {}, "x86-64-v3": {"GENESIS_TARGET": "x86-64-v3"}}
DTYPES = "float16", "float32", "uint8", "int16", "int64", "bfloat16", "float64", "int8", "int32", "bool"


@pytest.mark.parametrize("name", TARGETS)
def test_every_operation_is_its_reference_at_every_width(name):
    if name != "host" and "+avx512f" not in HOST[2]:
        pytest.skip("this processor is no newer than that one")
    run = subprocess.run(
        [sys.executable, "-m", "tests.codegen.every_operation", *DTYPES], capture_output=True, text=True,
        env=os.environ | TARGETS[name], timeout=600,
    )
    assert (run.returncode, run.stderr) == (0, "")
    *found, last = run.stdout.splitlines()
    operations, made_for = last.split(" operations for ")
    assert found == [] and int(operations) > 200
    assert made_for == (HOST[1] if name == "host" else name)


def test_a_target_that_is_none_is_told():
    told = run_python("""
        import genesis
        try:
            (genesis.ones(3) + 1).tolist()
        except ValueError as problem:
            print(problem)
    """, GENESIS_TARGET="x86-64-v9")
    assert told == "GENESIS_TARGET: 'x86-64-v9'; want one of x86-64-v3, x86-64-v4"
