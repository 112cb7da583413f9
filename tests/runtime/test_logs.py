"""What is told while a script runs: channels of `logging`, and the line for whoever waits for compilers."""

import io
import logging.handlers
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import genesis
from genesis.runtime import logs
from genesis.runtime.kernel_cache import KernelCache
from tests.runtime.kernels import source

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _silent_again():
    yield
    genesis.set_logs()


@pytest.fixture
def heard():
    """The records that have come so far."""
    handler = logging.handlers.BufferingHandler(1000)
    logging.getLogger().addHandler(handler)
    yield handler.buffer
    logging.getLogger().removeHandler(handler)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_channels_are_heard_until_others_are_named(heard):
    genesis.set_logs("cache", "guards")
    logs.tell("cache", "read %d", 1)
    logs.tell("compile", "made %d", 2)
    genesis.set_logs("compile")
    logs.tell("cache", "read %d", 3)
    logs.tell("compile", "made %d", 4)
    assert [(record.name, record.getMessage()) for record in heard] == [
        ("genesis.cache", "read 1"), ("genesis.compile", "made 4")]
    assert heard[0].levelno == logging.INFO


def test_a_channel_that_is_not_there_is_named_and_changes_nothing(heard):
    genesis.set_logs("cache")
    with pytest.raises(ValueError, match="no channel 'caches'; there are compile, guards, cache"):
        genesis.set_logs("compile", "caches")
    logs.tell("cache", "still heard")
    assert [record.getMessage() for record in heard] == ["still heard"]


def test_kernels_are_told_when_they_are_compiled_and_when_they_are_loaded(tmp_path, heard):
    genesis.set_logs("compile", "cache")
    directory, kernel = tmp_path, source("increment", "told")
    KernelCache(lambda: directory).get_or_compile([kernel])
    KernelCache(lambda: directory).get_or_compile([kernel])
    (file,) = [path for path in directory.iterdir() if path.name not in ("swept", "claims")]
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    KernelCache(lambda: directory).get_or_compile([kernel])
    compiled, loaded, unsound, again = [record.getMessage() for record in heard]
    assert re.fullmatch(r"compiled 1 kernel in \d+\.\d\d s: told", compiled) and re.match("compiled 1", again)
    assert re.fullmatch(r"loaded 1 kernel in \d+\.\d ms", loaded) and file.name in unsound


def test_guards_tell_what_changed_and_what_cannot_be_replayed(heard):
    genesis.set_logs("guards")
    settings = {"scale": 2.0}

    @genesis.compile
    def scaled(x):
        return x * settings["scale"]

    @genesis.compile
    def looked(x):
        return x * len(x.tolist())

    for scale in (2.0, 2.0, "a"):
        settings["scale"] = scale
        if scale == "a":
            with pytest.raises(TypeError):
                scaled(genesis.ones(2))
        else:
            scaled(genesis.ones(2))
    looked(genesis.ones(100))
    messages = [record.getMessage() for record in heard]
    assert re.match(r".*<locals>.scaled is recorded anew: .*scale.* has changed", messages[0])
    assert re.match(r".*<locals>.looked cannot be replayed: a value is looked at .*\(at .*test_logs.py:\d+\)", messages[1])


def test_the_environment_names_channels():
    code = "import genesis, logging; print(logging.getLogger('genesis.guards').level, logging.getLogger('genesis.cache').level)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GENESIS_LOGS": "guards, compile"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == "20 0\n"


def test_whoever_sits_at_a_terminal_sees_how_far_compiling_is(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(logs, "PATIENCE", 0.0)
    with logs.CompilingLine(2) as line:
        line.step()
        line.step()
    shown = terminal.getvalue().split("\r")[1:]
    assert "1 of 2" in shown[0] and "2 of 2" in shown[1] and re.match(r"genesis: compiled kernels for \d+\.\d s", shown[2])
    assert terminal.getvalue().count("\n") == 1


def test_short_batches_add_up_and_pipes_hear_nothing(monkeypatch):
    clock = iter(range(100))
    monkeypatch.setattr(logs.time, "monotonic", lambda: 0.75 * next(clock))
    monkeypatch.setattr(logs.CompilingLine, "_waited", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())

    def batch():
        with logs.CompilingLine(1) as line:
            line.step()
        return len(terminal.getvalue())

    assert batch() == 0 and batch() > 0
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    for _ in range(4):
        batch()
    assert pipe.getvalue() == ""


def test_every_variable_that_is_read_stands_in_the_table():
    table = (ROOT / "docs" / "environment.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "genesis").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"GENESIS_[A-Z_]+", text)}
    assert read == set(re.findall(r"^\| `(GENESIS_[A-Z_]+)`", table, re.MULTILINE))


def test_synchronize_computes_what_is_recorded():
    x = genesis.ones(3) + 1
    before = genesis.debug.stats()["flushes"]
    genesis.synchronize()
    assert genesis.debug.stats()["flushes"] == before + 1 and x.tolist() == [2, 2, 2]
