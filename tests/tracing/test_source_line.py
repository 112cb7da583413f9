"""The user's line of what is recorded."""

import genesis
import genesis.distributed as dist
from genesis import nn


def test_calls_within_a_context_manager_of_the_library_are_the_users_line():
    dist.init_process_group()
    try:
        policy = dist.fsdp.MixedPrecisionPolicy(param_dtype=genesis.bfloat16)
        model = dist.fsdp.fully_shard(nn.Linear(2, 2), mp_policy=policy)
        graph = genesis.debug.graph(model(genesis.ones(1, 2))).text(detail=True)
    finally:
        dist.destroy_process_group()
    lines = [line for line in graph.splitlines() if "cast" in line]
    assert lines and all("test_source_line.py" in line for line in lines), graph
