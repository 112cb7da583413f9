"""Work that no interrupt cuts short."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time

import pytest

from genesis.runtime.uninterrupted import uninterrupted


def test_an_interrupt_waits_for_the_end_of_the_work():
    done = []

    def work() -> None:
        time.sleep(0.2)
        done.append(True)

    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.03)  # and again and again
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(work)
        assert done
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def test_errors_and_results_come_through():
    assert uninterrupted(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        uninterrupted(divmod, 7, 0)


def test_another_thread_does_the_work_itself():
    found = []
    thread = threading.Thread(target=lambda: found.append(uninterrupted(threading.get_ident)))
    thread.start()
    thread.join()
    assert found == [thread.ident]


def test_no_profiler_sees_the_work():
    seen = []

    def work():
        return [sys.getprofile(), min(3, 2)]

    def within():
        sys.setprofile(lambda frame, event, argument: seen.append(frame.f_code.co_name))
        found.append((uninterrupted(work), sys.getprofile() is not None))
        sys.setprofile(None)

    for call in (within, lambda: threading.Thread(target=within)):
        found = []
        if (thread := call()) is not None:
            thread.start()
            thread.join()
        assert found == [([None, 2], True)]
    assert seen and "work" not in seen


def test_an_interrupt_as_the_thread_starts_ends_it(monkeypatch):
    start, threads, called = _thread.start_new_thread, _thread._count(), []

    def interrupted(*arguments):
        start(*arguments)
        while _thread._count() == threads:
            time.sleep(0.001)
        raise KeyboardInterrupt

    monkeypatch.setattr(_thread, "start_new_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(called.append, 1)
    deadline = time.monotonic() + 10
    while _thread._count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _thread._count() <= threads and not called
