"""LLVM IR to callable addresses: compiled here and by worker processes, linked by llvmlite.

LLVM compiles one module at a time in a process. The first compile starts a worker process, which imports Numba while this one
does; larger batches start more. They serve later batches too, and end when they are idle or this process is gone. They are
optional: nothing waits for a starting worker, and what a worker fails to deliver is compiled here.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from genesis.runtime import numba_compiler
from genesis.runtime.deferred import deferred, import_whole
from genesis.runtime.fork import fork_safe, fork_safe_lock
from genesis.runtime.number_of_threads import SHARING
from genesis.runtime.system import CAN_POLL_PIPES, at_fork, available_processors
from genesis.runtime.uninterrupted import uninterrupted

if TYPE_CHECKING:
    from genesis.runtime.compile_worker import CompileWorker
else:
    CompileWorker = deferred("genesis.runtime.compile_worker", "CompileWorker")


@functools.cache
def _llvm() -> Any:
    """LLVM's library, loaded when the first code is to be linked: it is the largest file that a process reads.

    Its lock, which each of its calls takes, is one of ours: a handler that comes within such a call may have to link, too.
    """
    binding = import_whole("llvmlite.binding")
    fork_safe(binding.ffi.lib._lock._lock)
    return binding


# The first worker alone takes an MLP's first step with an empty cache from 0.64 to 0.40 s, a GPT's from 2.5 to 1.6. For a
# single kernel it would cost 0.5 s of processor time and gain nothing.
MODULES_PER_NEW_WORKER = 18  # measured: a worker starts in the time of 18 small compiles
FEW = 3  # modules that do not repay a process
MOST_WORKERS = 7


_workers: list[CompileWorker] = []
_started = [0]  # workers of this process
_compiling_here = fork_safe_lock()


def _compile_here(symbol: str, llvm_ir: str) -> bytes:
    with _compiling_here:  # module by module: a fork must find LLVM at rest, but need not wait for the whole batch
        return numba_compiler.compile_module(symbol, llvm_ir)


def _forget_workers() -> None:
    while _workers:  # their pipes close, which ends them
        _workers.pop().forget()


at_fork(after_in_child=_forget_workers)
atexit.register(_forget_workers)  # they end when they find the pipe closed


def _workers_for(modules: int) -> list[CompileWorker]:
    """The workers for this batch, as many as repay their start."""
    if not CAN_POLL_PIPES or not sys.executable or hasattr(sys, "frozen"):  # an embedded or frozen one does not run scripts
        return []
    try:
        worth = max(modules // MODULES_PER_NEW_WORKER, modules > FEW and not _started[0])
        chosen = os.environ.get("GENESIS_COMPILE_WORKERS", "")
        most = int(chosen) if chosen.isdecimal() else MOST_WORKERS
        wanted = min(worth, available_processors() // SHARING[0] - 1, most)
        while len(_workers) < wanted:
            _workers.append(CompileWorker())
            _started[0] += 1
    except OSError:  # no more processes: fewer workers, then
        pass
    return _workers[:]


def compile_modules(
    modules: Sequence[tuple[str, Callable[[], str]]], begin: Callable[[int], bool] = lambda index: True,
    finish: Callable[[int, bytes], None] = lambda index, object_code: None,
) -> list[bytes]:
    """The object code of each (symbol, function that writes its LLVM IR). One thread at a time may call.

    Args:
        begin: called with the number of each module just before it is compiled; if it returns False, the result is b"". It is
            called again for modules that a worker has handed back.
        finish: called with the number and the object code of each module when it is done. Any thread may call both.

    Raises RuntimeError if a text is not valid LLVM IR.
    """
    batch = _Batch(modules, begin, finish)
    workers = _workers_for(len(modules)) if modules else []
    try:
        batch.compile(workers)
    except BaseException:
        batch.waiting.clear()
        raise
    finally:
        for thread in batch.threads:
            thread.join()
    batch.compile([])  # what failing workers handed back
    return batch.objects


class _Batch:
    """Modules to compile: this process and its workers each take the next one.

    Python emits the next text while LLVM, which releases the GIL, compiles the previous ones.
    """

    def __init__(
        self, modules: Sequence[tuple[str, Callable[[], str]]], begin: Callable[[int], bool],
        finish: Callable[[int, bytes], None],
    ) -> None:
        self.modules, self.begin, self.finish = modules, begin, finish
        self.objects = [b""] * len(modules)
        self.waiting = deque(range(len(modules)))
        self.threads: list[threading.Thread] = []  # one for each worker

    def compile(self, workers: list[CompileWorker]) -> None:
        """Compile modules here, and by each of the workers once it is ready."""
        while self.waiting:
            for worker in [w for w in workers if w.is_ready][: len(self.waiting) - 1]:
                workers.remove(worker)
                self.threads.append(threading.Thread(target=self._delegate, args=(worker,)))
                self.threads[-1].start()
            self._take(_compile_here)

    def _delegate(self, worker: CompileWorker) -> None:
        try:
            while self.waiting:
                self._take(worker.compile)
        except Exception:  # the worker is gone, or the text invalid: the module is compiled here, where the error is raised
            _workers.remove(worker)
            worker.close()

    def _take(self, compile_module: Callable[[str, str], bytes]) -> None:
        try:
            index = self.waiting.popleft()
        except IndexError:  # another thread took it
            return
        try:
            if self.begin(index):
                symbol, llvm_ir = self.modules[index]
                self.objects[index] = compile_module(symbol, llvm_ir())
                self.finish(index, self.objects[index])
        except BaseException:
            self.waiting.append(index)
            raise


class _Linker:
    """An engine, and the symbols that it has: one definition each."""

    def __init__(self) -> None:
        llvm = _llvm()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self.symbols: set[str] = set()
        self.files: list[Any] = []  # kept, for a finalizer would swallow an interrupt; the engine has taken what they held
        self.guard = llvm.ffi.lib._lock._lock
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # immortal: parked threads run its code until the process ends


_lock = fork_safe_lock()
_linker: _Linker | None = None


def target() -> tuple[str, str, str]:
    """(triple, processor, features) of the machine code made and loaded here.

    Raises ValueError if $GENESIS_TARGET is none of the levels of x86-64.
    """
    llvm = _llvm()
    level, triple = os.environ.get("GENESIS_TARGET"), llvm.get_process_triple()
    if level is None:
        return triple, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    if level not in numba_compiler.LEVELS:
        raise ValueError(f"GENESIS_TARGET: {level!r}; want one of {', '.join(numba_compiler.LEVELS)}")
    return triple, level, numba_compiler.LEVELS[level]


def load(object_code: bytes, symbol: str) -> int:
    """Link `object_code` into the process and return the address of `symbol`. It stays there as long as the process.

    Raises RuntimeError if the object does not define the symbol.
    """
    global _linker
    with _lock:
        linker = _linker
        if linker is None or symbol in linker.symbols:
            linker = uninterrupted(_Linker)
        _linker = None  # an interrupt may leave it with half of a symbol: then the next load makes another
        depth = _depth(linker.guard)
        try:
            linker.files.append(_llvm().ObjectFileRef.from_data(object_code))
            linker.engine.add_object_file(linker.files[-1])
            linker.engine.finalize_object()
            address: int = linker.engine.get_function_address(symbol)
        finally:
            while _depth(linker.guard) > depth:  # an interrupt within llvmlite's `__enter__` left it taken
                linker.guard.release()
        if not address:
            raise RuntimeError(f"load: the object code does not define {symbol}")
        linker.symbols.add(symbol)
        _linker = linker
        return address


def _depth(lock: Any) -> int:
    """The number of times that this thread has taken a reentrant lock."""
    if not lock._is_owned():
        return 0
    state = lock._release_save()
    lock._acquire_restore(state)
    return int(state[0])
