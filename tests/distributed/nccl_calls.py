"""Collectives and messages of simulated GPUs: what they give is what MPI's give, by the calls that were meant."""

import numpy as np
from checks import given, raises
from nccl_ranks import PLAYED, mine, rank, size

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional


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


def check_collectives_of_both_devices_are_in_one_order():
    a, b, c = genesis.ones(2), genesis.ones(2, device="cuda"), genesis.ones(2)
    for tensor in (a, b, c):
        dist.all_reduce(tensor)
    for tensor in (a, b, c) if rank() else (b, c, a):  # ranks may look at values in any order
        assert tensor.tolist() == [size()] * 2


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
