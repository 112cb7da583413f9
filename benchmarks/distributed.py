"""Ranks beside MPI itself and beside PyTorch's DistributedDataParallel on Gloo:

    mpiexec -n 2 python -m genesis.distributed -m benchmarks.distributed

In a namespace of its own (`unshare -n`) whose `lo` is made a link of 2 Gbit/s by `tc qdisc add dev lo root tbf rate 2gbit burst
1mb latency 200ms`, MPICH needs `MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp MPIR_CVAR_NOLOCAL=1`.

Interleaved rounds; the least of each. On rank 0 it prints microseconds a call, milliseconds a step, and ratios. In such a
namespace it prints the bytes on the wire too, beside the 2(p-1)n that an all_reduce of n bytes over p ranks sends at least.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from mpi4py import MPI

import genesis
import genesis.distributed as dist
from benchmarks import ranks, scaling
from benchmarks.ranks import WIDTHS, network, tell
from genesis import nn
from genesis.distributed.nn import functional

ROUNDS = 7
ROWS = 64


def least(contestants: dict[str, Callable[[], object]], calls: int) -> dict[str, float]:
    """Seconds of a call of each, the least of interleaved rounds."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, call in contestants.items():
            MPI.COMM_WORLD.Barrier()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            times[name].append((time.perf_counter() - start) / calls)
    return {name: min(found[1:]) for name, found in times.items()}


def show(title: str, found: dict[str, float], of: str) -> None:
    told = ", ".join(f"{name} {1e6 * seconds:.1f} us ({seconds / found[of]:.2f})" for name, seconds in found.items())
    tell(f"{title}: {told}")


def reductions(nbytes: int, calls: int) -> None:
    """An all_reduce in a compiled program beside MPI's, and beside the same program without it."""
    count = nbytes // 4
    here, there = np.ones(count, np.float32), np.zeros(count, np.float32)
    x = genesis.ones(count)
    program = genesis.compile(lambda x: functional.all_reduce(x, "max"))
    nothing = genesis.compile(lambda x: x + 1)
    found = least({
        "MPI": lambda: MPI.COMM_WORLD.Allreduce(here, there, MPI.MAX), "genesis": lambda: program(x),
        "no all_reduce": lambda: nothing(x),
    }, calls)
    show(f"all_reduce of {nbytes} bytes", found, "MPI")
    tell(f"  its launch over raw MPI: {1e6 * (found['genesis'] - found['no all_reduce'] - found['MPI']):.1f} us")


def alone() -> None:
    """A compiled step of a model on one rank, with DistributedDataParallel and without."""
    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    steps: dict[str, Callable[[], object]] = {}
    for name in ("none", "DistributedDataParallel"):
        genesis.manual_seed(0)
        model = network(genesis)
        wrapped = model if name == "none" else dist.DistributedDataParallel(model, process_group=groups[dist.get_rank()])
        steps[name] = step_of(genesis, wrapped)
    show("a step on a single rank", least(steps, 50), "none")


def training() -> None:
    """A step of Adam on an MLP: genesis compiled, PyTorch's DistributedDataParallel on Gloo."""
    rank, size = dist.get_rank(), dist.get_world_size()
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29411"}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
    torch.set_num_threads(genesis.get_num_threads())
    steps: dict[str, Callable[[], object]] = {}
    wrappers = torch.nn.parallel.DistributedDataParallel, dist.DistributedDataParallel
    for name, lib, wrap in zip(("PyTorch", "genesis"), (torch, genesis), wrappers, strict=True):
        steps[name] = step_of(lib, wrap(network(lib)))
    show(f"a step of {' '.join(map(str, WIDTHS))}, {ROWS} rows a rank", least(steps, 20), "PyTorch")
    torch.distributed.destroy_process_group()


def step_of(lib: Any, model: Any) -> Callable[[], object]:
    """A step of Adam on a batch; that of genesis is compiled."""
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-3)
    x, y = lib.randn(ROWS, WIDTHS[0]), lib.randint(0, WIDTHS[-1], (ROWS,))

    def step(x, y):
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = genesis.compile(step) if lib is genesis else step
    return lambda: run(x, y)


def overlap(rows: int) -> None:
    """A step whose gradients are averaged in buckets of 4 MB, beside the same step without that, and beside that alone."""
    model = dist.DistributedDataParallel(nn.Sequential(*[nn.Linear(1024, 1024, bias=False) for _ in range(4)]), bucket_cap_mb=4)
    optimizer = genesis.optim.SGD(model.parameters(), lr=1e-4)
    x = genesis.randn(rows, 1024)

    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    def alone(x):
        with model.no_sync():
            return step(x)

    def averages():
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        return parameter.grad[0, 0]

    steps = {name: genesis.compile(function) for name, function in (("step", step), ("without averages", alone))}
    found = least({
        "without averages": lambda: steps["without averages"](x).item(), "with": lambda: steps["step"](x).item(),
        "averages alone": lambda: averages().item(),
    }, 1)
    show(f"a step of 4 x 1024 x 1024, {rows} rows a rank", found, "without averages")
    model = pipelined(found["without averages"], found["averages alone"])
    tell(f"  of the pipeline model, {1e3 * model:.0f} ms: {found['with'] / model:.3f}")


def pipelined(computing: float, averaging: float) -> float:
    """Seconds of that step where each bucket is averaged from when it is complete, after the one before.

    Of its 11 products 4 are forward's; then come a weight's gradient and the cotangent for the layer below by turns.
    """
    end = 0.0
    for products in (5, 7, 9, 11):
        end = max(end, computing * products / 11) + averaging / 4
    return end


if __name__ == "__main__":
    dist.init_process_group(timeout=60)
    ranks.agreement()
    ranks.memory()
    ranks.accumulation()
    ranks.wire(16 << 20, 3)
    reductions(4096, 300)
    reductions(4 << 20, 20)
    reductions(64 << 20, 3)
    alone()
    training()
    overlap(384)  # a bucket takes longer to send than to compute
    overlap(1024)
    scaling.table()
    dist.destroy_process_group()
