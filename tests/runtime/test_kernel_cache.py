"""The cache of compiled kernels: what is wrong with a file is a miss, never an error and never a wrong kernel."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import os
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from genesis.runtime import content_store, loaded_source, system, toolchain
from genesis.runtime import kernel_cache as module
from genesis.runtime.compile_claims import CompileClaims
from genesis.runtime.counters import stats
from genesis.runtime.kernel_cache import KernelCache, KernelSource
from genesis.runtime.private_directory import PrivateDirectory, cache_directory

from .kernels import run_python

CONSTANT = "define i64 @SYMBOL() {\n  ret i64 VALUE\n}\n"
_number = itertools.count()


def constant(value: int, symbol: str | None = None) -> KernelSource:
    """A function that returns `value`, by a name of its own."""
    symbol = symbol or f"test_constant_{next(_number)}"
    text = CONSTANT.replace("SYMBOL", symbol).replace("VALUE", str(value))
    return KernelSource(symbol, text, lambda: text)


def call(address: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64)(address)()


def cache(directory: Path | None, **options) -> KernelCache:
    return KernelCache(lambda: directory, **options)


def fetch(directory: Path | None, source: KernelSource) -> tuple[int, int, int]:
    """What the kernel returns when a fresh cache finds it, and how many kernels that compiled and loaded."""
    before = stats()
    [address] = cache(directory).get_or_compile([source])
    after = stats()
    return (call(address), *(after[name] - before[name] for name in ("kernels_compiled", "kernels_loaded")))


COMPILED, LOADED = (1, 0), (0, 1)


def kernel_files(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.name not in content_store._OURS]


def test_a_kernel_is_compiled_once_and_then_loaded(tmp_path):
    source = constant(42)
    assert fetch(tmp_path, source) == (42, *COMPILED)
    assert fetch(tmp_path, source) == (42, *LOADED)


def test_llvm_ir_is_asked_for_only_on_a_miss(tmp_path):
    source = constant(1)
    fetch(tmp_path, source)
    assert fetch(tmp_path, source._replace(llvm_ir=pytest.fail)) == (1, *LOADED)


def test_a_batch_keeps_its_order_and_may_repeat(tmp_path):
    kernels = cache(tmp_path)
    a, b, c = (constant(value) for value in (1, 2, 3))
    kernels.get_or_compile([b])
    addresses = kernels.get_or_compile([a, b, a, c])
    assert [call(address) for address in addresses] == [1, 2, 1, 3]
    assert kernels.get_or_compile([a, b, a, c]) == addresses


def test_one_symbol_with_two_sources_is_two_kernels(tmp_path):
    first, second = constant(1, "test_same_name"), constant(2, "test_same_name")
    kernels = cache(tmp_path)
    assert [call(address) for address in kernels.get_or_compile([first, second])] == [1, 2]
    assert [call(address) for address in cache(tmp_path).get_or_compile([second, first])] == [2, 1]


def test_without_a_directory_kernels_live_in_memory():
    kernels, source = cache(None), constant(3)
    before = stats()["kernels_compiled"]
    assert kernels.get_or_compile([source]) == kernels.get_or_compile([source])
    assert stats()["kernels_compiled"] == before + 1


def test_invalid_ir_raises_and_is_not_remembered(tmp_path):
    broken = KernelSource("broken", "broken", lambda: "define nonsense")
    kernels = cache(tmp_path)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="expected"):
            kernels.get_or_compile([broken])
    assert kernel_files(tmp_path) == []
    assert call(kernels.get_or_compile([constant(4)])[0]) == 4


# ---- what may be wrong with a file ----


@pytest.fixture
def stored(tmp_path) -> tuple[KernelSource, Path]:
    source = constant(7)
    fetch(tmp_path, source)
    [path] = kernel_files(tmp_path)
    return source, path


@pytest.mark.parametrize("length", [0, 1, 15, 60, 100, -1])
def test_a_truncated_file_is_a_miss_and_is_replaced(stored, length):
    source, path = stored
    path.write_bytes(path.read_bytes()[:length])
    assert fetch(path.parent, source) == (7, *COMPILED)
    assert fetch(path.parent, source) == (7, *LOADED)


@pytest.mark.parametrize("place", [0, 20, 50, 60, 70, 90, -200, -1])
def test_a_flipped_bit_anywhere_is_a_miss(stored, place):
    source, path = stored
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    assert fetch(path.parent, source) == (7, *COMPILED)


@pytest.mark.parametrize("content", [b"", b"hello", os.urandom(5000), b"genesis kernel 1" + b"\xff" * 100])
def test_foreign_bytes_are_a_miss(stored, content):
    source, path = stored
    path.write_bytes(content)
    assert fetch(path.parent, source) == (7, *COMPILED)


def test_trailing_bytes_are_a_miss(stored):
    source, path = stored
    path.write_bytes(path.read_bytes() + b"x")
    assert fetch(path.parent, source) == (7, *COMPILED)


def test_another_kernels_file_under_this_name_is_a_miss(stored):
    source, path = stored
    fetch(path.parent, constant(8))
    [other] = [file for file in kernel_files(path.parent) if file != path]
    path.write_bytes(other.read_bytes())
    assert fetch(path.parent, source) == (7, *COMPILED)


def test_a_directory_where_the_file_should_be_is_a_miss(stored):
    source, path = stored
    path.unlink()
    path.mkdir()
    assert fetch(path.parent, source) == (7, *COMPILED)


def test_another_toolchain_does_not_find_the_kernel(stored, monkeypatch):
    source, path = stored
    monkeypatch.setattr(content_store, "toolchain", lambda: b"another compiler")
    assert fetch(path.parent, source) == (7, *COMPILED)
    assert len(kernel_files(path.parent)) == 2


def test_kernels_of_emitters_that_were_edited_after_the_import_are_not_stored(tmp_path, monkeypatch):
    source = constant(6)
    with monkeypatch.context() as edited:
        edited.setattr(loaded_source, "_BEGAN", 0)
        assert not loaded_source.are_as_loaded(toolchain.emitters())
        assert fetch(tmp_path, source) == (6, *COMPILED)
    assert kernel_files(tmp_path) == []
    assert [fetch(tmp_path, source) for _ in range(2)] == [(6, *COMPILED), (6, *LOADED)]


def test_files_are_as_loaded_if_their_content_and_status_changed_before(tmp_path, monkeypatch):
    file, seconds = tmp_path / "module.py", 10**9
    file.write_text("")

    def is_as_loaded(written, began):
        os.utime(file, ns=(written, written))
        monkeypatch.setattr(loaded_source, "_BEGAN", file.stat().st_ctime_ns + began)
        as_loaded = loaded_source.are_as_loaded([file])
        assert (loaded_source.digest_of([file]) == loaded_source.digest_of([file])) is as_loaded
        return as_loaded

    assert is_as_loaded(0, 3 * seconds) and not is_as_loaded(0, 0) and not is_as_loaded(0, seconds // 100)
    assert not is_as_loaded(10**10 * seconds, 3 * seconds)  # a clock in the future
    assert is_as_loaded(0, 3 * seconds) and not loaded_source.are_as_loaded([file, tmp_path / "gone.py"])
    monkeypatch.setattr(loaded_source, "PACKAGE", tmp_path)  # as if another folder had been moved to its place
    assert not loaded_source.are_as_loaded([file])


def test_a_directory_that_vanished_is_a_miss(tmp_path):
    source = constant(9)
    assert fetch(tmp_path / "gone", source) == (9, *COMPILED)
    assert fetch(tmp_path / "gone", source) == (9, *COMPILED)


def test_a_full_disk_is_a_miss_and_leaves_no_litter(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert fetch(tmp_path, constant(10)) == (10, *COMPILED)
    assert kernel_files(tmp_path) == []


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write and read anywhere, so its tests are run as nobody."""
    if root := os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def readable(stored) -> Iterator[tuple[KernelSource, Path]]:
    """A stored kernel where everybody may read but nobody write."""
    source, path = stored
    with tempfile.TemporaryDirectory() as name:
        copy = Path(shutil.copy(path, name))
        copy.chmod(0o444)
        copy.parent.chmod(0o555)
        yield source, copy
        copy.parent.chmod(0o700)


def test_a_read_only_directory_serves_and_stores_nothing(readable):
    source, path = readable
    with unprivileged():
        assert fetch(path.parent, source) == (7, *LOADED)
        assert fetch(path.parent, constant(11)) == (11, *COMPILED)
    assert kernel_files(path.parent) == [path]


def test_an_unreadable_file_is_a_miss(readable):
    source, path = readable
    path.chmod(0)
    with unprivileged():
        assert fetch(path.parent, source) == (7, *COMPILED)


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)], ids=["pipe", "folder", "link"]
)
def test_what_is_no_regular_file_is_a_miss(stored, make):
    source, path = stored
    path.unlink()
    make(path)
    assert fetch(path.parent, source) == (7, *COMPILED)


def test_a_file_larger_than_the_cache_is_a_miss(stored):
    source, path = stored
    os.truncate(path, 1 << 40)
    assert fetch(path.parent, source) == (7, *COMPILED)


def test_a_file_that_others_may_write_is_a_miss(stored):
    source, path = stored
    path.chmod(0o666)
    assert fetch(path.parent, source) == (7, *COMPILED)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="another user's files are made by root alone")


@needs_root
def test_another_users_file_is_a_miss(stored):
    source, path = stored
    os.chown(path, 65534, 65534)
    assert fetch(path.parent, source) == (7, *COMPILED)


@needs_root
def test_below_another_users_directory_nothing_is_read(stored):
    source, path = stored
    above = path.parent / "above"
    (above / "kernels").mkdir(parents=True, mode=0o700)
    shutil.copy(path, above / "kernels")
    assert fetch(above / "kernels", source) == (7, *LOADED)
    os.chown(above, 65534, 65534)
    assert fetch(above / "kernels", source) == (7, *COMPILED)


def test_the_directory_that_was_looked_at_is_the_one_that_is_read(stored):
    source, path = stored
    kernels = cache(path.parent)
    kernels.sweep()  # looks at the directory
    path.parent.rename(path.parent.with_name("old"))
    path.parent.mkdir()
    path.write_bytes(b"planted")
    before = stats()["kernels_loaded"]
    assert call(kernels.get_or_compile([source])[0]) == 7 and stats()["kernels_loaded"] == before + 1


# ---- the directory ----


def test_the_directory_is_private_and_its_place_is_a_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "chosen"))
    directory = cache_directory("kernels")
    assert directory == tmp_path / "chosen" / "kernels"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    monkeypatch.delenv("GENESIS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory("kernels") == tmp_path / "genesis" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory("kernels") == tmp_path / ".cache" / "genesis" / "kernels"


def test_a_directory_others_may_write_is_made_private(tmp_path, monkeypatch):
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path))
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    assert stat.S_IMODE(cache_directory("kernels").stat().st_mode) == 0o700


def test_an_impossible_directory_is_none(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GENESIS_CACHE_DIR", str(tmp_path / "file"))
    assert cache_directory("kernels") is None


def test_files_are_private(stored):
    assert stat.S_IMODE(stored[1].stat().st_mode) == 0o600


def test_the_size_is_bounded_and_the_least_recently_used_go_first(tmp_path):
    sources = [constant(value) for value in range(8)]
    writer = cache(tmp_path)
    for age, source in enumerate(sources):
        writer.get_or_compile([source])
        os.utime(writer._path(source.source), (1e9 + age, 1e9 + age))
    sizes = sum(path.stat().st_size for path in kernel_files(tmp_path))
    fetch(tmp_path, sources[0])  # used again: now the youngest
    small = cache(tmp_path, size_limit=sizes // 2)
    small.sweep()
    assert len(kernel_files(tmp_path)) == 8, "the last sweep was less than an hour ago"
    small.sweep(interval=-1)
    assert sum(path.stat().st_size for path in kernel_files(tmp_path)) <= sizes // 2
    left = [fetch(tmp_path, source)[1:] == LOADED for source in sources]
    assert left[0] and left[-1] and not any(left[1:4])


def test_sweeping_removes_what_a_dead_writer_left(tmp_path):
    old, young = tmp_path / "old.tmp", tmp_path / "young.tmp"
    old.write_text("half a kernel")
    young.write_text("half a kernel")
    os.utime(old, (1e9, 1e9))
    cache(tmp_path).sweep()
    assert not old.exists() and young.exists()


# ---- several at once ----


def test_threads_that_ask_for_one_kernel_compile_it_once(tmp_path):
    kernels, source = cache(tmp_path), constant(12)
    before = stats()["kernels_compiled"]
    addresses = []
    threads = [threading.Thread(target=lambda: addresses.extend(kernels.get_or_compile([source]))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(addresses) == 8 and len(set(addresses)) == 1
    assert stats()["kernels_compiled"] == before + 1


FILL = """
    import sys
    from tests.runtime.test_kernel_cache import call, constant
    from genesis.runtime.counters import stats
    from genesis.runtime.kernel_cache import get_or_compile
    sources = [constant(value, f"test_fill_{value}") for value in range(12)]
    assert [call(address) for address in get_or_compile(sources)] == list(range(12))
    print(stats()["kernels_compiled"], stats()["kernels_loaded"], "numba" in sys.modules)
"""


def test_processes_that_start_at_once_compile_each_kernel_once_in_sum_and_the_next_needs_no_numba(tmp_path):
    def fill() -> None:
        outputs.append(run_python(FILL, GENESIS_CACHE_DIR=str(tmp_path)))

    outputs: list[str] = []
    threads = [threading.Thread(target=fill) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    compiled, loaded = zip(*[map(int, output.split()[:2]) for output in outputs], strict=True)
    assert sum(compiled) == 12 and sum(loaded) == 24
    assert run_python(FILL, GENESIS_CACHE_DIR=str(tmp_path)) == "0 12 False"
    assert len(kernel_files(tmp_path / "kernels")) == 12


@contextlib.contextmanager
def compiling_elsewhere(directory: Path, *sources: KernelSource) -> Iterator[int]:
    """A child process that claims kernels, and never compiles them."""
    ready, tell_ready = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException), CompileClaims(PrivateDirectory(directory)) as claims:
            if all([claims.take(module.name_of(source.source)) for source in sources]):
                os.write(tell_ready, b"y")
            time.sleep(60)
        os._exit(0)
    try:
        os.close(tell_ready)
        assert os.read(ready, 1) == b"y"
        yield child
    finally:
        os.close(ready)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_what_another_process_compiles_is_compiled_here_when_that_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 1000.0)
    sources = [constant(value) for value in range(3)]
    with compiling_elsewhere(tmp_path, *sources[:2]) as child:
        threading.Timer(0.1, os.kill, (child, signal.SIGKILL)).start()
        assert [call(address) for address in cache(tmp_path).get_or_compile(sources)] == [0, 1, 2]


def test_what_a_stopped_process_compiles_is_compiled_here_at_the_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.05)
    source = constant(13)
    with compiling_elsewhere(tmp_path, source) as child:
        os.kill(child, signal.SIGSTOP)
        assert fetch(tmp_path, source) == (13, *COMPILED)
        assert fetch(tmp_path, source) == (13, *LOADED)


def test_what_another_process_has_written_meanwhile_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 1000.0)
    source = constant(14)
    with compiling_elsewhere(tmp_path, source):
        code = module.machine_code.compile_modules([(source.symbol, source.llvm_ir)])[0]
        threading.Timer(0.1, cache(tmp_path).write, (source.source, code)).start()
        assert fetch(tmp_path, source) == (14, *LOADED)


def test_a_wait_for_another_process_is_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 1000.0)
    kernels, source = cache(tmp_path), constant(15)
    with compiling_elsewhere(tmp_path, source):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            kernels.get_or_compile([source])
    assert call(kernels.get_or_compile([source])[0]) == 15


def test_of_several_that_need_a_content_one_makes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 1000.0)
    made, found, both = [], [], threading.Barrier(2)

    def make():
        made.append(None)
        time.sleep(0.05)  # the other one asks meanwhile
        return b"content"

    def ask():  # each by a cache of its own, as another process would
        own = cache(tmp_path)
        both.wait()
        found.append(own.kept("a source", make))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [b"content"] * 2 and len(made) == 1


def test_content_that_a_killed_process_was_to_make_is_made_here(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 1000.0)
    with compiling_elsewhere(tmp_path, source := constant(16)) as child:
        threading.Timer(0.1, os.kill, (child, signal.SIGKILL)).start()
        assert cache(tmp_path).kept(source.source, lambda: b"here") == b"here"


def test_a_handler_that_needs_what_it_interrupts_makes_it_too(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_WAIT", 1000.0)
    own = cache(tmp_path)
    assert own.kept("a source", lambda: own.kept("a source", lambda: b"inner") + b" and outer") == b"inner and outer"


def test_a_forked_child_does_not_keep_its_parents_claims(tmp_path):
    directory, name = PrivateDirectory(tmp_path), "ab" * 32
    ours, theirs = CompileClaims(directory), CompileClaims(directory)
    assert ours.take(name) and not theirs.take(name) and not theirs.is_free(name)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    with ours, theirs:
        ours.end()
        while not (is_free := theirs.is_free(name)) and not os.waitpid(child, os.WNOHANG)[0]:
            time.sleep(0.001)  # the child runs its handlers
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert is_free


def test_a_file_system_without_locks_refuses_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(system.fcntl, "fcntl", refuse)
    source = constant(16)
    assert fetch(tmp_path, source) == (16, *COMPILED)
    assert fetch(tmp_path, source) == (16, *LOADED)


def test_a_forked_child_compiles_while_the_parent_does(tmp_path):
    kernels = cache(tmp_path)
    sources = [constant(value) for value in range(20)]
    thread = threading.Thread(target=kernels.get_or_compile, args=(sources,))
    thread.start()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if [call(address) for address in kernels.get_or_compile(sources)] == list(range(20)) else 1
        finally:
            os._exit(status)
    watchdog = threading.Timer(60, os.kill, (child, 9))
    watchdog.start()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    watchdog.cancel()
    thread.join()
    assert np.array_equal([call(address) for address in kernels.get_or_compile(sources)], range(20))
