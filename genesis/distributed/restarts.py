"""Runs a job anew when it fails.

    python -m genesis.distributed --restarts 3 mpiexec -n 4 python -m genesis.distributed script.py

The script loads its last checkpoint, where there is one. The environment variable GENESIS_RESTART says how often it began anew.
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
    """Run the command behind the number until it succeeds, at most so many times more; leave with its last exit status."""
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
    """The exit status of a command. An interrupt goes on to it, and is no failure of the job's: this process ends after it."""
    job = subprocess.Popen(command, env=environment)
    received: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:  # `wait` holds a lock, which a handler cannot wait for
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
