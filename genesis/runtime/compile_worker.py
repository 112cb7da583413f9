"""A process that compiles: its pipes, and its end."""

from __future__ import annotations

import atexit
import os
import select
import subprocess
import sys
from pathlib import Path

from genesis.runtime import numba_compiler
from genesis.runtime.numba_compiler import read_frame, write_frame
from genesis.runtime.system import at_fork


class CompileWorker:
    """A process that imports Numba, and then compiles one module at a time."""

    def __init__(self) -> None:
        program = str(Path(numba_compiler.__file__))
        self._process = subprocess.Popen(
            [sys.executable, "-P", program],  # -P: the names in this folder must hide no library's
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # keyboard interrupts must not reach the worker
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._greeted = False

    @property
    def is_ready(self) -> bool:
        """Whether a request would be answered soon, if only by an error."""
        return self._greeted or bool(select.select([self._answers], [], [], 0)[0])

    def compile(self, symbol: str, llvm_ir: str) -> bytes:
        """The object code. Raises OSError or EOFError if the worker is gone or failed."""
        if not self._greeted:
            read_frame(self._answers)
            self._greeted = True
        write_frame(self._requests, symbol.encode(), llvm_ir.encode())
        if not (object_code := read_frame(self._answers)):
            raise OSError(f"the worker could not compile {symbol}")
        return object_code

    def close(self) -> None:
        """Let the worker end. It may still work on its last request, so it is reaped later."""
        self._requests.close()
        self._answers.close()
        _ending[:] = [process for process in (*_ending, self._process) if process.poll() is None]

    def forget(self) -> None:
        """Drop this process's ends of the pipes without reaping the worker, which may be the parent's."""
        self._process.returncode = 0
        self.close()


_ending: list[subprocess.Popen[bytes]] = []


def _reap_no_more() -> None:
    """Those that are ending are not waited for, and no one warns of them."""
    for process in _ending:
        process.returncode = 0


at_fork(after_in_child=_reap_no_more)
atexit.register(_reap_no_more)
