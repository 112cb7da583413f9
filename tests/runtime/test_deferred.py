"""Functions whose modules are imported when they are first called."""

import calendar
import os
import signal
import subprocess
import sys
import threading
import time
from types import ModuleType

import pytest

from genesis.runtime.deferred import LazyNames, deferred

MODULE = """
import time
started.append(1)
time.sleep(0.2)
def double(x):
    return 2 * x
"""


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """The name of a module that takes a while to import, and what has one member for each import of it."""
    started: list[int] = []
    (tmp_path / "imported_slowly.py").write_text(MODULE.replace("started", "__import__('sys')._imported_slowly"))
    monkeypatch.setattr(sys, "_imported_slowly", started, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_slowly", raising=False)
    yield "imported_slowly", started
    sys.modules.pop("imported_slowly", None)


def test_it_is_the_function_of_the_module():
    isleap = deferred("calendar", "isleap")
    assert [isleap(year) for year in range(1890, 2010)] == [calendar.isleap(year) for year in range(1890, 2010)]
    assert isleap.__name__ == "isleap" and isleap.__module__ == "calendar"


def test_another_function_that_takes_its_place_is_called(monkeypatch):
    isleap = deferred("calendar", "isleap")
    monkeypatch.setattr(calendar, "isleap", lambda year: "another")
    assert isleap(2000) == "another"


def test_threads_that_call_it_at_once_import_one_module(slow):
    name, started = slow
    found: list[int] = []
    threads = [threading.Thread(target=lambda k=k: found.append(deferred(name, "double")(k))) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(found) == [0, 2, 4, 6, 8, 10, 12, 14] and started == [1]


def test_a_signal_handler_that_calls_it_meanwhile_finds_a_whole_module(slow):
    name, started = slow
    found: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: found.append(deferred(name, "double")(10)))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert deferred(name, "double")(3) == 6
        deadline = time.monotonic() + 10
        while not found and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found == [20] and started == [1]


def test_a_child_forked_meanwhile_finds_a_whole_module(slow):
    name, started = slow
    thread = threading.Thread(target=deferred(name, "double"), args=(1,))
    thread.start()
    while not started:
        time.sleep(0.01)
    if not (child := os.fork()):
        signal.alarm(20)
        os._exit(deferred(name, "double")(4) != 8)
    thread.join(20)
    assert os.waitpid(child, 0)[1] == 0 and started == [1]


def test_a_child_that_another_thread_forks_meanwhile_finds_a_whole_module(slow):
    name, started = slow
    found = []

    def fork():
        while not started:
            time.sleep(0.01)
        if not (child := os.fork()):
            signal.alarm(20)
            os._exit(deferred(name, "double")(4) != 8)
        found.append(os.waitpid(child, 0)[1])

    thread = threading.Thread(target=fork)
    thread.start()
    assert deferred(name, "double")(1) == 2
    thread.join(30)
    assert found == [0] and started == [1]


def test_an_import_that_fails_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "fails_at_first.py"
    file.write_text("raise OSError('not yet')")
    double = deferred("fails_at_first", "double")
    with pytest.raises(OSError, match="not yet"):
        double(1)
    file.write_text("def double(x):\n    return 2 * x  # and now it is there\n")
    try:
        assert double(4) == 8
    finally:
        sys.modules.pop("fails_at_first", None)


INTERRUPTED = """
import os, signal
os.kill(os.getpid(), signal.SIGUSR1)
def seven():
    return 7
"""


@pytest.mark.parametrize("lazily", [
    lambda module: deferred(module, "seven")(), lambda module: LazyNames("lazily", {module: "seven"})("seven")()])
def test_what_a_signal_handler_raises_comes_after_the_import(tmp_path, monkeypatch, lazily):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "lazily", ModuleType("lazily"))
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            lazily("interrupted")
        assert sys.modules["interrupted"].seven() == lazily("interrupted") == 7
    finally:
        signal.signal(signal.SIGUSR1, before)
        sys.modules.pop("interrupted", None)


RAISING = """
import signal, threading
import genesis
class Stop(Exception): pass
def stop(*_):
    global stopped
    if armed:
        stopped += 1
        raise Stop
armed, stopped = False, 0
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for package in (genesis, genesis.autograd, genesis.utils, genesis.onnx):
    table = package._LAZY if package is genesis else package.__getattr__
    for name in table._homes:
        found = False
        while not found:
            try:
                armed = True
                getattr(package, name)
                armed, found = False, True
            except Stop:
                armed = False
x = genesis.ones(3, requires_grad=True)
for _ in range(200):
    try:
        armed = True
        genesis.autograd.grad((x * 2).sum(), x)[0].tolist()
        armed = False
    except Stop:
        armed = False
signal.setitimer(signal.ITIMER_REAL, 0)
assert genesis.compile(lambda x: genesis.autograd.grad((x * x).sum(), x)[0])(x).tolist() == [2, 2, 2]
other = threading.Thread(target=__import__, args=("colorsys",), daemon=True)
other.start()
other.join(60)
assert not other.is_alive() and stopped > 5, stopped
"""


def test_signal_handlers_that_raise_leave_lazy_names_first_steps_and_the_imports_of_other_threads():
    subprocess.run([sys.executable, "-c", RAISING], check=True, timeout=120)


def test_what_is_imported_within_an_import_may_import_that(tmp_path):
    """In a thread of its own it would wait for ever."""
    outer = "from genesis.runtime.deferred import import_whole\nseven = import_whole('inner').seven\n"
    (tmp_path / "outer.py").write_text(outer)
    (tmp_path / "inner.py").write_text("import outer\nseven = 7\n")
    subprocess.run([sys.executable, "-c", "import outer; assert outer.seven == 7"], cwd=tmp_path, check=True, timeout=60)
