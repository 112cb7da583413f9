"""`torchrun`: `python -m genesis.as_torch -m torch.distributed.run --nproc-per-node 2 script.py` starts ranks of this machine.

They meet at an address, as `init_process_group` says. Where one fails, the others are ended. Each of several machines starts
its own, with `--nnodes`, `--node-rank` and one `--master-addr` and `--master-port` for all.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from genesis.ir.annotations import AnyFunction
from genesis.runtime.system import available_processors

_GRACE = 3.0  # seconds for other ranks to say where they wait for one that failed
_INTERVAL = 0.05  # seconds between looks
_OPTIONS: dict[str, dict[str, Any]] = {  # by names of which PyTorch reads each with dashes and with underscores
    "nnodes": {"default": "1"}, "nproc-per-node": {"default": "1"}, "node-rank": {"type": int},
    "master-addr": {}, "master-port": {}, "rdzv-endpoint": {"default": ""}, "rdzv-id": {"default": "none"},
    "max-restarts": {"type": int, "default": 0},
    **{name: {"action": "store_true"} for name in ("standalone", "no-python", "use-env")},
}
_IGNORED = (  # they change nothing that ranks see
    "rdzv-backend", "rdzv-conf", "monitor-interval", "start-method", "role", "log-dir", "redirects", "tee", "local-addr",
    "local-ranks-filter", "logs-specs")


def record(fn: AnyFunction, error_handler: object = None) -> AnyFunction:
    """The main function unchanged: uncaught exceptions are printed with the rank in any case."""
    return fn


def run(arguments: list[str]) -> int:
    """Start a script's ranks on this machine, and wait for them; the status to end with."""
    asked = _parser().parse_args(arguments)
    count = _count(asked.nproc_per_node)
    most = asked.nnodes.rpartition(":")[2]
    if not most.isdecimal() or not int(most):
        raise SystemExit(f"torch.distributed.run: --nnodes is {asked.nnodes!r}; want a number of machines, or LEAST:MOST")
    machines = int(most)
    if machines > 1 and asked.node_rank is None:
        raise SystemExit("torch.distributed.run: --node-rank is missing; want 0 to nnodes - 1, another one on each machine")
    first, _, port = asked.rdzv_endpoint.partition(":")
    address = asked.master_addr or (first if machines > 1 and first else "127.0.0.1")
    port = asked.master_port or (port if machines > 1 else "") or ("29500" if machines > 1 else str(_free_port()))
    command = [] if asked.no_python else [sys.executable, "-m", "genesis.as_torch", *["-m"] * asked.module]
    for attempt in range(asked.max_restarts + 1):
        shared = {
            "WORLD_SIZE": machines * count, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": asked.node_rank or 0,
            "GROUP_WORLD_SIZE": machines, "ROLE_WORLD_SIZE": machines * count, "MASTER_ADDR": address, "MASTER_PORT": port,
            "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": asked.max_restarts,
            "TORCHELASTIC_RUN_ID": asked.rdzv_id,
        }
        ranks = []
        for local_rank in range(count):
            rank = (asked.node_rank or 0) * count + local_rank
            own = shared | {"RANK": rank, "ROLE_RANK": rank, "LOCAL_RANK": local_rank}
            environment = os.environ | {name: str(value) for name, value in own.items()}
            ranks.append(subprocess.Popen([*command, asked.script, *asked.arguments], env=environment))
        status = _ended(ranks)
        if not status:
            return 0
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("torch.distributed.run", description=__doc__)
    for name, how in _OPTIONS.items():
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", **how)
    for name in _IGNORED:
        parser.add_argument(f"--{name}", f"--{name.replace('-', '_')}", help="ignored")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module's name")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _count(said: str) -> int:
    """The number of ranks: as given, or one for each processor. Ranks have their own GPUs only if the number is given."""
    if said in ("cpu", "auto"):
        return available_processors()
    if not said.isdecimal() or not int(said):
        raise SystemExit(f"torch.distributed.run: --nproc-per-node {said}; want a number of ranks, 'cpu' or 'auto'")
    return int(said)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _ended(ranks: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all; once one has failed, a while for the others. The status of the first that did."""
    failed, end = 0, float("inf")
    try:
        while any(rank.poll() is None for rank in ranks) and time.monotonic() < end:
            found = next((rank for rank in ranks if rank.returncode), None)
            if found is not None and not failed:
                failed, end = found.returncode, time.monotonic() + _GRACE
                how = f"was killed by {signal.Signals(-failed).name}" if failed < 0 else f"ended with status {failed}"
                sys.stderr.write(f"torch.distributed.run: local rank {ranks.index(found)} {how}\n")
            time.sleep(_INTERVAL)
    finally:
        for rank in ranks:
            rank.terminate()
        for rank in ranks:
            try:
                rank.wait(_GRACE)
            except subprocess.TimeoutExpired:
                rank.kill()
    failed = failed or next((rank.returncode for rank in ranks if rank.returncode), 0)
    return 128 - failed if failed < 0 else failed


COMMANDS = {"torch.distributed.run": run, "torch.distributed.launch": run}
