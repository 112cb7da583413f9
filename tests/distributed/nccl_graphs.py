"""CUDA graphs that hold collectives: ranks launch those that all of them hold."""

import numpy as np
from checks import given
from nccl_ranks import PLAYED, mine, rank, size

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional
from genesis.runtime.cuda import memory_of


def summed_twice(x, look=False, group=None):
    """Two collectives with kernels before, between and behind them; what they give, by NumPy."""
    dist.all_reduce(y := x * 2, group=group)
    if look:
        y.tolist()
    dist.all_reduce(z := y + rank(), "max", group=group)
    return z * 3


def wanted(given):
    return (sum(each * 2 for each in given) + size() - 1) * 3


def check_graphs_hold_collectives_and_the_kernels_behind_them():
    x = mine(4).cuda()
    program = genesis.debug.program(summed_twice(x))
    assert repr(program).count("all_reduce") == 2 and program.refused == "", program
    assert sum("# NCCL: all_reduce" in source for source in program.sources) == 2
    genesis.cuda.synchronize()
    begun = ["AllReduce 4 float32 0 on 7", "AllReduce 4 float32 2 on 7"]
    run, held = genesis.compile(summed_twice), genesis.debug.stats()["graphs_captured"]
    found = []
    for _ in range(4):
        PLAYED.taken()
        np.testing.assert_allclose(run(x).tolist(), wanted([given(k, 4, np.float32) for k in range(size())]), rtol=1e-5)
        found.append(PLAYED.taken())
    # Begun one by one, then captured and launched, and launched alone: nothing is called any more.
    assert begun in found and [*begun, *["replay AllReduce 4"] * 2] in found, found
    assert found[-1] == ["replay AllReduce 4"] * 2, found
    assert genesis.debug.stats()["graphs_refused"] == 0 and genesis.debug.stats()["graphs_captured"] == held + 2
    with genesis.no_grad():  # another scalar and other values are the same graph's
        x.mul_(0).add_(1)
    assert run(x).tolist() == [3.0 * (2 * size() + size() - 1)] * 4 and len(PLAYED.taken()) == 2


def check_ranks_with_other_addresses_agree_on_their_graphs():
    run, kept = genesis.compile(summed_twice), [mine(4).cuda() * k for k in range(size() + 1)]
    before = PLAYED.captures
    for k in range(24):  # rank 0 has one tensor, rank 1 two in turn, ..
        which = k % (rank() + 1)
        found = run(kept[which]).tolist()
        other = [given(r, 4, np.float32) * (k % (r + 1)) for r in range(size())]
        np.testing.assert_allclose(found, wanted(other), rtol=1e-5, atol=1e-5)
        if k == 17:
            held = PLAYED.captures
    assert before + 2 * size() <= held == PLAYED.captures, (before, held, PLAYED.captures)  # of each that they met together


def check_ranks_whose_programs_differ_hold_no_graph_together():
    before = PLAYED.captures
    x = mine(4).cuda()
    for _ in range(4):
        found = summed_twice(x, look=rank() == 0).tolist()
        np.testing.assert_allclose(found, wanted([given(k, 4, np.float32) for k in range(size())]), rtol=1e-5)
    assert PLAYED.captures == before


def check_no_rank_holds_a_graph_that_anothers_driver_refused():
    gpu, group, x = memory_of(0).gpu, dist.new_group(), mine(5).cuda()
    run = genesis.compile(lambda x: summed_twice(x, group=group))

    def refuse(commands):
        raise RuntimeError("operation not permitted when stream is capturing")
    if rank() == size() - 1:
        gpu.captured = refuse
    PLAYED.taken()
    for _ in range(4):
        np.testing.assert_allclose(
            run(x).tolist(), wanted([given(k, 5, np.float32) for k in range(size())]), rtol=1e-5)
    vars(gpu).pop("captured", None)
    calls = PLAYED.taken()
    assert len(calls) >= 8 and not any("replay" in call for call in calls), calls


def check_messages_are_in_no_graph():
    if rank() < 2:
        x = mine(3).cuda()
        program = genesis.debug.program(functional.sendrecv(x * 2, 1 - rank()) + 1)
        assert "between two ranks" in program.refused, program
    genesis.cuda.synchronize()
    dist.barrier()
