"""Collectives against NumPy on what all ranks give. Run by `test_collectives.py`."""

import os
import pickle
import warnings

import numpy as np
from checks import all_given, equal, given, mine, raises, run

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional

KINDS = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "avg": np.mean}


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def check_the_environment_says_who_a_rank_is():
    wanted = {"RANK": rank(), "WORLD_SIZE": size(), "LOCAL_RANK": rank(), "LOCAL_WORLD_SIZE": size()}  # on one machine
    assert {name: int(os.environ[name]) for name in wanted} == wanted


def check_all_reduce_of_all_reductions_and_dtypes():
    for name in ("float32", "float64", "int32", "int64", "uint8", "complex64"):
        for op, reference in KINDS.items():
            if (op == "avg" and name[0] in "iu") or (op in ("min", "max") and name[0] == "c"):
                raises(ValueError if name[0] == "c" else TypeError, f"has no {op}", dist.all_reduce, mine(3, name), op)
                continue
            x = mine((4, 3), name)
            assert dist.all_reduce(x, op) is None
            equal(x, reference(np.stack(all_given((4, 3), name)), 0).astype(name))


def check_all_reduce_of_bits_and_bools():
    for op, reference in (("band", np.bitwise_and), ("bor", np.bitwise_or), ("bxor", np.bitwise_xor)):
        x = mine(5, "int32")
        dist.all_reduce(x, op)
        equal(x, reference.reduce(all_given(5, "int32")))
    given = [[True, k == 0, k == 1, False] for k in range(size())]
    logical = np.logical_or, np.logical_and, np.logical_or, np.logical_and, np.logical_xor
    for op, reference in zip(("max", "min", "sum", "prod", "bxor"), logical, strict=True):
        x = genesis.tensor(given[rank()])
        dist.all_reduce(x, op)
        assert x.numpy().view("uint8").tolist() == reference.reduce(np.array(given)).astype("uint8").tolist(), op
    raises(TypeError, "bool has no avg", dist.all_reduce, x, "avg")


def check_sixteen_bits_are_added_as_float32():
    for dtype in (genesis.bfloat16, genesis.float16):
        x = genesis.full((3,), 256.0 if rank() == 0 else 0.75, dtype=dtype)
        dist.all_reduce(x)
        assert x.dtype is dtype and x.tolist() == genesis.full((3,), 256.0 + 0.75 * (size() - 1)).to(dtype).tolist()


def check_every_dtype_moves_also_without_axes():
    for name in ("complex128", "complex64", "complex32", "float64", "float16", "bfloat16", "bool", "uint64"):
        dtype, root = getattr(genesis, name), size() - 1
        for shape in ((), (2,)):
            own, roots, first, wanted = (
                genesis.full(shape, number).to(dtype) for number in (rank() + 1, root + 1, 1, size() * (size() + 1) / 2))
            found = [genesis.zeros(shape).to(dtype) for _ in range(size())] if rank() == root else None
            dist.gather(own, found, dst=root)
            assert rank() != root or found[0].tolist() == first.tolist(), (name, shape)
            if name != "bool":
                total = functional.all_reduce(own)
                assert total.dtype is dtype and total.tolist() == wanted.tolist(), (name, shape)
            dist.broadcast(own, root)
            assert own.tolist() == roots.tolist(), (name, shape)


def check_all_reduce_reads_strided_views_and_writes_them():
    x = mine((4, 6))
    dist.all_reduce(x[:, ::2])
    wanted = given(rank(), (4, 6))
    wanted[:, ::2] = sum(all_given((4, 6)))[:, ::2]
    equal(x, wanted)


def check_long_tensors_go_in_pieces():
    x = genesis.arange(600_001, dtype=genesis.float32) % 1000 + rank()
    dist.all_reduce(x)
    equal(x, (np.arange(600_001) % 1000 * size() + size() * (size() - 1) / 2).astype(np.float32), exact=True)


def check_reduce_and_broadcast():
    root = size() - 1
    x = mine((2, 3))
    dist.reduce(x, root, "avg")
    equal(x, np.mean(all_given((2, 3)), 0) if rank() == root else given(rank(), (2, 3)))
    y = mine((2, 3), "int64")
    dist.broadcast(y, src=root)
    equal(y, given(root, (2, 3), "int64"), exact=True)
    flags = genesis.tensor([rank() == root, rank() == 0])
    dist.broadcast(flags, root)
    assert flags.tolist() == [True, size() == 1]


def check_all_gather_of_equal_and_uneven_tensors():
    found = [genesis.zeros(2, 3, dtype=genesis.float64) for _ in range(size())]
    dist.all_gather(found, mine((2, 3)))
    for tensor, wanted in zip(found, all_given((2, 3)), strict=True):
        equal(tensor, wanted)
    uneven = [genesis.zeros(k, 2, dtype=genesis.bfloat16) for k in range(size())]  # rank 0 gives nothing
    dist.all_gather(uneven, genesis.full((rank(), 2), float(rank()), dtype=genesis.bfloat16))
    assert [tensor.tolist() for tensor in uneven] == [[[float(k)] * 2] * k for k in range(size())]
    joined, stacked = genesis.zeros(2 * size(), 3, dtype=genesis.float64), genesis.zeros(size(), 2, 3, dtype=genesis.float64)
    for target in (joined, stacked):
        work = dist.all_gather_into_tensor(target, mine((2, 3)), async_op=True)
        assert work.wait() and work.is_completed()
    equal(joined, np.concatenate(all_given((2, 3))))
    equal(stacked, np.stack(all_given((2, 3))))


def check_a_forked_child_takes_no_part():
    """Its collectives and messages would be taken for its parent's."""
    read, written = os.pipe()
    if not (child := os.fork()):
        failures = []
        for start in (lambda: dist.all_reduce(genesis.ones(2)), dist.barrier, lambda: dist.isend(genesis.ones(2), 1 - rank())):
            try:
                start()
                genesis.zeros(1).item()
            except RuntimeError as failure:
                failures.append("a fork of the rank's process" in str(failure))
        os.write(written, repr((failures, (genesis.ones(2) * 2).tolist())).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1000) == b"([True, True, True], [2.0, 2.0])"
    os.close(read), os.close(written)
    x = genesis.ones(2)
    dist.all_reduce(x)
    equal(x, np.full(2, size(), np.float32))


def check_gather_and_scatter():
    root = 1
    found = [genesis.zeros(3, dtype=genesis.float64) for _ in range(size())] if rank() == root else None
    dist.gather(mine(3), found, dst=root)
    for tensor, wanted in zip(found or (), all_given(3), strict=bool(found)):
        equal(tensor, wanted)
    mail = [genesis.tensor([10.0 * k, rank()]) for k in range(size())] if rank() == root else None
    got = genesis.zeros(2)
    dist.scatter(got, mail, src=root)
    assert got.tolist() == [10.0 * rank(), root]


def check_reduce_scatter_of_equal_and_uneven_parts():
    rows = [given(k, (2 * size(), 3)) for k in range(size())]
    out = genesis.zeros(2, 3, dtype=genesis.float64)
    dist.reduce_scatter_tensor(out, mine((2 * size(), 3)), "sum")
    equal(out, sum(rows)[2 * rank() : 2 * rank() + 2])
    parts = [genesis.full((k, 2), float(rank())) for k in range(size())]  # rank 0 gets nothing
    mean = genesis.zeros(rank(), 2)
    dist.reduce_scatter(mean, parts, "avg")
    equal(mean, np.full((rank(), 2), (size() - 1) / 2, np.float32))


def check_all_to_all_of_equal_and_uneven_parts():
    out = genesis.zeros(size(), dtype=genesis.int64)
    dist.all_to_all_single(out, genesis.arange(size()) + 100 * rank())
    assert out.tolist() == [100 * k + rank() for k in range(size())]
    sends = [(rank() + k) % 3 for k in range(size())]
    receives = [(rank() + k) % 3 for k in range(size())]  # the same by symmetry
    out = genesis.zeros(sum(receives), 2)
    dist.all_to_all_single(out, genesis.full((sum(sends), 2), float(rank())), receives, sends)
    assert out[:, 0].tolist() == [float(k) for k in range(size()) for _ in range(receives[k])]
    lists = [genesis.zeros(k + rank()) for k in range(size())]
    dist.all_to_all(lists, [genesis.full((k + rank(),), float(rank())) for k in range(size())])
    assert [tensor.tolist() for tensor in lists] == [[float(k)] * (k + rank()) for k in range(size())]


def check_nothing_is_dropped_merged_or_reordered():
    """Two equal collectives are two; one that nobody reads runs; ranks may look at values at different places."""
    x = mine(4)
    first, second = functional.all_reduce(x), functional.all_reduce(x)
    unread = mine(4)
    dist.all_reduce(unread, "max")
    del unread
    y = functional.broadcast(x * rank(), 1)
    if rank() == 0:
        equal(first, sum(all_given(4)))
    z = functional.all_reduce(y)
    if rank() == 1:
        equal(z, size() * given(1, 4))
    last = functional.all_reduce(z, "min")
    equal(second, sum(all_given(4)))
    equal(last, size() * given(1, 4))


def check_groups():
    raises(ValueError, "want different ones", dist.new_group, [0, 0])
    raises(ValueError, "want False", dist.new_group, [0, 1], use_local_synchronization=True)
    low, high = dist.new_group([0, 1]), dist.new_group([size() - 1])
    x = mine(3)
    dist.all_reduce(x, group=low)
    equal(x, sum(all_given(3)[:2]) if rank() < 2 else given(rank(), 3))
    assert (dist.get_rank(low), dist.get_world_size(low)) == ((rank(), 2) if rank() < 2 else (-1, -1))
    dist.all_reduce(x, group=high)  # one rank: nothing happens
    if rank() == size() - 1:
        assert dist.get_process_group_ranks(high) == [rank()] and dist.get_global_rank(high, 0) == rank()
    both = dist.new_group()
    y = mine(3)
    dist.all_reduce(y, group=both)
    equal(y, sum(all_given(3)))


def check_groups_of_neighbours_and_by_enumeration():
    before = dist.get_pg_count()
    for own, groups in (dist.new_subgroups(1), dist.new_subgroups_by_enumeration([[k] for k in range(size())])):
        assert own.ranks == [rank()] and groups[rank()] is own and len(groups) == size()
        assert all(group is dist.NON_GROUP_MEMBER for k, group in enumerate(groups) if k != rank())
    part = dist.split_group(None, [[0], [*range(1, size())]])
    x = genesis.tensor([1.0])
    dist.all_reduce(x, group=part)
    assert x.tolist() == [1.0 if rank() == 0 else size() - 1.0]
    order = [*range(size())][::-1]
    assert dist.get_rank(dist.new_group(order, sort_ranks=False)) == size() - 1 - rank()
    dist.barrier(timeout=20)
    inner = dist.split_group(part, [[0]])  # by ranks in the part
    assert (inner is None) is (rank() > 1) and dist.get_pg_count() == before + 4 + (rank() < 2)
    raises(ValueError, "different ranks", dist.split_group, None, [[0], [0]])
    raises(ValueError, "divisor", dist.new_subgroups, size() + 1)


def check_several_tensors_in_one_collective():
    with warnings.catch_warnings(record=True):
        x, y = mine(3), mine((2, 2), seed=1)
        dist.all_reduce_coalesced([x, y], "max")
        equal(x, np.max(all_given(3), 0))
        equal(y, np.max(all_given((2, 2), seed=1), 0))
        lists = [[genesis.zeros(3, dtype=genesis.float64), genesis.zeros(2, 2, dtype=genesis.float64)] for _ in range(size())]
        assert dist.all_gather_coalesced(lists, [mine(3), mine((2, 2), seed=1)], async_op=True).wait()
        for k, (first, second) in enumerate(lists):
            equal(first, given(k, 3), exact=True)
            equal(second, given(k, (2, 2), seed=1), exact=True)


def check_lists_of_objects_between_two_ranks():
    if rank() == 0:
        dist.send_object_list([{"a": 1}, "text", genesis.ones(2)], size() - 1)
        dist.send_object_list([0], size() - 1)
    elif rank() == size() - 1:
        found = [None] * 3
        assert dist.recv_object_list(found) == 0 and found[:2] == [{"a": 1}, "text"] and found[2].tolist() == [1.0, 1.0]
        raises(dist.CollectiveError, "8 bytes, not 16", dist.recv_object_list, [None, None], 0)
        genesis.distributed.recv(genesis.zeros(len(pickle.dumps(0)), dtype=genesis.uint8), 0)  # the other half of that message
    dist.barrier()  # a message of the next check could reach the receiver that takes any rank's first


def check_messages():
    following, before = (rank() + 1) % size(), (rank() - 1) % size()
    got = genesis.zeros(2, 2, dtype=genesis.bfloat16)
    sent = genesis.full((2, 2), float(rank()), dtype=genesis.bfloat16)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, following), dist.P2POp(dist.irecv, got, before)])
    sent.zero_()  # what it held is on its way
    assert all([work.wait() for work in works]) and got.tolist() == [[float(before)] * 2] * 2
    if rank() == 0:
        dist.send(mine(3), 1, tag=5)
        raises(ValueError, "want another one", dist.send, mine(3), 0)
    elif rank() == 1:
        x = genesis.zeros(3, dtype=genesis.float64)
        assert dist.recv(x, tag=5) == 0
        equal(x, given(0, 3))
    for length, said in ((3, "has 8 bytes, not 12"), (1, "MPI says")):
        if rank() == 0:
            dist.send(genesis.ones(2), 1)
        elif rank() == 1:
            raises(RuntimeError, said, dist.recv, genesis.zeros(length), 0)


def check_objects():
    found = [None] * size()
    dist.all_gather_object(found, {"rank": rank()})
    assert found == [{"rank": k} for k in range(size())]
    said = ["yes", 3] if rank() == 1 else [None, None]
    dist.broadcast_object_list(said, src=1)
    assert said == ["yes", 3]
    mail = [None]
    dist.scatter_object_list(mail, [f"to {k}" for k in range(size())] if rank() == 0 else None)
    assert mail == [f"to {rank()}"]
    gathered = [None] * size() if rank() == 0 else None
    dist.gather_object(rank(), gathered)
    assert gathered == (list(range(size())) if rank() == 0 else None)
    dist.barrier()
    dist.monitored_barrier(timeout=10)


def check_wrong_arguments():
    raises(ValueError, "no reduction 'median'", dist.all_reduce, genesis.ones(2), "median")
    raises(ValueError, "want one on cpu", dist.all_reduce, genesis.ones(2, device="cpu:1"))
    raises(ValueError, f"want {size()}, one for each rank", dist.all_gather, [genesis.ones(2)], genesis.ones(2))
    raises(ValueError, "want the same shape", dist.all_gather, [genesis.ones(3)] * size(), genesis.ones(2))
    raises(ValueError, "rank 9 is not among", dist.broadcast, genesis.ones(2), 9)
    raises(ValueError, "equal parts", dist.all_to_all_single, genesis.ones(size() + 1), genesis.ones(size() + 1))
    wrong = [1] * size(), [2] * size()
    raises(ValueError, "sends itself 2 rows", dist.all_to_all_single, genesis.ones(size()), genesis.ones(2 * size()), *wrong)
    raises(TypeError, "all_reduce: list instead of a tensor", dist.all_reduce, [genesis.ones(2)])
    raises(TypeError, "reduce: float instead of a tensor", dist.reduce, 2.0, 0)
    raises(TypeError, "all_gather: Tensor instead of a list", dist.all_gather, genesis.ones(size(), 2), genesis.ones(2))
    raises(TypeError, "send: ndarray instead of a tensor", dist.send, np.ones(2), 1 - min(rank(), 1))
    raises(RuntimeError, "called before", dist.init_process_group)


def check_eager_mode():
    with genesis.eager():
        x = mine((2, 3))
        dist.all_reduce(x)
        equal(x, sum(all_given((2, 3))))


if __name__ == "__main__":
    run(globals())
