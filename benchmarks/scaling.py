"""How a step of data-parallel training scales: measured on 1 to 8 ranks of this machine, modelled to 4096 machines.

    unshare -n
    ip link set lo up; tc qdisc add dev lo root tbf rate 2gbit burst 1mb latency 200ms
    export MPIR_CVAR_CH4_NETMOD=ofi FI_PROVIDER=tcp MPIR_CVAR_NOLOCAL=1
    mpiexec -n 8 python -m genesis.distributed -m benchmarks.scaling

Measured is an all_reduce of the gradients in one call, in a compiled program, among the first p ranks; the others sleep. In the
namespace all ranks send through one link, 2(p-1)n bytes in sum. Computing is not measured, for eight ranks have not eight
processors here: a step computes for `COMPUTING` seconds in `BUCKETS` parts, and each part's gradients are sent while the next
is computed: the efficiency follows from the measured all_reduce by that model.

Modelled is a ring of machines with a link each: 2(p-1) messages of n/p bytes, each taking alpha + beta bytes.
"""

from __future__ import annotations

import os
import time

from mpi4py import MPI

import genesis
import genesis.distributed as dist
from genesis.distributed.nn import functional

NBYTES, COMPUTING, BUCKETS = 16_000_000, 0.080, 4
LINKS = {"2 Gbit/s": (50e-6, 8 / 2e9), "100 Gbit/s": (5e-6, 8 / 100e9)}  # seconds a message, and a byte: alpha and beta
ROUNDS = 3


def efficiency(reduction: float) -> float:
    """Of a step whose gradients take so many seconds to add: the time of computing over that of computing and sending."""
    compute, send = COMPUTING / BUCKETS, reduction / BUCKETS
    return COMPUTING / (compute + (BUCKETS - 1) * max(compute, send) + send)


def shared_link(ranks: int) -> float:
    """Seconds of an all_reduce of ranks that send through one link of 2 Gbit/s."""
    alpha, beta = LINKS["2 Gbit/s"]
    return 2 * (ranks - 1) * (alpha + beta * NBYTES)


def own_links(ranks: int, alpha: float, beta: float) -> float:
    """Seconds of an all_reduce around a ring of machines."""
    return 2 * (ranks - 1) * (alpha + beta * NBYTES / ranks)


def rest() -> None:
    """A barrier that leaves the processors to others."""
    request = MPI.COMM_WORLD.Ibarrier()
    while not request.Test():
        time.sleep(0.002)


def measured(ranks: int) -> float:
    """Seconds of an all_reduce among the first `ranks`, the least of some rounds; the slowest of them."""
    group = dist.new_group([*range(ranks)])
    takes_part = dist.get_rank() < ranks
    x = genesis.ones(NBYTES // 4)
    program = genesis.compile(lambda x: functional.all_reduce(x, group=group))
    for _ in range(2 if takes_part else 0):
        program(x)
    times = []
    for _ in range(ROUNDS):
        rest()
        start = time.perf_counter()
        if takes_part:
            program(x)
        times.append(time.perf_counter() - start if takes_part else 0.0)
    rest()
    return min(MPI.COMM_WORLD.allreduce(times[k], MPI.MAX) for k in range(ROUNDS))


def table() -> None:
    """Print what was measured on as many ranks as there are, and what the model says of more, on rank 0."""
    in_namespace = os.environ.get("MPIR_CVAR_NOLOCAL") == "1"
    lines = ["| ranks | all_reduce of 16 MB, ms | efficiency of a step | |", "|---|---|---|---|"]
    for ranks in range(1, dist.get_world_size() + 1):
        found = measured(ranks) if ranks > 1 else 0.0
        said = "measured, one link of 2 Gbit/s for all" if in_namespace else "measured, shared memory"
        if in_namespace and ranks > 1:
            said += f": {found / shared_link(ranks):.2f} of the model"
        lines.append(f"| {ranks} | {1e3 * found:.1f} | {efficiency(found):.2f} | {said} |")
    for name, link in LINKS.items():
        for ranks in (2, 8, 64, 512, 4096):
            found = own_links(ranks, *link)
            lines.append(f"| {ranks} | {1e3 * found:.1f} | {efficiency(found):.2f} | modelled, links of {name} |")
    if dist.get_rank() == 0:
        print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    dist.init_process_group(timeout=60)
    table()
    dist.destroy_process_group()
