"""Failures of collectives of GPUs: what came before stays, and errors name what it was. The last check breaks the GPU."""

from checks import raises
from nccl_graphs import summed_twice
from nccl_ranks import PLAYED, mine, rank, size
from played_nccl import REMOTE

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional
from genesis.runtime.cuda import memory_of


def broken(timeout=20):
    """A group of all ranks, which what comes next breaks."""
    group = dist.new_group(timeout=timeout)
    PLAYED.taken()
    return group


def check_what_came_before_a_failure_stays():
    group, table = broken(), genesis.ones(3, device="cuda")
    dist.all_reduce(x := genesis.ones(2, device="cuda"), group=group)
    picked = table[genesis.tensor([1, 7], device="cuda")]
    y = functional.all_reduce(genesis.ones(5, device="cuda"), group=group)
    raises(IndexError, "7", picked.tolist)
    assert x.tolist() == [size()] * 2 and y.tolist() == [size()] * 5
    assert PLAYED.taken() == ["AllReduce 2 float32 0 on 7", "AllReduce 5 float32 0 on 7"]
    z, w = genesis.ones(2, device="cuda"), genesis.ones(5, device="cuda")
    dist.all_reduce(z, group=group)
    dist.all_reduce(w, group=group)
    PLAYED.statuses = [0, 3]
    raises(RuntimeError, "all_reduce sum of float32[5]", w.tolist)
    assert z.tolist() == [size()] * 2
    assert PLAYED.taken() == ["AllReduce 2 float32 0 on 7", "AllReduce 5 float32 0 on 7", "CommAbort"]


def check_failures_name_what_it_was():
    gpu = memory_of(0).gpu
    group = broken()
    PLAYED.statuses = [3]
    x = genesis.ones(4, device="cuda")
    dist.all_reduce(x, group=group)
    raises(RuntimeError, f"rank {rank()}: all_reduce sum of float32[4] at {__file__}", x.tolist)
    assert PLAYED.taken() == ["AllReduce 4 float32 0 on 7", "CommAbort"]
    group = broken()
    y = genesis.ones(4 + rank(), device="cuda")
    dist.all_reduce(y, group=group)
    raises(RuntimeError, "rank 1: all_reduce sum of float32[5]", y.tolist)
    assert PLAYED.taken() == ["CommAbort"]
    z = genesis.ones(4, device="cuda")
    dist.all_reduce(z, group=group)
    raises(RuntimeError, "its group was destroyed, or an earlier collective of it failed", z.tolist)
    dist.all_reduce(w := genesis.ones(2, device="cuda"))  # other groups go on
    assert w.tolist() == [size()] * 2
    gpu.has_passed = lambda mark: not PLAYED.hangs  # what follows loses what the GPU holds: it comes last
    for state, said in ((0, "waited 0.3 s, and it did not end"), (REMOTE, "NCCL says: unhandled error: ring 0 has no channel")):
        group = broken(timeout=0.3)
        PLAYED.hangs, PLAYED.state = True, state
        dist.all_reduce(a := genesis.ones(3, device="cuda"), group=group)
        raises(RuntimeError, said, a.tolist)
        assert PLAYED.taken() == ["AllReduce 3 float32 0 on 7", "CommAbort"]
        raises(RuntimeError, "values on cuda:0 may be wrong: all_reduce sum of float32[3] was given up", w.tolist)
        dist.destroy_process_group(group)
    group, kept = broken(timeout=0.3), mine(3).cuda()
    for _ in range(4):  # the last is a graph
        PLAYED.taken()
        last = summed_twice(kept, group=group).tolist()
    assert PLAYED.taken() == ["replay AllReduce 3"] * 2 and len(last) == 3
    PLAYED.hangs, PLAYED.state = True, 0
    raises(RuntimeError, "all_reduce sum of float32[3] with 1 more in a graph", summed_twice(kept, group=group).tolist)
    assert PLAYED.taken() == ["replay AllReduce 3"] * 2 + ["CommAbort"]
    dist.destroy_process_group(group)
