"""Collectives under way while others compute, against NumPy. Run by `test_collectives.py`."""

import gc
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
from checks import all_given, equal, mine, raises, run

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.debug.program import Recording
from genesis.distributed.nn import functional


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def told(function):
    """What a function gives, and the instructions of the program that it ran last."""
    with Recording() as recording:
        result = function()
        result.numpy()
    return result, recording.programs[-1].program.instructions


def places(instructions, *beginnings):
    return [[k for k, line in enumerate(instructions) if line.startswith(b)] for b in beginnings]


def total(shape, seed):
    return sum(all_given(shape, np.float64, seed))


def check_a_result_is_awaited_where_it_is_read_first():
    x, y = mine((40, 30), seed=1), mine((30, 40), seed=2)

    def both():
        a = functional.all_reduce(x)
        b = (y @ x).tanh() @ y  # reads nothing of it
        c = functional.all_reduce(y)
        return a.sum() + b.sum() + c.sum()

    result, lines = told(both)
    starts, waits, products = places(lines, "start all_reduce", "wait all_reduce", "product")
    assert len(starts) == len(waits) == 2 and len(products) == 2, lines
    assert max(starts) < min(products) and max(products) < min(waits), lines  # both operands are there at the beginning
    own = [given[rank()] for given in (all_given((40, 30), np.float64, 1), all_given((30, 40), np.float64, 2))]
    wanted = total((40, 30), 1).sum() + total((30, 40), 2).sum() + (np.tanh(own[1] @ own[0]) @ own[1]).sum()
    equal(result, np.array(wanted))


def check_gradients_are_on_their_way_before_backward_ends():
    model = dist.DistributedDataParallel(
        nn.Sequential(*[nn.Linear(16, 16, dtype=genesis.float64) for _ in range(3)]), bucket_cap_mb=16 * 17 * 8 / 2**20)
    x = mine((4, 16))

    def step():
        model.zero_grad()
        (model(x) ** 2).mean().backward()
        return genesis.cat([p.grad.flatten() for p in model.parameters()])

    step()  # in which ranks agree on the order
    gradients, lines = told(step)
    starts, waits, products = places(lines, "start all_reduce", "wait all_reduce", "product")
    assert len(starts) == len(waits) == 3, lines
    assert starts[0] < starts[1] < products[-1] < starts[2] < waits[0], lines
    model.zero_grad()
    with model.no_sync():
        (model(x) ** 2).mean().backward()
    alone = genesis.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(alone, op="avg")
    equal(gradients, alone.numpy())
    found = [None] * size()
    dist.all_gather_object(found, gradients.numpy().tobytes())
    assert len({*found}) == 1  # the same bits on all ranks


class Backwards(nn.Module):
    """Layers that are called last one first."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16, dtype=genesis.float64) for _ in range(4)])

    def forward(self, x):
        for layer in reversed([*self.layers]):
            x = layer(x).tanh()
        return x


def check_buckets_are_in_the_order_in_which_gradients_are_complete():
    model = dist.DistributedDataParallel(Backwards(), bucket_cap_mb=16 * 17 * 8 / 2**20)
    x = mine((4, 16))

    def step():
        model.zero_grad()
        (model(x) ** 2).mean().backward()
        return genesis.cat([p.grad.flatten() for p in model.parameters()])

    first = step().numpy()
    gradients, lines = told(step)
    starts, waits, products = places(lines, "start all_reduce", "wait all_reduce", "product")
    assert len(starts) == 4 and starts[0] < starts[1] < starts[2] < products[-1] < starts[3] < waits[0], lines
    equal(gradients, first)
    compiled = genesis.compile(step, fullgraph=True)
    found = [compiled() for _ in range(4)][-1]
    assert compiled.entries[0].replays > 1
    equal(found, first)


def check_what_the_next_one_needs_is_computed_before_one_waits():
    x, y = mine((20, 20), seed=11), mine((20, 20), seed=12)

    def chains():
        first = functional.all_reduce(x)
        second = functional.all_reduce(first * 2)  # waits for the first
        third = functional.all_reduce(x @ y)
        return second.sum() + third.sum()

    result, lines = told(chains)
    starts, waits, products = places(lines, "start", "wait", "product")
    assert starts[0] < products[0] < waits[0] < starts[1] < starts[2] < waits[1], lines
    pairs = zip(all_given((20, 20), np.float64, 11), all_given((20, 20), np.float64, 12), strict=True)
    equal(result, np.array(2 * size() * total((20, 20), 11).sum() + sum([(a @ b).sum() for a, b in pairs])))


def check_replays_start_and_wait_as_well():
    x, y = mine((64, 64), seed=3), mine((64, 64), seed=4)

    @genesis.compile
    def step(x, y):
        first = functional.all_reduce(x * 2)
        between = (x @ y).relu() @ y
        second = genesis.cat(functional.all_gather(between))
        return first.sum() + second.sum() + functional.all_reduce(first @ y).sum()

    results = [step(x, y).item() for _ in range(5)]
    assert len({*results}) == 1
    firsts = 2 * total((64, 64), 3)
    given = list(zip(all_given((64, 64), np.float64, 3), all_given((64, 64), np.float64, 4), strict=True))
    wanted = firsts.sum() + sum((np.maximum(a @ b, 0) @ b).sum() + (firsts @ b).sum() for a, b in given)
    assert abs(results[0] - wanted) <= 1e-9 * np.abs(firsts).sum() * 64


def check_long_tensors_are_on_their_way_in_pieces():
    x, y = mine((700_000,), seed=5), mine((50, 50), seed=6)

    def both():
        whole = functional.all_reduce(x)
        return whole + (y @ y).sum()

    result, lines = told(both)
    starts, waits, products = places(lines, "start", "wait", "product")
    assert starts[0] < products[0] < waits[0], lines
    own = all_given((50, 50), np.float64, 6)[rank()]
    equal(result, total((700_000,), 5) + (own @ own).sum())


def check_several_groups_are_under_way_at_once():
    pair = dist.new_group([0, 1])
    x, y = mine((30, 30), seed=7), mine((30, 30), seed=8)

    def both():
        first = functional.all_reduce(x)
        second = functional.all_reduce(y, group=pair) if rank() < 2 else y
        return first.sum() + (x @ y).sum() + second.sum()

    result, lines = told(both)
    starts, waits, products = places(lines, "start", "wait", "product")
    assert len(starts) == len(waits) == 1 + (rank() < 2) and max(starts) < products[0] < min(waits), lines
    xs, ys = all_given((30, 30), np.float64, 7), all_given((30, 30), np.float64, 8)
    second = ys[0] + ys[1] if rank() < 2 else ys[rank()]
    equal(result, np.array(sum(xs).sum() + (xs[rank()] @ ys[rank()]).sum() + second.sum()))


def check_nothing_is_under_way_where_an_index_may_be_out_of_range():
    x, table = mine((20, 20), seed=9), mine((6, 20), seed=10)
    at = genesis.tensor([0, 5, 1])
    result, lines = told(lambda: functional.all_reduce(x).sum() + (table[at] @ x).sum())
    starts, natives, products = places(lines, "start", "native  all_reduce", "product")
    assert not starts and natives[0] < products[0], lines
    own = all_given((20, 20), np.float64, 9)[rank()], all_given((6, 20), np.float64, 10)[rank()]
    equal(result, np.array(total((20, 20), 9).sum() + (own[1][[0, 5, 1]] @ own[0]).sum()))


def check_an_index_out_of_range_repeats_no_collective():
    """On rank 0 alone: a collective that ran again there would be taken for the next one of the others."""
    table = mine((6, 20), seed=10)
    wrong, right = [7 if rank() == 0 else 1], [2]

    def step(x, at):
        first = functional.all_reduce(x)
        looked_up = table[at]
        return first, looked_up, functional.all_reduce(first * first)

    compiled = genesis.compile(step)
    for _ in range(3):
        compiled(mine((20,), seed=13), genesis.tensor(right))
    sums = total((20,), 13)
    for call in (step, compiled):
        x = mine((20,), seed=13, requires_grad=call is step)
        try:
            first, looked_up, second = call(x, genesis.tensor(wrong))
            looked_up.tolist()
            assert rank() != 0
        except IndexError:
            assert rank() == 0
            if call is compiled:  # which raises before it returns what it has computed
                continue
        equal(first, sums)
        equal(second, size() * sums**2)
        if call is step:
            (second.sum() + first.sum()).backward()
            equal(x.grad, size() * (2 * size() * sums + 1))
    equal(functional.all_reduce(mine((3,), seed=14)), total((3,), 14))


class Stopped(Exception):
    """What the handler of a signal raises."""


def stopping():
    """A handler of signals for rank 0, which raises; and what the other rank calls to wait for that."""
    named = [tempfile.mktemp() if rank() == 0 else ""]
    dist.broadcast_object_list(named, 0)
    mark = Path(named[0])

    def stop(number, frame):
        mark.touch()
        raise Stopped

    def until_stopped():
        while not mark.exists():
            time.sleep(0.01)
        mark.unlink()

    return stop, until_stopped


def check_what_an_interrupt_has_left_comes_before_the_next_collective():
    """Though nobody holds anything of it: other ranks wait for its second collective."""
    stop, until_stopped = stopping()
    step = genesis.compile(lambda x: functional.all_reduce(functional.all_reduce(x) * 1.5 + x, "max"))
    for turn in range(7):
        x = mine((4,), seed=turn)
        sums = total((4,), turn)
        if turn == 5 and rank() == 0:
            former = signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, 0.15)
            raises(Stopped, "", step, x)
            signal.signal(signal.SIGALRM, former)
            gc.collect()
            continue
        if turn == 5 and rank() == 1:
            until_stopped()
        equal(step(x), np.max([sums * 1.5 + each for each in all_given((4,), np.float64, turn)], axis=0))


def trained(interrupted_at):
    """Weights after 12 compiled steps of averaged gradients, on rank 0 with an interrupt in one; how many were native."""
    genesis.manual_seed(0)
    stop, until_stopped = stopping()
    model = dist.DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)))
    optimizer = genesis.optim.Adam(model.parameters(), lr=0.1)

    @genesis.compile
    def step(x, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss

    for turn in range(12):
        x, labels = mine((4, 6), np.float32, seed=turn), genesis.tensor([0, 1, 2, (rank() + turn) % 3])
        if turn == interrupted_at and rank() == 0:
            former = signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, 0.15)
            raises(Stopped, "", step, x, labels)
            signal.signal(signal.SIGALRM, former)
            assert optimizer.state[model.module[0].weight]["step"] == turn + 1  # the step has been taken
            continue
        if turn == interrupted_at and rank() == 1:
            until_stopped()
        step(x, labels)
    natively = sum(entry.native.replays for entry in step.entries if entry.native is not None)
    return [p.detach().numpy() for p in model.parameters()], natively, step, model


def check_a_step_that_an_interrupt_cut_short_is_taken():
    wanted, natively, _, _ = trained(-1)
    assert natively >= 8
    for turn in (6, 11):
        found, natively, _, _ = trained(turn)
        assert natively >= 7
        for a, b in zip(found, wanted, strict=True):
            assert a.tobytes() == b.tobytes(), turn


def check_a_label_out_of_range_changes_nothing_and_meets_no_other_rank():
    wanted, _, step, model = trained(-1)
    x, labels = mine((4, 6), np.float32), genesis.tensor([0, 1, 2, 3])  # on all ranks
    raises(IndexError, "overlap_script.py", step, x, labels)
    for parameter, before in zip(model.parameters(), wanted, strict=True):
        equal(parameter, before, exact=True)
    equal(functional.all_reduce(genesis.ones(3)), np.full(3, size(), np.float32))


if __name__ == "__main__":
    run(globals())
