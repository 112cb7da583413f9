"""Collectives of tensors on simulated GPUs, by an NCCL that the host plays, against those of MPI. Run by `test_nccl.py`."""

import numpy as np
from checks import given, raises, run
from mpi4py import MPI
from played_nccl import REMOTE, PlayedNccl

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed import gpus
from genesis.distributed.nn import functional
from genesis.distributed.pipelining import PipelineStage, Schedule1F1B
from genesis.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from genesis.runtime.cuda import memory_of
from genesis.runtime.cuda.gpu import UnavailableError
from genesis.runtime.cuda.nccl import functions_of
from genesis.runtime.cuda.simulated import SimulatedGpu

PLAYED = PlayedNccl()
FUNCTIONS = functions_of(PLAYED)


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def on_both(function, *tensors):
    """What `function` gives on the CPU, which has to be what it gives on the GPU; and what NCCL was called for."""
    wanted = function(*tensors)
    wanted = [part.tolist() for part in wanted]
    PLAYED.taken()
    found = [part.tolist() for part in function(*[tensor.cuda() for tensor in tensors])]
    assert found == wanted, (found, wanted)
    genesis.cuda.synchronize()
    dist.barrier()  # what nobody looks at has come too
    return PLAYED.taken()


def in_place(function, *arguments):
    def call(tensor):
        tensor = tensor.clone()
        function(tensor, *arguments)
        return [tensor]
    return call


def mine(shape, dtype=np.float32):
    return genesis.tensor(given(rank(), shape, dtype))


def check_reductions_by_their_numbers():
    for number, op in enumerate(("sum", "prod", "max", "min")):
        assert on_both(in_place(dist.all_reduce, op), mine(3)) == [f"AllReduce 3 float32 {number} on 7"]
    for name in ("float64", "int8", "int64"):
        assert on_both(in_place(dist.all_reduce), mine(3, name)) == [f"AllReduce 3 {name} 0 on 7"]
    assert on_both(in_place(dist.all_reduce, "avg"), mine(3)) == ["AllReduce 3 float32 0 on 7"]
    assert on_both(in_place(dist.all_reduce), mine(2, "complex64")) == ["AllReduce 4 float32 0 on 7"]
    assert on_both(in_place(dist.all_reduce, "max"), mine(3).bool()) == ["AllReduce 3 uint8 2 on 7"]
    assert on_both(in_place(dist.all_reduce), mine(3).bfloat16()) == ["AllReduce 3 float32 0 on 7"]
    assert on_both(in_place(dist.all_reduce), mine((2, 4))[:, ::2]) == ["AllReduce 4 float32 0 on 7"]
    root = size() - 1
    assert on_both(in_place(dist.reduce, root), mine(3)) == [f"Reduce 3 float32 0 {root} on 7"]


def check_what_moves_keeps_its_bits():
    root = size() - 1
    for name, said in {"bfloat16": "3 bfloat16", "int32": "3 int32", "bool": "3 uint8", "complex64": "24 uint8"}.items():
        calls = on_both(in_place(dist.broadcast, root), mine(3).to(getattr(genesis, name)))
        assert calls == [f"Broadcast {said} {root} on 7"], calls

    def gathered(tensor):
        whole = genesis.zeros(2 * size(), 3, device=tensor.device)
        dist.all_gather_into_tensor(whole, tensor)
        return [whole]
    assert on_both(gathered, mine((2, 3))) == ["AllGather 6 float32 on 7"]

    def scattered(tensor):
        part = genesis.zeros(2, device=tensor.device)
        dist.reduce_scatter_tensor(part, tensor)
        return [part]
    assert on_both(scattered, mine(2 * size())) == ["ReduceScatter 2 float32 0 on 7"]


def check_uneven_parts_go_in_groups():
    lengths = range(1, size() + 1)

    def gathered(tensor):
        found = [genesis.zeros(length, device=tensor.device) for length in lengths]
        dist.all_gather(found, tensor)
        return found
    calls = on_both(gathered, mine(rank() + 1))
    assert calls == ["GroupStart", *[f"Broadcast {k + 1} float32 {k} on 7" for k in range(size())], "GroupEnd"], calls

    def scattered(tensor):
        part = genesis.zeros(rank() + 1, device=tensor.device)
        dist.reduce_scatter(part, [*tensor.split([*lengths])])
        return [part]
    calls = on_both(scattered, mine(sum(lengths)))
    assert calls == ["GroupStart", *[f"Reduce {k + 1} float32 0 {k} on 7" for k in range(size())], "GroupEnd"], calls


def check_sends_and_receives_go_in_groups():
    root, others = size() - 1, range(size())

    def gathered(tensor):
        found = [genesis.zeros(2, device=tensor.device) for _ in others] if rank() == root else None
        dist.gather(tensor, found, root)
        return found or [tensor]
    received = [f"Recv 2 float32 {k} on 7" for k in others] * (rank() == root)
    assert on_both(gathered, mine(2)) == ["GroupStart", f"Send 2 float32 {root} on 7", *received, "GroupEnd"]

    def scattered(tensor):
        part = genesis.zeros(2, device=tensor.device)
        dist.scatter(part, [*tensor] if rank() == root else None, root)
        return [part]
    sent = [f"Send 2 float32 {k} on 7" for k in others] * (rank() == root)
    assert on_both(scattered, mine((size(), 2))) == ["GroupStart", *sent, f"Recv 2 float32 {root} on 7", "GroupEnd"]
    sends, receives = [abs(rank() - k) for k in others], [abs(rank() - k) for k in others]  # nothing goes to oneself

    def exchanged(tensor):
        found = genesis.zeros(sum(receives), device=tensor.device)
        dist.all_to_all_single(found, tensor, receives, sends)
        return [found]
    moved = [f"{name} {abs(rank() - k)} float32 {k} on 7" for name in ("Send", "Recv") for k in others if k != rank()]
    assert on_both(exchanged, mine(sum(sends))) == ["GroupStart", *moved, "GroupEnd"]


def check_messages_between_gpus():
    following, before = (rank() + 1) % size(), (rank() - 1) % size()
    got = genesis.zeros(3, device="cuda")
    for sender in range(size()):  # one after the other, as without groups of their own
        if sender == rank():
            dist.send(mine(3).cuda(), following)
        if sender == before:
            assert dist.recv(got, before) == before
    assert got.tolist() == given(before, 3, np.float32).tolist()
    if rank() < 2:
        x = mine(2).cuda().requires_grad_()
        PLAYED.taken()
        (functional.sendrecv(x, 1 - rank()) * (rank() + 2)).sum().backward()
        assert x.grad.tolist() == [3.0 - rank()] * 2
        assert PLAYED.taken() == ["GroupStart", f"Send 2 float32 {1 - rank()} on 7", f"Recv 2 float32 {1 - rank()} on 7",
                                  "GroupEnd"] * 2
    raises(ValueError, "want one on cpu, or batch_isend_irecv", dist.isend, got, following)
    raises(ValueError, "want tag 0 and the other's rank", dist.recv, got)


def check_batches_of_messages_between_gpus():
    following, before = (rank() + 1) % size(), (rank() - 1) % size()
    here = [mine(k).cuda() for k in (2, 1)]
    got = [genesis.zeros(k, device="cuda") for k in (2, 1)]
    back = genesis.zeros(5, device="cuda")
    PLAYED.taken()
    works = dist.batch_isend_irecv([
        *[dist.P2POp(dist.irecv, tensor, before) for tensor in got], dist.P2POp(dist.isend, mine(5).cuda(), before),
        *[dist.P2POp(dist.isend, tensor, following) for tensor in here], dist.P2POp(dist.irecv, back, following)])
    assert all([work.wait() for work in works])
    assert [tensor.tolist() for tensor in got] == [given(before, k, np.float32).tolist() for k in (2, 1)]
    assert back.tolist() == given(following, 5, np.float32).tolist()
    calls = [call for call in PLAYED.taken() if call[0] in "SR"]
    assert sorted(calls) == sorted([f"Send 3 float32 {following} on 7", f"Send 5 float32 {before} on 7",
                                    f"Recv 3 float32 {before} on 7", f"Recv 5 float32 {following} on 7"])
    x, y = genesis.ones(2, device="cuda") * rank(), genesis.zeros(2, device="cuda")
    if rank() < 2:
        dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank()), dist.P2POp(dist.irecv, y, 1 - rank())])
        assert y.tolist() == [1.0 - rank()] * 2 and len(PLAYED.taken()) == 4
    raises(ValueError, "want a batch for each", dist.batch_isend_irecv,
           [dist.P2POp(dist.isend, x, following), dist.P2POp(dist.isend, x.cpu(), following)])
    raises(TypeError, "want one dtype", dist.batch_isend_irecv,
           [dist.P2POp(dist.isend, x, following), dist.P2POp(dist.isend, x.int(), following)])


def trained(device, compiled):
    genesis.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).to(device)
    model = dist.DistributedDataParallel(model, bucket_cap_mb=3e-5)
    optimizer = genesis.optim.Adam(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = genesis.compile(step) if compiled else step
    x = mine((2, 2)).to(device)
    losses = [run(x).item() for _ in range(9)]
    assert not compiled or run.entries[0].replays >= 2, run.refusals
    return losses, [p.tolist() for p in model.parameters()]


def check_data_parallel_training():
    wanted = trained("cpu", False)
    for compiled in (False, True):
        PLAYED.taken()
        PLAYED.overlapped, captures = 0, PLAYED.captures
        losses, parameters = trained("cuda", compiled)
        np.testing.assert_allclose(losses, wanted[0], rtol=1e-5)
        for ours, theirs in zip(parameters, wanted[1], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        calls = PLAYED.taken()
        start, *steps = [calls[0], *[calls[1 + 2 * k : 3 + 2 * k] for k in range(len(calls) // 2)]]
        begun, replayed = [[f"AllReduce {n} float32 0 on 7" for n in (7, 6)], [f"replay AllReduce {n}" for n in (7, 6)]]
        assert start == "Broadcast 13 float32 0 on 7" and steps[0] == begun, calls
        assert replayed in steps or not compiled, calls
        captured = (PLAYED.captures - captures) // 2
        assert steps.count(begun) - captured + steps.count(replayed) == 9 and 2 * len(steps) + 1 == len(calls), calls
        assert PLAYED.overlapped >= 8  # the rest of backward goes on while the first bucket is summed, in graphs too


def sharded(device):
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1)).to(device)
    model = dist.fsdp.fully_shard(model)
    return model, genesis.optim.SGD(model.parameters(), lr=0.1)


def offloaded(device):
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1)).to(device)
    model = dist.fsdp.fully_shard(model, offload_policy=dist.fsdp.CPUOffloadPolicy(), reshard_after_forward=True)
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    return model, genesis.optim.Adam(model.parameters(), lr=0.1)


def divided(device):
    model = dist.DistributedDataParallel(nn.Linear(2, 1).to(device))
    return model, dist.optim.ZeroRedundancyOptimizer(model.parameters(), genesis.optim.Adam, lr=0.1)


def normalized(device):
    model = dist.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))).to(device)
    model = dist.DistributedDataParallel(model)
    model.register_comm_hook(None, dist.communication_hooks.bf16_compress_hook)
    return model, genesis.optim.SGD(model.parameters(), lr=0.1)


def in_parts(device):
    model = nn.Sequential(nn.Linear(2, 2 * size()), nn.Linear(2 * size(), 1)).to(device)
    mesh = dist.init_device_mesh(device, (size(),))
    model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
    return model, genesis.optim.SGD(model.parameters(), lr=0.1)


def piped(device):
    genesis.manual_seed(7)
    layers = [nn.Linear(2, 2).to(device) for _ in range(size())]
    stage = PipelineStage(layers[rank()], rank(), size(), device)
    losses = []
    schedule = Schedule1F1B(stage, n_microbatches=2, loss_fn=nn.functional.mse_loss)
    x, y = genesis.ones(4, 2, device=device), genesis.zeros(4, 2, device=device)
    given = (x,) if rank() == 0 else ()
    schedule.step(*given, **({"target": y, "losses": losses} if rank() == size() - 1 else {}))
    return [*losses, *[p.grad for p in layers[rank()].parameters()]]


def check_pipelines():
    for ours, theirs in zip(piped("cuda"), piped("cpu"), strict=True):
        np.testing.assert_allclose(ours.tolist(), theirs.tolist(), rtol=1e-5, atol=1e-6)
    raises(ValueError, "PipelineStage: the tensor is on cpu:1", PipelineStage, nn.Linear(2, 2), rank(), size(), "cpu:1")


def check_what_is_built_on_collectives():
    for make in (sharded, offloaded, divided, normalized, in_parts):
        found = []
        for device in ("cpu", "cuda"):
            genesis.manual_seed(5)
            model, optimizer = make(device)
            x = (mine((2, 2)) if make is not in_parts else genesis.ones(2, 2)).to(device)
            (model(x) ** 2).sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            loss = (model(x) ** 2).sum()
            found.append([loss.item(), *[p.flatten().tolist() for p in model.parameters()]])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5, err_msg=make.__name__)


def check_collectives_of_both_devices_are_in_one_order():
    a, b, c = genesis.ones(2), genesis.ones(2, device="cuda"), genesis.ones(2)
    for tensor in (a, b, c):
        dist.all_reduce(tensor)
    for tensor in (a, b, c) if rank() else (b, c, a):  # ranks may look at values in any order
        assert tensor.tolist() == [size()] * 2


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


def check_what_nccl_cannot_do():
    x = mine(2).int().cuda()
    raises(TypeError, "NCCL has no band; want sum, prod, min, max or avg", dist.all_reduce, x, "band")
    raises(TypeError, "NCCL has no sum of int16", dist.all_reduce, x.short())
    raises(TypeError, "NCCL has no prod of complex64; want another dtype, or sum or avg", dist.all_reduce,
           mine(2, "complex64").cuda(), "prod")
    raises(ValueError, "want one on cuda:0, this rank's device_id, or cpu", dist.all_reduce, genesis.ones(2, device="cpu:1"))
    mesh = dist.init_device_mesh("cuda", (size(),))
    assert mesh.device_type == "cuda" and dist.get_backend() == "nccl"


def check_eager_mode():
    with genesis.eager():
        x = mine(3).cuda()
        dist.all_reduce(x)
        np.testing.assert_allclose(x.tolist(), sum(given(k, 3, np.float32) for k in range(size())), rtol=1e-6)


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


def missing_on_the_last_rank():
    if MPI.COMM_WORLD.rank == MPI.COMM_WORLD.size - 1:
        raise UnavailableError("NCCL cannot be loaded")
    return FUNCTIONS


if __name__ == "__main__":
    gpus.library = missing_on_the_last_rank
    raises(RuntimeError, f"rank {MPI.COMM_WORLD.size - 1}: NCCL cannot be loaded", dist.init_process_group, "nccl")
    gpus.library = lambda: FUNCTIONS
    SimulatedGpu.communication_stream = 7
    PLAYED.comes = False
    said = "ncclCommInitRankConfig did not end within 0.2 s: a rank did not come"
    raises(RuntimeError, said, dist.init_process_group, "nccl", timeout=0.2)
    assert PLAYED.taken()[-1] == "CommAbort"
    PLAYED.comes = True
    run(globals(), backend="nccl")
    assert PLAYED.taken()[-2:] == ["CommFinalize", "CommDestroy"] and not PLAYED.wrongs, PLAYED.wrongs
