"""Gradients against finite differences of the sum of all ranks' losses, and replays. Run by `test_collectives.py`."""

import signal
import time

import numpy as np
from checks import all_given, equal, given, mine, raises, run

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional
from genesis.ops import collective as rows
from genesis.ops.derive import NotDifferentiableError

STEP = 1e-4


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def agree(function, shape):
    """Each rank's loss weighs what `function` gives, squared: the slope of the sum of all losses along a direction, in which
    all ranks go at once, is the sum of the gradients' products with it."""
    def loss(x):
        results = function(x)
        results = results if isinstance(results, tuple) else (results,)
        return sum((y * y * genesis.tensor(given(rank(), y.shape, seed=7 + k))).sum() for k, y in enumerate(results))

    x = mine(shape, requires_grad=True)
    (gradient,) = genesis.autograd.grad(loss(x), x)
    direction = mine(shape, seed=5)
    with genesis.no_grad():
        slope = (loss(x + STEP * direction) - loss(x - STEP * direction)) / (2 * STEP)
        both = functional.all_reduce(genesis.stack([slope, (gradient * direction).sum()]))
    found, wanted = both.tolist()
    assert abs(found - wanted) <= 1e-6 * max(1, abs(wanted)), (found, wanted)


def collectives():
    """All that have gradients, each with the shape of an operand."""
    def scaled(x):
        return [x * k for k in range(1, size() + 1)]

    sizes = tuple(range(1, size() + 1))  # of shards
    sends = tuple([1 + (rank() + k) % 2 for k in range(size())])

    return [
        (functional.all_reduce, (2, 2)), (lambda x: functional.all_reduce(x, "avg"), (3,)),
        (lambda x: functional.reduce(x, 1), (3,)), (lambda x: functional.broadcast(x, 1), (3,)), (functional.all_gather, (2,)),
        (lambda x: functional.gather(x, 1), (2,)), (lambda x: functional.scatter(scaled(x), 1), (2,)),
        (lambda x: functional.all_to_all_single(x, x), (size(), 2)), (lambda x: functional.reduce_scatter(x, scaled(x)), (2,)),
        (lambda x: functional.collective(rows.all_gather, x, sizes, 0), (rank() + 1, 2)),
        (lambda x: functional.collective(rows.reduce_scatter, x, "sum", sizes, 0), (sum(sizes), 2)),
        (lambda x: functional.all_to_all_single(x, x, sends, sends), (sum(sends), 2)),
    ]


def check_gradients_against_differences():
    for function, shape in collectives():
        agree(function, shape)


def check_gradients_in_bfloat16_are_those_of_float64():
    """Of numbers and weights that are small and whole, so that no sum is rounded."""
    for function, shape in collectives()[:1] + collectives()[2:]:  # an average is rounded
        found = []
        for dtype in (genesis.float64, genesis.bfloat16):
            x = genesis.tensor(given(rank(), shape, "int64"), dtype=dtype).requires_grad_()
            results = function(x)
            results = results if isinstance(results, tuple) else (results,)
            weights = [genesis.tensor(given(rank(), y.shape, "int64", seed=7 + k), dtype=dtype) for k, y in enumerate(results)]
            sum([(y * weight).sum() for y, weight in zip(results, weights, strict=True)]).backward()
            assert x.grad.dtype is dtype and all([y.dtype is dtype for y in results])
            found.append([x.grad.tolist(), *[y.tolist() for y in results]])
        assert found[0] == found[1], (shape, found)


def check_gradients_of_uneven_shards():
    own = rank() + 1
    total = size() * (size() + 1) // 2
    sizes = tuple(range(1, size() + 1))
    uneven = given(rank(), (own, 2))
    x = genesis.tensor(uneven, requires_grad=True)
    whole = functional.collective(rows.all_gather, x, sizes, 0)
    weights = [given(k, (total, 2), seed=3) for k in range(size())]
    (whole * genesis.tensor(weights[rank()])).sum().backward()
    start = sum(sizes[: rank()])
    equal(x.grad, sum(weights)[start : start + own])
    part = functional.collective(rows.reduce_scatter, x := mine((total, 2), requires_grad=True), "sum", sizes, 0)
    (part * (rank() + 1)).sum().backward()
    equal(x.grad, np.repeat(np.arange(1.0, size() + 1), sizes)[:, None] * np.ones((1, 2)))
    sends = tuple([1 + (rank() + k) % 2 for k in range(size())])
    y = functional.all_to_all_single(x, z := mine((sum(sends), 2), requires_grad=True), sends, sends)
    (y * (rank() + 1)).sum().backward()
    equal(z.grad, np.repeat(np.arange(1.0, size() + 1), sends)[:, None] * np.ones((1, 2)))


def check_gradients_of_higher_order():
    y = genesis.tensor(given(0, 3), requires_grad=True)  # the same on all ranks: s = size y, loss = sum of s^3
    (first,) = genesis.autograd.grad((functional.all_reduce(y) ** 3).sum(), y, create_graph=True)
    (second,) = genesis.autograd.grad(first.sum(), y)
    equal(first, size() * 3 * (size() * given(0, 3)) ** 2)
    equal(second, size() ** 3 * 6 * size() * given(0, 3) / size())


def check_reductions_without_a_gradient_say_so():
    x = mine(3, requires_grad=True)
    for op in ("max", "prod"):
        y = functional.all_reduce(x, op).sum()
        raises(NotDifferentiableError, f"all_reduce of {op} has no gradient", y.backward)


def check_backward_after_the_forward_was_looked_at():
    """What ran is not run again: the forward's collective is read from memory."""
    x = mine(3, requires_grad=True)
    y = functional.all_reduce(x * x)
    loss = (y * y).sum()
    if rank() == 0:
        loss.item()
    loss.backward()
    equal(x.grad, 2 * given(rank(), 3) * size() * 2 * sum(v * v for v in all_given(3)))


def check_no_gradient_flows_through_collectives_in_place():
    x = mine(3, requires_grad=True)
    y = x * 2
    dist.all_reduce(y.detach())
    weight = genesis.ones(3, requires_grad=True)
    dist.all_reduce(weight)  # a leaf, as optimizers change them
    assert weight.requires_grad and weight.tolist() == [float(size())] * 3 and weight.grad is None


def check_a_compiled_step_is_one_native_call():
    weight = genesis.ones(4, 3, dtype=genesis.float64, requires_grad=True)
    optimizer = genesis.optim.SGD([weight], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = (x @ weight).square().mean()
        loss.backward()
        dist.all_reduce(weight.grad, "avg")
        optimizer.step()
        return functional.all_reduce(loss.detach(), "avg")

    inputs = [genesis.tensor(given(rank(), (5, 4), seed=20 + k)) for k in range(4)]
    plain = [step(x).item() for x in inputs]
    with genesis.no_grad():
        weight.fill_(1.0)
    compiled = genesis.compile(step)
    found = [compiled(x).item() for x in inputs]
    np.testing.assert_allclose(found, plain, rtol=1e-12)
    before = genesis.debug.stats()["native_calls"]
    for _ in range(5):
        compiled(inputs[0])
    made = genesis.debug.stats()["native_calls"] - before
    assert made == 5, f"{made} native calls in 5 steps"
    assert "all_reduce" in str(genesis.debug.program(functional.all_reduce(mine(2))))


def check_a_replay_comes_after_what_is_pending():
    for device in ("cpu", "cpu:1"):  # of which threads keep traces in another way, once they have used a second one
        genesis.ones(1, device=device).tolist()
        double = genesis.compile(lambda x: functional.all_reduce(x * 2))
        for _ in range(3):
            double(mine(3))
        pending = functional.all_reduce(mine(3), "max")
        if rank() == 0:
            pending.tolist()  # here alone it has run
        equal(double(mine(3)), 2 * sum(all_given(3)))
        equal(pending, np.max(all_given(3), 0))


def check_an_interrupted_program_repeats_no_collective():
    """A handler of signals raises while rank 0 waits for the others between two collectives: what was begun goes on."""
    dist.barrier()
    first = functional.all_reduce(mine(3))
    if rank() == 1:
        first.tolist()
        time.sleep(1.5)
    second = functional.all_reduce(first * rank())
    if rank() == 0:
        def interrupt(number, frame):
            raise InterruptedError

        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        raises(InterruptedError, "", second.tolist)
        signal.signal(signal.SIGALRM, before)
    total = sum(all_given(3))
    equal(second, total * size() * (size() - 1) / 2)
    equal(first, total)


if __name__ == "__main__":
    run(globals())
