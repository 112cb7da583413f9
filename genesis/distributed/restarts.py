"""Reruns a job when it fails.

    python -m genesis.distributed --restarts 3 mpiexec -n 4 python -m genesis.distributed script.py

The script should load its last checkpoint, if any. The environment variable GENESIS_RESTART is the number of restarts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

USAGE = "usage: python -m genesis.distributed --restarts N mpiexec -n RANKS python -m genesis.distributed SCRIPT [ARGUMENT ..]"


def supervise(arguments: Sequence[str]) -> NoReturn:
    """Run the command until it succeeds, with at most the given number of restarts; exit with its last status."""
    if len(arguments) < 2 or not arguments[0].isdecimal():
        sys.exit(USAGE)
    most, command = int(arguments[0]), arguments[1:]
    for restart in range(most + 1):
        status = _run(command, {**os.environ, "GENESIS_RESTART": str(restart)})
        if status == 0 or restart == most:
            break
        sys.stderr.write(f"the job ended with status {status}; it begins anew ({restart + 1} of {most})\n")
    sys.exit(status if status >= 0 else 128 - status)


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """The exit status of a command. An interrupt is passed on to it and does not count as a failure: this process then ends."""
    job = subprocess.Popen(command, env=environment)
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:  # not `wait`: it holds a lock that a handler cannot take
        job.send_signal(signal.SIGKILL if received else number)
        received.append(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        status = job.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        sys.exit(128 + received[0])
    return status
