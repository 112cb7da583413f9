"""Data parallelism over ranks against one process with the whole batch. Run by `test_collectives.py`."""

import contextlib
import hashlib

import numpy as np
from checks import raises, run

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.utils.data import DistributedSampler

ROWS, STEPS = 24, 20


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def made(seed=3, width=8):
    genesis.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 3))


def batch(step):
    random = np.random.default_rng(step)
    rows = random.standard_normal((ROWS, 5)).astype(np.float32), random.standard_normal((ROWS, 3)).astype(np.float32)
    return [genesis.tensor(part) for part in rows]


def share(tensor):
    rows = len(tensor) // size()
    return tensor[rank() * rows : (rank() + 1) * rows]


def trained(model, parts=share, compiled=False, steps=STEPS):
    optimizer = genesis.optim.AdamW(model.parameters(), lr=0.05)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run_step = genesis.compile(step) if compiled else step
    for number in range(steps):
        run_step(*map(parts, batch(number % 4)))
    return run_step


def close(model, alone, bound=1e-5):
    for (name, a), (_, b) in zip(model.named_parameters(), alone.named_parameters(), strict=True):
        a, b = a.detach().numpy(), b.detach().numpy()
        assert np.abs(a - b).max() <= bound * np.abs(b).max(), (name, np.abs(a - b).max())


def same_bits_on_all_ranks(model):
    digest = hashlib.sha256(b"".join([p.detach().numpy().tobytes() for p in model.parameters()])).hexdigest()
    found = [None] * size()
    dist.all_gather_object(found, digest)
    assert len({*found}) == 1


def check_training_is_that_of_the_whole_batch():
    alone = made()
    trained(alone, parts=lambda x: x)
    for cap in (25, 1e-4):  # one bucket, and several
        model = dist.DistributedDataParallel(made(seed=3 + rank()), bucket_cap_mb=cap)  # rank 0's parameters count
        trained(model)
        close(model, alone)
        same_bits_on_all_ranks(model)


def check_a_compiled_step_is_one_native_call():
    alone = made()
    trained(alone, parts=lambda x: x)
    model = dist.DistributedDataParallel(made())
    step = trained(model, compiled=True)
    close(model, alone)
    same_bits_on_all_ranks(model)
    before = genesis.debug.stats()["native_calls"]
    inputs = [share(x).clone() for x in batch(0)]
    for x in inputs:
        x.numpy()
    before = genesis.debug.stats()["native_calls"]
    for _ in range(5):
        step(*inputs)
    calls = genesis.debug.stats()["native_calls"] - before
    assert calls == 5, f"{calls} native calls in 5 steps"


def check_no_sync_accumulates_on_each_rank():
    model, alone = dist.DistributedDataParallel(made()), made()
    x, y = batch(0)
    mine, wanted = share(x), share(y)
    half = len(mine) // 2
    dist.barrier()  # the model has been given to all
    before = genesis.debug.stats()["collective_bytes"]
    with model.no_sync():
        nn.functional.mse_loss(model(mine[:half]), wanted[:half]).backward()
    own = model.module[0].weight.grad.numpy().copy()
    assert genesis.debug.stats()["collective_bytes"] == before
    nn.functional.mse_loss(alone(mine[:half]), wanted[:half]).backward()
    np.testing.assert_allclose(own, alone[0].weight.grad.numpy(), rtol=1e-5, atol=1e-6)
    nn.functional.mse_loss(model(mine[half:]), wanted[half:]).backward()
    model.module[0].weight.grad.numpy()
    assert genesis.debug.stats()["collective_bytes"] == before + sum([p.nbytes for p in model.parameters()])
    alone.zero_grad()
    (2 * nn.functional.mse_loss(alone(x), y)).backward()  # two means of halves
    for a, b in zip(model.parameters(), alone.parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5)


def check_a_compiled_micro_batch_is_averaged_outside_of_no_sync_alone():
    model = dist.DistributedDataParallel(nn.Sequential(nn.BatchNorm1d(1, affine=False), nn.Linear(1, 1)))
    rows = genesis.tensor([[-1.0], [1.0]])

    @genesis.compile
    def micro(weight):
        (model(rows) * weight).sum().backward()

    for step in range(4):
        model.zero_grad()
        for number in range(3):
            with model.no_sync() if number < 2 else contextlib.nullcontext():
                micro(genesis.full((2, 1), rank() + 1.0))
            bias = model.module[1].bias.grad.item()
            assert bias == (2.0 * (rank() + 1) * (number + 1) if number < 2 else 3.0 * (size() + 1)), (step, number, bias)


class Branches(nn.Module):
    """Ranks use parts of it: the first all do, the second rank 0 alone, the third nobody."""

    def __init__(self):
        super().__init__()
        genesis.manual_seed(1)
        self.all, self.some, self.none = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x):
        return self.all(x) + self.some(x) if rank() == 0 else self.all(x)


def check_unused_parameters():
    x = genesis.ones(3, 2)
    model = dist.DistributedDataParallel(Branches(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        model(x).sum().backward()
    assert model.module.all.bias.grad.tolist() == [3.0]
    assert np.allclose(model.module.some.bias.grad.numpy(), 3.0 / size()) and model.module.none.bias.grad is None
    strict = dist.DistributedDataParallel(Branches())
    raises(RuntimeError, "want find_unused_parameters=True", strict(x).sum().backward)


def check_models_that_differ_are_named():
    model = made(width=8 + (rank() == 1))
    raises(RuntimeError, "rank 1 has ('0.weight', 'float32', (9, 5))", dist.DistributedDataParallel, model)
    raises(RuntimeError, "no parameter that requires", dist.DistributedDataParallel, nn.Tanh())


def check_buffers_are_those_of_rank_0():
    model = dist.DistributedDataParallel(nn.BatchNorm1d(2))
    means = [model.module.running_mean.numpy().copy()]

    def forward(step):
        model(genesis.full((4, 2), float(rank() + step)) + genesis.arange(4.0)[:, None])
        means.append(model.module.running_mean.numpy().copy())

    def after(steps, start=0.0, of=0):
        for step in steps:
            start = 0.9 * start + 0.1 * (1.5 + step + of)
        return [start] * 2

    for step in range(3):
        forward(step)
    np.testing.assert_allclose(means[-1], after([2], after([0, 1])[0], rank()), rtol=1e-5)  # the last update is a rank's own
    with model.no_sync():  # the first forward takes rank 0's, for the one before was averaged; the others do not
        forward(3)
        forward(4)
    forward(5)
    np.testing.assert_allclose(means[-1], after([3, 4, 5], after([0, 1, 2])[0], rank()), rtol=1e-5)
    model.eval()
    with genesis.no_grad():
        for _ in range(1 + rank()):  # what is evaluated is rank 0's; later forwards take nothing
            forward(0)
    np.testing.assert_allclose(means[-1], after([*range(6)]), rtol=1e-5)
    assert next(iter(model.state_dict())) == "module.weight"


def check_buffers_stay_a_ranks_own():
    for given, is_own in (({"broadcast_buffers": False}, True), ({"forward_sync_buffers": False}, False)):
        norm = nn.BatchNorm1d(1)
        norm.running_mean.fill_(float(rank()))
        model = dist.DistributedDataParallel(norm, **given)
        start = rank() if is_own else 0.0
        for _ in range(2):
            model(genesis.tensor([[0.0], [10.0 * rank()]]))
        np.testing.assert_allclose(norm.running_mean.item(), 0.81 * start + 0.19 * 5 * rank(), rtol=1e-5)


def check_batch_norm_over_all_ranks():
    """Uneven batches, against one process with all rows: results, running statistics, gradients."""
    rows = [np.random.default_rng(k).standard_normal((k + 2, 3, 2)) for k in range(size())]
    weights = [np.random.default_rng(9 + k).standard_normal((k + 2, 3, 2)) for k in range(size())]
    alone = nn.BatchNorm1d(3, dtype=genesis.float64)
    x = genesis.tensor(np.concatenate(rows), requires_grad=True)
    wanted = alone(x)
    (wanted * genesis.tensor(np.concatenate(weights))).sum().backward()
    shared = dist.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3, dtype=genesis.float64)))
    own = genesis.tensor(rows[rank()], requires_grad=True)
    found = shared(own)
    (found * genesis.tensor(weights[rank()])).sum().backward()
    start = sum(len(part) for part in rows[: rank()])
    part = slice(start, start + len(rows[rank()]))
    np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy()[part], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(own.grad.numpy(), x.grad.numpy()[part], rtol=1e-9, atol=1e-9)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        np.testing.assert_allclose(getattr(shared[0], name).numpy(), getattr(alone, name).numpy(), rtol=1e-12)
    np.testing.assert_allclose(shared.eval()(own).detach().numpy(), alone.eval()(x).detach().numpy()[part], rtol=1e-10)


def check_samplers_share_out_the_data():
    found = [None] * size()
    dist.all_gather_object(found, [*DistributedSampler(range(6 * size()))])
    assert sorted([place for part in found for place in part]) == [*range(6 * size())] and {len(part) for part in found} == {6}


def check_gradients_that_are_asked_for_are_a_ranks_own():
    model = dist.DistributedDataParallel(made())
    loss = model(genesis.full((2, 5), float(rank()))).sum()
    (own,) = genesis.autograd.grad(loss, model.module[2].bias)
    assert own.tolist() == [2.0] * 3 and model.module[2].bias.grad is None
    (genesis.ones(2, requires_grad=True) * 2).sum().backward()  # has nothing to do with the model


if __name__ == "__main__":
    run(globals())
