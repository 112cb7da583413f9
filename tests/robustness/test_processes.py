"""Forked and spawned processes compute, and the parent goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import genesis
from genesis.runtime import fork
from genesis.tracing.trace import LOCK

from .training import losses

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def in_fork(check: Callable[[], Any]) -> int:
    """The exit status of a forked child that calls `check`; one that hangs is ended."""
    child = os.fork()
    if not child:
        status = 1
        try:
            signal.alarm(30)
            check()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def test_a_fork_takes_the_outermost_lock_first():
    """Who holds the trace's lock goes on to take the others; a fork that held one of them would wait for it for seconds."""
    assert fork._guarded[0].lock is LOCK


def test_an_interrupt_while_a_fork_waits_for_a_lock_leaves_no_lock_taken(monkeypatch):
    """The fork has taken the first lock, and waits for the second, which another thread holds."""
    monkeypatch.setattr(fork, "_guarded", [])
    first, second = fork.fork_safe_lock(), fork.fork_safe_lock()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with ThreadPoolExecutor(1) as other:
            other.submit(second.acquire).result()
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            with pytest.raises(KeyboardInterrupt):
                fork._before()
            fork._after_in_parent()
            assert other.submit(first.acquire, False).result()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_child_computes_what_was_pending_and_so_does_the_parent():
    expected = losses(1)
    pending = genesis.arange(10) * 2

    def check() -> None:
        assert pending.sum().item() == 90
        assert losses(1) == expected

    assert in_fork(check) == 0
    assert pending.sum().item() == 90
    assert losses(1) == expected


def test_a_child_may_be_forked_while_threads_trace_and_flush():
    expected = losses(1, steps=2)
    over = threading.Event()

    def work(seed: int) -> None:
        while not over.is_set():
            losses(seed, steps=2)

    def check() -> None:
        assert pending.sum().item() == 90
        assert losses(1, steps=2) == expected

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            pending = genesis.arange(10) * 2
            assert in_fork(check) == 0
            assert pending.sum().item() == 90
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes_trains(method):
    expected = [losses(seed) for seed in range(3)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(losses, range(3)).get(60) == expected  # a worker that dies takes its task with it


SECOND = """
import sys
from tests.robustness.training import losses
import genesis
print(losses(0)[-1], genesis.debug.stats()["kernels_compiled"], "numba" in sys.modules)
"""


def test_a_second_process_compiles_nothing_and_does_without_numba(tmp_path):
    def run() -> list[str]:
        environment = {**os.environ, "GENESIS_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", SECOND], env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    first, second = run(), run()
    assert int(first[1]) > 0 and first[2] == "True"
    assert second == [first[0], "0", "False"]
