"""Messages that are recorded, and their gradients, against NumPy. Run by `test_collectives.py`."""

import numpy as np
from checks import all_given, equal, given, mine, raises, run

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional


def rank():
    return dist.get_rank()


def last():
    return dist.get_world_size() - 1


def check_a_message_and_its_gradient():
    """Rank 0 squares and sends, the last rank weighs what comes: a chain over processes, other ranks take no part."""
    x = mine((2, 3), requires_grad=True)
    weight = given(9, (2, 3))
    if rank() == 0:
        sent = functional.send(x * x, last())
        assert sent.item() == 0
        sent.backward()
        equal(x.grad, 2 * given(0, (2, 3)) * weight)
    elif rank() == last():
        came = functional.recv(genesis.zeros(2, 3, dtype=genesis.float64, requires_grad=True), 0)
        (came * genesis.tensor(weight)).sum().backward()
        equal(came, given(0, (2, 3)) ** 2)


def check_an_exchange_and_its_gradient():
    if 0 < rank() < last():
        return
    peer = last() - rank()
    x = mine((3,), requires_grad=True)
    y = functional.sendrecv(x * 2, peer)
    (y * (rank() + 1)).sum().backward()
    equal(y, 2 * given(peer, (3,)))
    equal(x.grad, np.full(3, 2.0 * (peer + 1)))


def check_messages_of_all_dtypes_none_of_the_programs_and_of_nothing():
    for dtype in (genesis.bool, genesis.bfloat16):
        x, zeroth = (genesis.tensor([0, 1, number]).to(dtype) for number in (rank(), 0))
        if rank() == 0:
            waiting = dist.isend(x, last())  # by the same two ranks, with the default tag
            functional.send(x + x, last())
            functional.send(x[:0], last())
            waiting.wait()
        elif rank() == last():
            came, empty = functional.recv(x, 0), functional.recv(x[:0], 0)
            assert came.tolist() == (zeroth + zeroth).tolist() and empty.shape == (0,)
            dist.recv(x, 0)
            assert x.tolist() == zeroth.tolist()


def check_messages_and_collectives_in_one_order():
    total = functional.all_reduce(mine(2))
    if rank() == 0:
        functional.send(total, last())
    elif rank() == last():
        total = functional.recv(total, 0) - total
    equal(functional.all_reduce(total), last() * sum(all_given(2)))


def check_a_compiled_step_is_one_native_call():
    weight, like = genesis.full((4,), 2.0, requires_grad=True), genesis.zeros(4, requires_grad=True)

    def step(x):
        if rank() == 0:
            return genesis.autograd.grad(functional.send(x * weight, last()), weight)[0]
        came = functional.recv(like, 0)
        return genesis.autograd.grad((came * weight).sum(), weight)[0]

    if 0 < rank() < last():
        return
    compiled = genesis.compile(step)
    for k in range(4):
        assert compiled(genesis.full((4,), float(k))).tolist() == [2.0 * k] * 4
    x = mine(4, "float32")
    compiled(x), compiled(x)
    before = genesis.debug.stats()["native_calls"]
    for _ in range(5):
        compiled(x)
    made = genesis.debug.stats()["native_calls"] - before
    assert made == 5, f"{made} native calls in 5 steps"


def check_wrong_ranks():
    raises(ValueError, "is this one", functional.send, mine(2), rank())
    raises(ValueError, "rank 9 is not among", functional.recv, mine(2), 9)


def check_both_say_the_same_of_gradients():
    """The last check, for the group is of no use afterwards."""
    pair = dist.new_group([0, last()])
    if rank() == 0:
        raises(dist.CollectiveError, "with gradients", functional.send(mine(2, requires_grad=True), last(), pair).item)
    elif rank() == last():
        raises(dist.CollectiveError, "0 to 1: float64[2]", functional.recv(mine(2), 0, pair).tolist)


if __name__ == "__main__":
    run(globals())
