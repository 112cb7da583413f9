"""Scripts of checks, each on several ranks: one job for all checks of a script."""

import ast

import pytest
from ranks import HERE, needs_mpi, run_ranks

# Even and odd numbers of ranks; four only where they are two by two.
JOBS = [
    ("collectives_script.py", 3), ("gradients_script.py", 3), ("overlap_script.py", 2),
    ("gradients_script.py check_gradients_against_differences check_gradients_of_uneven_shards "
     "check_gradients_in_bfloat16_are_those_of_float64", 2),
    ("data_parallel_script.py", 2), ("hooks_script.py", 3), ("sharded_script.py", 3),
    ("fsdp_script.py", 3), ("fully_sharded_script.py", 2),
    ("messages_script.py", 3), ("pipelining_script.py", 3),
    ("tensor_parallel_script.py", 2), ("random_script.py", 3),
    ("tensor_parallel_script.py check_data_and_tensor_parallel_on_a_mesh check_rows_and_tensor_parallel_on_a_mesh "
     "check_neighbours_keep_whole_parameters_between_forward_and_backward", 4),
]


def checks_of(script):
    functions = [node.name for node in ast.parse((HERE / script).read_text()).body if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if name.startswith("check_")]


@needs_mpi
@pytest.mark.parametrize(("command", "ranks"), JOBS)
def test_all_checks_pass_on_ranks(command, ranks):
    script, *named = command.split()
    ended = run_ranks(ranks, script, *named, deadline=150)
    missing = [check for check in named or checks_of(script) if f"passed {check} " not in ended.printed]
    assert ended.status == 0 and not missing, f"{missing}\n{ended.printed}"
