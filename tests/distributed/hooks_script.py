"""Communication hooks, and ranks with different numbers of batches. Run by `test_collectives.py`."""

import numpy as np
from checks import raises, run
from data_parallel_script import batch, close, made, same_bits_on_all_ranks, share, trained

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed import communication_hooks as hooks


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def gradients_of(hook, cap=1e-4, seed=3):
    model = dist.DistributedDataParallel(made(), bucket_cap_mb=cap)
    if hook is not None:
        model.register_comm_hook(None, hook)
    x, y = map(share, batch(0))
    nn.functional.mse_loss(model(x), y).backward()
    return [p.grad.numpy() for p in model.parameters()]


def check_hooks_average_as_the_wrapper_does():
    def by_hand(state, bucket):
        assert len(bucket.gradients()) == len(bucket.parameters()) and bucket.buffer().ndim == 1
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] / size())

    wanted = gradients_of(None)
    for hook, bound in ((hooks.allreduce_hook, 0), (by_hand, 1e-6), (hooks.bf16_compress_hook, 2**-7),
                        (hooks.fp16_compress_hook, 2**-10), (hooks.bf16_compress_wrapper(hooks.allreduce_hook), 2**-7),
                        (hooks.fp16_compress_wrapper(by_hand), 2**-9)):
        for found, exact in zip(gradients_of(hook), wanted, strict=True):
            assert found.dtype == exact.dtype and np.abs(found - exact).max() <= bound * np.abs(exact).max(), hook


def check_a_compiled_step_holds_the_hook():
    alone = made()
    trained(alone, parts=lambda x: x)
    model = dist.DistributedDataParallel(made())
    model.register_comm_hook(None, hooks.bf16_compress_hook)
    step = trained(model, compiled=True)
    close(model.module, alone, 0.1)
    inputs = [share(x).clone() for x in batch(0)]
    before = [x.numpy() for x in inputs] and genesis.debug.stats()["native_calls"]
    for _ in range(5):
        step(*inputs)
    assert genesis.debug.stats()["native_calls"] - before == 5
    same_bits_on_all_ranks(model)
    raises(RuntimeError, "a hook already", model.register_comm_hook, None, hooks.allreduce_hook)
    raises(TypeError, "want a function", dist.DistributedDataParallel(made()).register_comm_hook, None, 3)


def check_ranks_join_that_have_fewer_batches():
    for by_all in (True, False):
        model, alone = dist.DistributedDataParallel(made()), made()
        optimizer = genesis.optim.SGD(model.parameters(), lr=0.1)
        with model.join(divide_by_initial_world_size=by_all):
            for number in range(2 + rank()):  # the last rank has the most
                optimizer.zero_grad()
                x, y = map(share, batch(number))
                nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
        for number in range(1 + size()):
            ranks = [k for k in range(size()) if number < 2 + k]
            x, y = batch(number)
            rows = len(x) // size()
            own = genesis.optim.SGD(alone.parameters(), lr=0.1)
            own.zero_grad()
            for k in ranks:
                part = slice(k * rows, (k + 1) * rows)
                (nn.functional.mse_loss(alone(x[part]), y[part]) / (size() if by_all else len(ranks))).backward()
            own.step()
        close(model.module, alone)
        same_bits_on_all_ranks(model)


def check_all_ranks_raise_where_one_has_no_batch():
    model = dist.DistributedDataParallel(made())

    def uneven():
        with model.join(throw_on_early_termination=True):
            for number in range(2 if rank() else 1):
                nn.functional.mse_loss(*map(share, (model(batch(number)[0]), batch(number)[1]))).backward()

    raises(RuntimeError, "rank 0 has no batch", uneven)
    nn.functional.mse_loss(model(batch(0)[0]), batch(0)[1]).backward()  # the group is as it was


if __name__ == "__main__":
    run(globals())
