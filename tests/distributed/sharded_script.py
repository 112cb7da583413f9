"""Optimizers whose state is divided among ranks, against one process. Run by `test_collectives.py`."""

import numpy as np
from checks import raises, run
from data_parallel_script import batch, close, made, same_bits_on_all_ranks, share

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.optim import ZeroRedundancyOptimizer

STEPS = 20


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def steps_of(model, optimizer, scheduler=None, compiled=False, parts=share, steps=STEPS):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        return loss

    run_step = genesis.compile(step) if compiled else step
    for number in range(steps):
        run_step(*map(parts, batch(number % 4)))


def adam(parameters, lr=0.05):
    return genesis.optim.AdamW(parameters, lr=lr)


def halved(optimizer):
    return genesis.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)


def trained_alone():
    alone = made()
    optimizer = adam(alone.parameters())
    steps_of(alone, optimizer, halved(optimizer), parts=lambda x: x)
    return alone, optimizer


def check_a_divided_optimizer_is_that_of_one_process():
    alone, whole = trained_alone()
    for compiled in (False, True):
        model = dist.DistributedDataParallel(made())
        optimizer = ZeroRedundancyOptimizer(model.parameters(), genesis.optim.AdamW, lr=0.05)
        steps_of(model, optimizer, halved(optimizer), compiled)
        close(model.module, alone)
        same_bits_on_all_ranks(model)
        root = size() - 1
        optimizer.consolidate_state_dict(to=root)
        if rank() == root:
            for position, state in whole.state_dict()["state"].items():
                found = optimizer.state_dict()["state"][position]
                np.testing.assert_allclose(found["exp_avg"].numpy(), state["exp_avg"].numpy(), rtol=1e-3, atol=1e-6)
        else:
            raises(RuntimeError, "consolidate_state_dict", optimizer.state_dict)


def check_each_rank_keeps_its_part_of_the_state():
    model = nn.Sequential(*[nn.Linear(32, 32, bias=False) for _ in range(12)])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), genesis.optim.Adam, lr=0.1)
    kept = sum([value.nbytes for state in optimizer.state.values() for value in state.values() if hasattr(value, "nbytes")])
    assert kept <= 2 * sum([p.nbytes for p in model.parameters()]) * 1.05 / size(), kept


def check_state_of_all_parameters_is_loaded_in_parts():
    alone, whole = trained_alone()
    model = dist.DistributedDataParallel(made())
    model.module.load_state_dict(alone.state_dict())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), genesis.optim.AdamW, lr=1.0)
    optimizer.load_state_dict(whole.state_dict())
    steps_of(model, optimizer, steps=3)
    steps_of(alone, whole, parts=lambda x: x, steps=3)
    close(model.module, alone)


def check_groups_and_wrong_classes():
    model = made()
    first, *rest = model.parameters()
    optimizer = ZeroRedundancyOptimizer([{"params": rest, "lr": 0.5}], genesis.optim.SGD, lr=0.1)
    optimizer.add_param_group({"params": [first]})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    before = [p.detach().numpy().copy() for p in (first, *rest)]
    for p in (first, *rest):
        p.grad = genesis.ones_like(p)
    optimizer.step()
    for p, old, rate in zip((first, *rest), before, [0.1, *[0.5] * len(rest)], strict=True):
        np.testing.assert_allclose(p.detach().numpy(), old - rate, rtol=1e-6)
    raises(TypeError, "LBFGS has a step of its own", ZeroRedundancyOptimizer, model.parameters(), genesis.optim.LBFGS)


if __name__ == "__main__":
    run(globals())
