"""Compiling, here and in worker processes, and linking."""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import subprocess
import threading
import time
import warnings
from pathlib import Path

import llvmlite
import pytest

from genesis.runtime import machine_code
from genesis.runtime.machine_code import load, target
from tests.robustness import interrupts


def modules(count: int, name: str) -> list[tuple[str, str]]:
    return [
        (f"test_{name}_{i}", f"define i64 @test_{name}_{i}(i64 %x) {{\n  %y = add i64 %x, {i}\n  ret i64 %y\n}}\n")
        for i in range(count)
    ]


def compile_modules(batch: list[tuple[str, str]]) -> list[bytes]:
    return machine_code.compile_modules([(symbol, lambda text=text: text) for symbol, text in batch])


def results(batch: list[tuple[str, str]], objects: list[bytes]) -> list[int]:
    addresses = [load(code, symbol) for (symbol, _), code in zip(batch, objects, strict=True)]
    return [ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(100) for address in addresses]


@pytest.fixture
def eager_workers(monkeypatch):
    """A worker process even for a small batch, on any machine."""
    monkeypatch.setattr(machine_code, "MODULES_PER_NEW_WORKER", 2)
    monkeypatch.delenv("GENESIS_COMPILE_WORKERS", raising=False)
    monkeypatch.setattr(machine_code, "available_processors", lambda: 3)
    yield
    while machine_code._workers:
        machine_code._workers.pop().close()


def test_modules_compile_and_link():
    batch = modules(3, "link")
    assert results(batch, compile_modules(batch)) == [100, 101, 102]
    assert compile_modules([]) == []


def test_a_symbol_may_be_loaded_again_with_another_meaning():
    for value in (1, 2):
        batch = [("test_again", f"define i64 @test_again(i64 %x) {{\n  ret i64 {value}\n}}\n")]
        assert results(batch, compile_modules(batch)) == [value]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # llvmlite's, of what it has half made
def test_an_interrupted_load_leaves_llvm_to_other_threads_and_can_be_repeated(monkeypatch):
    monkeypatch.setattr(interrupts, "_PACKAGE", tuple(str(Path(m.__file__).parent) for m in (llvmlite, machine_code)))
    batch = modules(1, "interrupted")
    [code] = compile_modules(batch)
    found = []
    for moment in range(1, interrupts.moments_of(lambda: load(code, batch[0][0])) + 1):
        where = interrupts.interrupt(lambda: load(code, batch[0][0]), moment)
        other = threading.Thread(target=lambda: found.append(results(batch, [code])), daemon=True)
        other.start()
        other.join(20)
        assert where and found == [[100]] * moment, where
        assert results(batch, [code]) == [100], where
    assert len(found) > 20


def test_a_handler_links_wherever_it_has_interrupted_a_load(monkeypatch):
    monkeypatch.setattr(interrupts, "_PACKAGE", tuple(str(Path(m.__file__).parent) for m in (llvmlite, machine_code)))
    batch = modules(2, "within")
    codes = compile_modules(batch)
    faulthandler.dump_traceback_later(60, exit=True)  # a deadlock ends the process
    for moment in range(1, interrupts.moments_of(lambda: load(codes[0], batch[0][0])) + 1):
        found = []
        moments = interrupts.Moments(moment, handler=lambda found=found: found.extend(results(batch[1:], codes[1:])))
        moments.during(lambda found=found: found.extend(results(batch[:1], codes[:1])))
        assert sorted(found) == [100, 101], moments.where
    faulthandler.cancel_dump_traceback_later()


def test_a_missing_symbol_is_an_error():
    [(symbol, text)] = modules(1, "missing")
    [code] = compile_modules([(symbol, text)])
    with pytest.raises(RuntimeError, match="does not define test_nowhere"):
        load(code, "test_nowhere")


def test_the_target_names_this_machine():
    triple, processor, features = target()
    assert triple.count("-") >= 2 and processor and "+" in features


def test_worker_processes_share_the_work(eager_workers):
    batch = modules(40, "shared")
    assert results(batch, compile_modules(batch)) == list(range(100, 140))
    assert len(machine_code._workers) == 2
    batch = modules(6, "shared_again")
    assert results(batch, compile_modules(batch)) == list(range(100, 106))


def test_a_worker_answers_with_the_same_code(eager_workers):
    [(symbol, text)] = modules(1, "same")
    worker = machine_code.CompileWorker()
    assert worker.compile(symbol, text) == compile_modules([(symbol, text)])[0]
    with pytest.raises(OSError, match="could not compile"):
        worker.compile("broken", "define nonsense")
    assert worker.compile(symbol, text), "a failure is not the worker's end"
    worker.close()


def test_dead_workers_are_made_up_for(eager_workers, monkeypatch):
    first = modules(8, "before")
    compile_modules(first)
    for worker in machine_code._workers:
        worker._process.kill()
        worker._process.wait()
    compile_here, ends = machine_code._compile_here, time.monotonic() + 60

    def once_they_are_gone(symbol, llvm_ir):  # each is found dead by the module that it is given
        while any(worker._process.poll() for worker in machine_code._workers) and time.monotonic() < ends:
            time.sleep(0.001)
        return compile_here(symbol, llvm_ir)

    monkeypatch.setattr(machine_code, "_compile_here", once_they_are_gone)
    batch = modules(8, "after")
    assert results(batch, compile_modules(batch)) == list(range(100, 108))
    assert not any(worker._process.poll() for worker in machine_code._workers)


def test_the_environment_bounds_the_number_of_workers(eager_workers, monkeypatch):
    monkeypatch.setenv("GENESIS_COMPILE_WORKERS", "0")
    batch = modules(8, "bounded")
    assert results(batch, compile_modules(batch)) == list(range(100, 108)) and not machine_code._workers


def test_workers_that_cannot_start_are_done_without(eager_workers, monkeypatch):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    batch = modules(4, "alone")
    assert results(batch, compile_modules(batch)) == [100, 101, 102, 103]


def test_invalid_ir_raises_whoever_compiles_it(eager_workers):
    batch = modules(10, "invalid")
    batch[5] = ("broken", "define nonsense")
    with pytest.raises(RuntimeError, match="expected"):
        compile_modules(batch)


def test_workers_end_with_their_parent(eager_workers):
    compile_modules(modules(8, "orphan"))
    [process, *_] = [worker._process for worker in machine_code._workers]
    machine_code._workers[0].close()
    machine_code._workers.pop(0)
    assert process.wait(timeout=30) == 0


def test_a_forked_child_leaves_the_workers_to_its_parent(eager_workers):
    compile_modules(modules(8, "fork"))
    child = os.fork()
    if child == 0:
        batch = modules(8, "child")
        os._exit(0 if results(batch, compile_modules(batch)) == list(range(100, 108)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    batch = modules(8, "parent")
    assert results(batch, compile_modules(batch)) == list(range(100, 108))


def test_a_worker_that_is_let_go_warns_of_nothing(eager_workers):
    compile_modules(modules(4, "ended"))
    process = machine_code._workers[0]._process
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        machine_code._workers.pop(0).close()
        del process
        gc.collect()
    assert not warned
