"""Models whose layers are divided among ranks, against one process with the whole batch. Run by `test_collectives.py`."""

import numpy as np
from checks import raises, run

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

WIDTH, ROWS, COUNT = 16, 48, 6


def rank():
    return dist.get_rank()


def size():
    return dist.get_world_size()


def layers():
    """One for each rank."""
    genesis.manual_seed(5)
    return [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(size())]


def batch(number):
    random = np.random.default_rng(number)
    return [genesis.tensor(random.standard_normal((ROWS, WIDTH)).astype(np.float32)) for _ in range(2)]


def pipelined(kind, module=None, count=COUNT):
    stage = PipelineStage(module or layers()[rank()], rank(), size(), "cpu")
    return stage, kind(stage, count, nn.functional.mse_loss)


def step_of(schedule, x, y, **options):
    first = (x,) if rank() == 0 else ()
    return schedule.step(*first, **({"target": y} if rank() == size() - 1 else {}), **options)


def check_training_is_that_of_the_whole_batch():
    alone = nn.Sequential(*layers())
    whole = genesis.optim.Adam(alone.parameters(), lr=1e-2)
    wanted = []
    for number in range(4):
        x, y = batch(number)
        whole.zero_grad()
        output = alone(x)
        loss = nn.functional.mse_loss(output, y)
        loss.backward()
        whole.step()
        wanted.append((output.detach().numpy(), loss.item()))
    for kind, compiled in ((ScheduleGPipe, False), (Schedule1F1B, False), (Schedule1F1B, True)):
        stage, schedule = pipelined(kind)
        optimizer = genesis.optim.Adam(stage.submodule.parameters(), lr=1e-2)

        def step(x, y, schedule=schedule, optimizer=optimizer, compiled=compiled):
            optimizer.zero_grad()
            losses = []
            found = step_of(schedule, x, y, losses=None if compiled else losses)
            optimizer.step()
            return found, losses

        run_step = genesis.compile(step) if compiled else step
        for number, (output, loss) in enumerate(wanted):
            found, losses = run_step(*batch(number))
            if rank() == size() - 1:
                np.testing.assert_allclose(found.numpy(), output, rtol=1e-5, atol=1e-5)
                if not compiled:
                    np.testing.assert_allclose(np.mean([each.item() for each in losses]), loss, rtol=1e-5)
            else:
                assert found is None and not losses
        for p, q in zip(stage.submodule.parameters(), alone[rank()].parameters(), strict=True):
            difference = np.abs(p.detach().numpy() - q.detach().numpy()).max()
            assert difference <= 1e-5 * np.abs(q.detach().numpy()).max(), difference


def check_micro_batches_that_wait_for_backward():
    """With 1F1B as many as stages are left, however many there are; and so much memory."""
    for kind in (Schedule1F1B, ScheduleGPipe):
        most, memory = {}, {}
        for count in (3, 6, 12):
            seen, held = [], []
            stage, schedule = pipelined(kind, count=count)

            def look(module, inputs, output, stage=stage, seen=seen, held=held):
                seen.append(len(stage.live) + 1)
                held.append(genesis.debug.memory().held)

            stage.submodule.register_forward_hook(look)
            x, y = (genesis.tensor(each.numpy().repeat(count * 64, 0)) for each in batch(0))
            before = genesis.debug.memory().held
            step_of(schedule, x, y, return_outputs=False)
            most[count], memory[count] = max(seen), max(held) - before
        left = size() - rank()
        assert [*most.values()] == [min(count, left) if kind is Schedule1F1B else count for count in most], (kind, most)
        if kind is Schedule1F1B:
            assert memory[12] <= 1.2 * memory[6] + (1 << 16), memory


def check_stages_that_give_several_tensors():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(genesis.tensor(1.5 + rank()))

        def forward(self, x, count=None):
            count = genesis.zeros(x.shape[0], dtype=genesis.int64) if count is None else count
            result = x * self.scale
            return result.sum(1) + count if rank() == size() - 1 else (result, count + 1)

    for kind, count in ((ScheduleGPipe, 4), (Schedule1F1B, 4), (Schedule1F1B, 1)):
        stage = PipelineStage(Pair(), rank(), size())
        schedule = kind(stage, count, lambda output, target: (output * target).sum(), scale_grads=False)
        x, y = genesis.arange(32.0).reshape(8, 4), genesis.arange(8.0)
        found = step_of(schedule, x, y)
        product = np.prod([1.5 + k for k in range(size())])
        sums = product * x.numpy().sum(1)
        if rank() == size() - 1:
            np.testing.assert_allclose(found.numpy(), sums + size() - 1)
        np.testing.assert_allclose(stage.submodule.scale.grad.item(), (sums * y.numpy()).sum() / (1.5 + rank()), rtol=1e-5)


def check_without_gradients():
    stage, schedule = pipelined(Schedule1F1B)
    x, y = batch(0)
    losses = []
    found = schedule.eval(*([x] if rank() == 0 else []), **({"target": y, "losses": losses} if rank() == size() - 1 else {}))
    assert not stage.live and all(p.grad is None for p in stage.submodule.parameters())
    if rank() == size() - 1:
        wanted = nn.Sequential(*layers())(x)
        np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)
        assert len(losses) == COUNT and not found.requires_grad


def check_wrong_arguments():
    stage, schedule = pipelined(Schedule1F1B)
    x, y = batch(0)
    raises(ValueError, "want one for each rank", PipelineStage, stage.submodule, rank(), size() + 1)
    raises(ValueError, f"want {rank()}", PipelineStage, stage.submodule, rank() + 1, size())
    raises(ValueError, "want one at least", ScheduleGPipe, stage, 0)
    raises(TypeError, "want a PipelineStage", ScheduleGPipe, stage.submodule, 2)
    if rank() == 0:
        raises(ValueError, "(47, 16) in 6 micro-batches; want a multiple of 6 rows", schedule.step, x[1:])
        raises(ValueError, "has a target", schedule.step, x, target=y)
    else:
        raises(ValueError, "want the batch on the first stage alone", schedule.step, x)
    if rank() == size() - 1:
        raises(ValueError, "has no target", schedule.step)
    dist.barrier()
    step_of(schedule, x, y)
    if rank() == 0:
        raises(ValueError, "float32[4, 16]; want float32[8, 16]", schedule.step, x[:24])


if __name__ == "__main__":
    run(globals())
