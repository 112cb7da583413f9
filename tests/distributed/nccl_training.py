"""What is built on collectives, on simulated GPUs beside the CPU: data parallel training, shards, parts, pipelines."""

import numpy as np
from checks import raises
from nccl_ranks import PLAYED, mine, rank, size

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.pipelining import PipelineStage, Schedule1F1B
from genesis.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def trained(device, compiled, steps):
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
    losses = [run(x).item() for _ in range(steps)]
    assert not compiled or run.entries[0].replays >= 2, run.refusals
    return losses, [p.tolist() for p in model.parameters()]


def check_data_parallel_training():
    for compiled, count in ((False, 4), (True, 9)):  # the last are replayed, as graphs
        wanted = trained("cpu", False, count)
        PLAYED.taken()
        PLAYED.overlapped, captures = 0, PLAYED.captures
        losses, parameters = trained("cuda", compiled, count)
        np.testing.assert_allclose(losses, wanted[0], rtol=1e-5)
        for ours, theirs in zip(parameters, wanted[1], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        calls = PLAYED.taken()
        start, *steps = [calls[0], *[calls[1 + 2 * k : 3 + 2 * k] for k in range(len(calls) // 2)]]
        begun, replayed = [[f"AllReduce {n} float32 0 on 7" for n in (7, 6)], [f"replay AllReduce {n}" for n in (7, 6)]]
        assert start == "Broadcast 13 float32 0 on 7" and steps[0] == begun, calls
        assert replayed in steps or not compiled, calls
        captured = (PLAYED.captures - captures) // 2
        assert steps.count(begun) - captured + steps.count(replayed) == count and 2 * len(steps) + 1 == len(calls), calls
        assert PLAYED.overlapped >= count - 1  # the rest of backward goes on while the first bucket is summed, in graphs too


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
