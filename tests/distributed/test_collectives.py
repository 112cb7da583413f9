"""Scripts of checks, each on several ranks: one job for all checks of a script."""

import ast

import pytest
from ranks import HERE, needs_mpi, run_ranks

JOBS = [
    *[(f"{checked}_script.py", ranks) for checked in ("collectives", "gradients", "overlap", "pipelining") for ranks in (2, 3)],
    *[(script, ranks) for script in ("data_parallel_script.py", "sharded_script.py", "fsdp_script.py") for ranks in (2, 3, 4)],
    ("hooks_script.py", 2), ("hooks_script.py", 3), ("messages_script.py", 3),
    ("tensor_parallel_script.py", 2), ("tensor_parallel_script.py", 4),
]


def checks_of(script):
    functions = [node.name for node in ast.parse((HERE / script).read_text()).body if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if name.startswith("check_")]


@needs_mpi
@pytest.mark.parametrize(("script", "ranks"), JOBS)
def test_all_checks_pass_on_ranks(script, ranks):
    ended = run_ranks(ranks, script, deadline=150)
    missing = [check for check in checks_of(script) if f"passed {check} " not in ended.printed]
    assert ended.status == 0 and not missing, f"{missing}\n{ended.printed}"
