"""What ranks compute, send and hold, beside one process: counted, not timed. A part of `benchmarks.distributed`.

The bars: losses and parameters of 20 steps within 1e-5 of those of one process with the whole batch, one native call a replay,
2(p-1)n bytes on the wire within 3%, 1/p of the memory and 5%.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

import genesis
import genesis.distributed as dist
from genesis import nn
from genesis.distributed.nn import functional

WIDTHS, ROWS, STEPS = (256, 512, 512, 10), 192, 20  # rows of all ranks, which 2, 3 and 4 divide


def tell(line: str) -> None:
    """Print a line, on rank 0."""
    if dist.get_rank() == 0:
        print(line, flush=True)


def network(lib: Any) -> Any:
    """The MLP of a library."""
    layers = [layer for a, b in itertools.pairwise(WIDTHS) for layer in (lib.nn.Linear(a, b), lib.nn.ReLU())]
    return lib.nn.Sequential(*layers[:-1])


def agreement() -> None:
    """20 compiled steps of the first 2, 3, .. ranks beside one process with the whole batch."""
    alone = trained(0, 1, None) if dist.get_rank() == 0 else None
    for ranks in range(2, dist.get_world_size() + 1):
        group, place = dist.new_group([*range(ranks)]), dist.get_rank()
        if place < ranks:
            runs = [trained(place, ranks, group) for _ in range(2)]
            found: list[Any] = [None] * ranks
            dist.all_gather_object(found, [hashlib.sha256(run.parameters.tobytes()).hexdigest() for run in runs], group)
            if alone is not None:
                losses = np.abs(runs[0].losses / alone.losses - 1).max()
                parameters = np.abs(runs[0].parameters - alone.parameters).max() / np.abs(alone.parameters).max()
                bits = "equal" if len({digest for both in found for digest in both}) == 1 else "DIFFERENT"
                tell(f"{STEPS} steps of {ranks} ranks beside one process: losses {losses:.1e}, parameters {parameters:.1e}; "
                     f"{bits} bits on all ranks in two runs; {runs[0].native_calls:g} native calls a replay")
        dist.barrier()


class Run(NamedTuple):
    """What 20 steps have come to: losses of the whole batch, parameters, and native calls in each step that follows."""

    losses: np.ndarray
    parameters: np.ndarray
    native_calls: float


def trained(place: int, ranks: int, group: Any) -> Run:
    """Train on a rank's part of the batches, within a group or alone."""
    genesis.manual_seed(0)
    model = network(genesis)
    if group is not None:
        model = dist.DistributedDataParallel(model, process_group=group)
    optimizer = genesis.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    @genesis.compile
    def step(x: genesis.Tensor, y: genesis.Tensor) -> genesis.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        return loss if group is None else functional.all_reduce(loss, "avg", group)

    losses = np.array([step(*batch(number, place, ranks)).item() for number in range(STEPS)])
    parameters = np.concatenate([parameter.detach().numpy().ravel().copy() for parameter in model.parameters()])
    given = batch(0, place, ranks)
    step(*given)
    before = genesis.debug.stats()["native_calls"]
    for _ in range(5):
        step(*given)
    return Run(losses, parameters, (genesis.debug.stats()["native_calls"] - before) / 5)


def batch(number: int, place: int, ranks: int) -> list[genesis.Tensor]:
    """A rank's part of a batch."""
    random = np.random.default_rng(number)
    rows = random.standard_normal((ROWS, WIDTHS[0])).astype(np.float32), random.integers(0, WIDTHS[-1], ROWS)
    mine = slice(place * ROWS // ranks, (place + 1) * ROWS // ranks)
    return [genesis.tensor(part[mine].copy()) for part in rows]


def accumulation() -> None:
    """The bytes of collectives in a step of 4 micro-batches, averaged after each and, by no_sync, after the last alone."""
    model = dist.DistributedDataParallel(network(genesis))
    x = genesis.randn(64, WIDTHS[0])
    dist.barrier()  # the model has been given to all
    found = []
    for skipped in (0, 3):
        before = genesis.debug.stats()["collective_bytes"]
        for number in range(4):
            with model.no_sync() if number < skipped else contextlib.nullcontext():
                model(x).sum().backward()
        for parameter in model.parameters():
            parameter.grad.numpy()
        found.append(genesis.debug.stats()["collective_bytes"] - before)
    tell(f"bytes of 4 micro-batches: {found[0]}, with no_sync {found[1]} ({found[1] / found[0]:.2f})")


def wire(nbytes: int, calls: int) -> None:
    """What goes over `lo` in an all_reduce, where nothing else does: beside 2(p-1)n."""
    if os.environ.get("MPIR_CVAR_NOLOCAL") != "1":
        return
    program = genesis.compile(lambda x: functional.all_reduce(x))
    x = genesis.ones(nbytes // 4)
    for _ in range(3):
        program(x)
    MPI.COMM_WORLD.Barrier()
    before = sent_over_lo()
    MPI.COMM_WORLD.Barrier()
    for _ in range(calls):
        program(x)
    MPI.COMM_WORLD.Barrier()
    sent, model = (sent_over_lo() - before) / calls, 2 * (dist.get_world_size() - 1) * nbytes
    tell(f"bytes on the wire of an all_reduce of {nbytes} bytes: {sent:.0f} ({sent / model:.4f} of 2(p-1)n)")


def sent_over_lo() -> int:
    """The bytes that went out by `lo` in this namespace."""
    [line] = [line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:")]
    return int(line.split(":")[1].split()[8])


def memory() -> None:
    """What a rank holds between steps of Adam, of ZeRO-1 and of FSDP, beside what one process does."""
    ranks = dist.get_world_size()
    whole = held_bytes(nn.Sequential, genesis.optim.Adam)
    zero = held_bytes(nn.Sequential, dist.optim.ZeroRedundancyOptimizer, genesis.optim.Adam)
    rows = held_bytes(lambda *layers: nn.Sequential(*map(dist.fsdp.fully_shard, layers)), genesis.optim.Adam)
    most = [MPI.COMM_WORLD.allreduce(part, MPI.MAX) for part in (zero[1] / whole[1], rows[0] / whole[0], rows[1] / whole[1])]
    tell(f"the most that one of {ranks} ranks holds, of {1 / ranks:.3f}: ZeRO-1's optimizer {most[0]:.3f}, FSDP's parameters "
         f"{most[1]:.3f}, its optimizer {most[2]:.3f}")


def held_bytes(wrap: Callable[..., nn.Module], kind: Any, *inner: Any) -> tuple[int, int]:
    """The memory that the parameters of 12 layers take, and what an optimizer has added after two steps, without gradients."""
    genesis.manual_seed(0)
    start = held()
    model = wrap(*[nn.Linear(512, 768, bias=False) for _ in range(12)])  # of sizes that are lent unrounded
    parameters = held() - start
    optimizer = kind(model.parameters(), *inner, lr=1e-3)
    for _ in range(2):
        sum([(layer(genesis.ones(2, 512)) ** 2).mean() for layer in model]).backward()
        optimizer.step()
        optimizer.zero_grad()
    return parameters, held() - start - parameters


def held() -> int:
    """The bytes of all tensors that somebody may still use, when what is pending has been computed."""
    dist.barrier()
    gc.collect()
    return genesis.debug.memory().held
