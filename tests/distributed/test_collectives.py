"""Collectives on 2 and 3 ranks: all checks of a script in one job."""

import ast
import functools

import pytest
from ranks import HERE, needs_mpi, run_ranks

CHECKS = [
    (script, node.name) for script in ("collectives_script.py", "gradients_script.py", "data_parallel_script.py")
    for node in ast.parse((HERE / script).read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
]


@functools.cache
def printed(script, ranks):
    return run_ranks(ranks, script, deadline=120)


@needs_mpi
@pytest.mark.parametrize("ranks", (2, 3))
@pytest.mark.parametrize(("script", "check"), CHECKS, ids=[name for _, name in CHECKS])
def test_on_several_ranks(script, check, ranks):
    ended = printed(script, ranks)
    assert f"passed {check} " in ended.printed, ended.printed


@needs_mpi
@pytest.mark.parametrize("script", dict(CHECKS))
def test_the_job_succeeds(script):
    assert printed(script, 2).status == 0
