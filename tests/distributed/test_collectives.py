"""Scripts of checks on several ranks. A job runs many: processes begin, import and compile once for all of them."""

import ast
from collections import Counter

import pytest
from ranks import HERE, needs_mpi, run_ranks

# Even and odd numbers of ranks; four only where they are two by two.
JOBS = [
    (3, "gradients_script", "collectives_script", "messages_script", "random_script"),
    (3, "hooks_script", "sharded_script", "fsdp_script", "pipelining_script"),
    (2, "overlap_script", "data_parallel_script", "fully_sharded_script", "tensor_parallel_script", "dtensor_script",
     "gradients_script:check_gradients_against_differences,check_gradients_of_uneven_shards,"
     "check_gradients_in_bfloat16_are_those_of_float64"),
    (4, "tensor_parallel_script:check_data_and_tensor_parallel_on_a_mesh,check_rows_and_tensor_parallel_on_a_mesh,"
     "check_neighbours_keep_whole_parameters_between_forward_and_backward",
     "dtensor_script:check_two_axes_of_a_mesh"),
]


def checks_of(script):
    functions = [node.name for node in ast.parse((HERE / script).read_text()).body if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if name.startswith("check_")]


def checks_in(script):
    name, _, named = script.partition(":")
    return named.split(",") if named else checks_of(f"{name}.py")


@needs_mpi
@pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job[0]} ranks, {job[1]} first")
def test_all_checks_pass_on_ranks(job):
    ranks, *scripts = job
    ended = run_ranks(ranks, "job_script.py", *scripts, deadline=400)
    wanted = Counter(check for script in scripts for check in checks_in(script))
    missing = [check for check, count in wanted.items() if ended.printed.count(f"passed {check} ") < count]
    assert ended.status == 0 and not missing, f"{missing}\n{ended.printed}"
