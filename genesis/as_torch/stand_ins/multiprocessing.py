"""`torch.multiprocessing`: Python's, and `spawn`."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from genesis.as_torch.stand_ins.settings import always, nothing

set_sharing_strategy = nothing
get_sharing_strategy = always("file_descriptor")  # how processes share tensors after `share_memory_`; others are copied


def get_all_sharing_strategies() -> set[str]:
    """The names that `set_sharing_strategy` accepts."""
    return {"file_system", "file_descriptor"}


class ProcessException(Exception):
    """A process of `spawn` failed."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A process of `spawn` raised an error; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process of `spawn` ended by a signal or with a code other than 0."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int | None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


class ProcessContext:
    """The processes of `spawn`."""

    def __init__(self, processes: list[Any], errors: list[Any]) -> None:
        self.processes, self._errors = processes, errors

    def pids(self) -> list[int]:
        """The process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for all; returns whether they have ended. An error of one is raised here, and the others are terminated."""
        end = None if timeout is None else time.monotonic() + timeout
        while any(process.is_alive() for process in self.processes):
            if any(process.exitcode not in (None, 0) for process in self.processes):
                break
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(0.01)
        failed = next((n for n, process in enumerate(self.processes) if process.exitcode not in (None, 0)), None)
        if failed is None:
            return True
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        process, errors = self.processes[failed], self._errors[failed]
        if not errors.empty():
            raise ProcessRaisedException(
                f"\n\n-- Process {failed} terminated with the following error:\n{errors.get()}", failed, process.pid)
        raise ProcessExitedException(
            f"process {failed} terminated with exit code {process.exitcode}", failed, process.pid, process.exitcode)


SpawnContext = ProcessContext


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], errors: Any) -> None:
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent has been interrupted too, and says so
    except Exception:  # the parent raises it, with these lines
        errors.put(traceback.format_exc())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # at once: other ranks may wait for this one, and it would wait for them


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes; waits for them with `join`, otherwise returns their ProcessContext."""
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        errors.append(context.SimpleQueue())
        process = context.Process(target=_run, args=(fn, i, args, errors[-1]), daemon=daemon)
        process.start()
        processes.append(process)
    made = ProcessContext(processes, errors)
    if not join:
        return made
    made.join()
    return None


spawn = start_processes
