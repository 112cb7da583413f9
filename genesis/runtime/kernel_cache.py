"""Kernels by their source: in memory, as object code on disk, or compiled.

A kernel's file is named by a digest of all that determines its machine code: the source, the code that turns sources
into LLVM IR, the target, and the versions of the compilers. The file repeats the source and carries a digest of the
object code, so whatever is wrong with it - truncated, corrupt, somebody else's, unreadable - it is a miss, never an
error and never a wrong kernel.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import llvmlite

from genesis.runtime import compile_claims, machine_code
from genesis.runtime.compile_claims import CompileClaims
from genesis.runtime.counters import count
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.logs import CompilingLine, tell
from genesis.runtime.private_directory import PrivateDirectory, cache_directory
from genesis.runtime.timeline import timeline
from genesis.runtime.uninterrupted import uninterrupted

SIZE_LIMIT = 512 << 20  # bytes on disk
SWEEP_INTERVAL = 3600.0  # seconds between two looks at the size
TOUCH_INTERVAL = 86400.0  # a file's time of last use is kept to this precision
POLL_INTERVAL = 0.003  # seconds between two polls for a kernel that another process compiles, mostly in 20 to 45 ms
LONGEST_WAIT = 5.0  # seconds without a result, after which it is compiled here, too

_STAMP = "swept"  # the file whose time is that of the last sweep
_OURS = (_STAMP, compile_claims.NAME)  # the files that are no kernels
_MAGIC = b"genesis kernel 1"
_HEADER = struct.Struct("<16s32sQQ")  # magic, digest of the rest, length of the source, length of the object code
# Environment variables that change what Numba's code generator makes of the same text.
_NUMBA_SETTINGS = ("CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE")


class KernelSource(NamedTuple):
    """A kernel before it is machine code."""

    symbol: str  # the function's name in the IR, different for different sources
    source: str  # canonical text; equal texts are the same kernel
    llvm_ir: Callable[[], str]  # called only if the kernel must be compiled


class KernelCache:
    """The kernels of one process, over a directory that processes share.

    `find_directory` is called when the first kernel is asked for; if it returns None, kernels are kept in memory only.
    """

    def __init__(self, find_directory: Callable[[], Path | None], size_limit: int = SIZE_LIMIT) -> None:
        self._directory = functools.cache(lambda: _opened(find_directory()))
        self._size_limit = size_limit
        self._addresses: dict[str, int] = {}
        self._supplied: dict[str, bytes] = {}  # object code by its name
        self._noted: list[list[KernelSource]] = []
        self._making: set[str] = set()  # the names in progress in `making`
        self._lock = fork_safe_lock(longest_wait=0)  # what a fork must wait for has its own locks

    def get_or_compile(self, kernels: Sequence[KernelSource]) -> list[int]:
        """The address of each kernel, in order. Any thread may ask; a kernel is compiled at most once.

        Raises RuntimeError if a kernel's text is not valid LLVM IR.
        """
        # First without the lock: a known kernel never changes, and most plans use only known ones.
        addresses = self._addresses
        for noted in self._noted:
            noted += kernels
        if any(kernel.source not in addresses for kernel in kernels):
            began = timeline.start()
            with self._lock:
                missing = {kernel.source: kernel for kernel in kernels if kernel.source not in addresses}
                self._link(missing.values())
            timeline.note("compile", began)
        return [addresses[kernel.source] for kernel in kernels]

    @contextlib.contextmanager
    def noting(self) -> Iterator[list[KernelSource]]:
        """Collect the kernels that any thread requests within the context."""
        noted: list[KernelSource] = []
        self._noted.append(noted)
        try:
            yield noted
        finally:
            self._noted = [other for other in self._noted if other is not noted]

    def object_code(self, kernel: KernelSource) -> tuple[str, bytes]:
        """(a name that covers everything its machine code depends on, the machine code), to supply it to another process."""
        name = _name(kernel.source)
        code = self._supplied.get(name) or self.find(kernel.source)
        return name, code or machine_code.compile_modules([(kernel.symbol, kernel.llvm_ir)])[0]

    def supply(self, objects: Mapping[str, bytes]) -> None:
        """Take in object code by name: where the name is the same here, nothing is compiled."""
        self._supplied.update(objects)

    def kept(self, source: str, make: Callable[[], bytes]) -> bytes:
        """The result of `make` for a source: made once, then read from disk. For machine code that others load."""
        if (content := self.find(source)) is None:
            with self.making(source) as content:
                if content is None:
                    content = make()
                    self.keep(source, content)
        return content

    @contextlib.contextmanager
    def making(self, source: str) -> Iterator[bytes | None]:
        """A context in which only this process makes the content of a source; yields what another one has made meanwhile, if
        any.

        Another process may have been stopped: after a while the content is made here, too. A signal handler of this process
        makes it as well, as it would wait for what it interrupts.
        """
        name = _name(source)
        if name in self._making:
            yield None
            return
        self._making.add(name)
        try:
            with CompileClaims(self._directory()) as claims:
                deadline = time.monotonic() + LONGEST_WAIT
                while not claims.take(name) and time.monotonic() < deadline:
                    time.sleep(POLL_INTERVAL)
                yield self.find(source, again=True) if claims.are_shared else None
        finally:
            self._making.discard(name)

    def keep(self, source: str, content: bytes) -> None:
        """Store content for `find`, in this process or another."""
        self._write(source, content)
        self.sweep()

    def _link(self, kernels: Iterable[KernelSource]) -> None:
        started, loaded = time.perf_counter(), 0
        missing = []
        for kernel in kernels:
            # Object code is ready in 0.8 ms. Numba's own cache takes 0.56 s to load, and leaves globals out of its key.
            if kernel.source in self._addresses:  # a signal handler has been quicker
                continue
            object_code = self._supplied.get(_name(kernel.source)) if self._supplied else None
            if object_code is None and (object_code := self.find(kernel.source)) is None:
                missing.append(kernel)
            else:
                self._addresses[kernel.source] = machine_code.load(object_code, kernel.symbol)
                loaded += 1
        took = time.perf_counter() - started
        count("kernels_loaded", loaded)
        count("load_microseconds", round(1e6 * took))
        if loaded:
            tell("cache", "loaded %d kernel%s in %.1f ms", loaded, "s" * (loaded != 1), 1e3 * took)
        if missing:
            self._compile_or_await(missing)

    def _compile_or_await(self, kernels: Sequence[KernelSource]) -> None:
        """Compile kernels, except those that another process is compiling, which are then read from disk."""
        with CompileClaims(self._directory()) as claims:
            while kernels := uninterrupted(self._compile, kernels, claims):  # loading needs no separate thread
                kernels = self._await(kernels, claims)

    def _await(self, kernels: Sequence[KernelSource], claims: CompileClaims) -> list[KernelSource]:
        """Wait until some of the kernels exist or are no longer claimed. Returns the missing ones.

        Nothing is claimed meanwhile, and an interrupt is raised at once. The claim's holder may have been stopped, or wait for
        this process: at the deadline all claims end, so that `_compile` compiles everything.
        """
        deadline = time.monotonic() + LONGEST_WAIT
        while time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL)
            missing = [kernel for kernel in kernels if not self._is_there(kernel)]
            if len(missing) < len(kernels) or any(claims.is_free(_name(kernel.source)) for kernel in missing):
                return missing
        tell("cache", "waited %.0f s for kernels that another process began to compile", LONGEST_WAIT)
        claims.end()
        return list(kernels)

    def _is_there(self, kernel: KernelSource) -> bool:
        """Whether a kernel is known or stored; loads it if it is."""
        if kernel.source in self._addresses:  # a signal handler has been quicker
            return True
        if (object_code := self.find(kernel.source, again=True)) is None:
            return False
        self._addresses[kernel.source] = machine_code.load(object_code, kernel.symbol)
        count("kernels_loaded", 1)
        return True

    def _compile(self, kernels: Sequence[KernelSource], claims: CompileClaims) -> list[KernelSource]:
        """Compile the unclaimed kernels; returns the others."""
        started = time.perf_counter()
        others, found = [], []

        def begin(index: int) -> bool:
            kernel = kernels[index]
            if not claims.take(_name(kernel.source)):
                others.append(kernel)
            elif claims.are_shared and self.find(kernel.source, again=True) is not None:  # written since our first look
                claims.let_go(_name(kernel.source))
                found.append(kernel)
            else:
                return True
            return False

        def finish(index: int, object_code: bytes) -> None:
            if _are_as_digested(sum(map(sys.modules.__contains__, _EMITTING_MODULES))):
                self._write(kernels[index].source, object_code)
            claims.let_go(_name(kernels[index].source))
            line.step()

        with CompilingLine(len(kernels)) as line:
            objects = machine_code.compile_modules([(kernel.symbol, kernel.llvm_ir) for kernel in kernels], begin, finish)
        compiled = [(kernel, code) for kernel, code in zip(kernels, objects, strict=True) if code]
        for kernel, object_code in compiled:
            self._addresses[kernel.source] = machine_code.load(object_code, kernel.symbol)
        others += [kernel for kernel in found if not self._is_there(kernel)]
        if compiled:
            took = time.perf_counter() - started
            count("kernels_compiled", len(compiled))
            count("compile_microseconds", round(1e6 * took))
            names = ", ".join(kernel.symbol for kernel, _ in compiled)
            tell("compile", "compiled %d kernel%s in %.2f s: %s", len(compiled), "s" * (len(compiled) != 1), took, names)
            self.sweep()
        return others

    # ---- the files ----

    def _path(self, source: str) -> Path | None:
        directory = self._directory()
        return directory.path / _name(source) if directory is not None else None

    def find(self, source: str, again: bool = False) -> bytes | None:
        """The stored bytes, if there is a valid file for exactly this source. A problem is not logged `again`."""
        if (directory := self._directory()) is None:
            return None
        name = _name(source)
        try:
            content = directory.read(name, self._size_limit)
            magic, digest, source_length, object_length = _HEADER.unpack_from(content)
        except (OSError, struct.error):  # not there, or cut short
            return None
        body = content[_HEADER.size :]
        sound = (
            magic == _MAGIC and len(body) == source_length + object_length
            and body[:source_length] == source.encode() and hashlib.sha256(body).digest() == digest
        )
        if not sound:
            if not again:
                tell("cache", "%s is not the file that it should be, and is passed over", name)
            return None
        # Sweeps delete by time of use; updating it once a day is enough, so most reads write nothing.
        with contextlib.suppress(OSError):  # it may be read-only
            if directory.status(name).st_mtime < time.time() - TOUCH_INTERVAL:
                directory.touch(name)
        return body[source_length:]

    def _write(self, source: str, object_code: bytes) -> None:
        """Store the object code, whole or not at all."""
        if (directory := self._directory()) is None:
            return
        text = source.encode()
        body = text + object_code
        header = _HEADER.pack(_MAGIC, hashlib.sha256(body).digest(), len(text), len(object_code))
        with contextlib.suppress(OSError):  # read-only, or full
            directory.write(_name(source), header + body)

    def sweep(self, interval: float = SWEEP_INTERVAL) -> None:
        """Once in `interval` seconds: if the files exceed the limit, delete the least recently used, down to three quarters."""
        if (directory := self._directory()) is None:
            return
        with contextlib.suppress(OSError):  # read-only
            if not _is_our_turn(directory, interval):
                return
            files = sorted((status.st_mtime, status.st_size, name) for name, status in directory.files() if name not in _OURS)
            excess = sum(size for _, size, _ in files) - self._size_limit
            if excess > 0:  # a quarter more, so that not every sweep deletes
                excess += self._size_limit // 4
            for used, size, name in files:
                abandoned = name.endswith(".tmp") and used < time.time() - SWEEP_INTERVAL
                if excess > 0 or abandoned:
                    directory.remove(name)
                    excess -= size


def _opened(path: Path | None) -> PrivateDirectory | None:
    try:
        return None if path is None else PrivateDirectory(path)
    except OSError as problem:  # it cannot be made, or is not ours
        tell("cache", "kernels are kept in memory alone: %s", problem)
        return None


def _name(source: str) -> str:
    return hashlib.sha256(_toolchain() + source.encode()).hexdigest()


def _is_our_turn(directory: PrivateDirectory, interval: float) -> bool:
    """Whether the stamp is older than `interval` seconds; renews it. Of concurrent processes, one gets True."""
    with contextlib.suppress(FileNotFoundError):
        if directory.status(_STAMP).st_mtime > time.time() - interval:
            return False
        directory.remove(_STAMP)
    try:
        directory.create(_STAMP)
    except FileExistsError:
        return False
    return True


@functools.cache
def _toolchain() -> bytes:
    """Everything that turns a kernel's source into machine code, as text, without importing Numba."""
    numba = importlib.util.find_spec("numba")
    if numba is None or numba.origin is None:
        numba_version = "none"
    else:
        numba_version = Path(numba.origin).with_name("_version.py").read_text(errors="replace")
    settings = [os.environ.get(f"NUMBA_{name}", "") for name in _NUMBA_SETTINGS]
    return "\n".join([*machine_code.target(), llvmlite.__version__, numba_version, *settings, _EMITTERS, ""]).encode()


def digest_of(files: Iterable[Path]) -> str:
    """A digest of files' contents, such as the package's own code."""
    digest = hashlib.blake2b(digest_size=32)
    for path in sorted(map(str, files)):
        with open(path, "rb", buffering=0) as file:
            digest.update(file.read())
    return digest.hexdigest()


_PACKAGE = Path(__file__).parents[1]
_EMITTING = [
    *_PACKAGE.glob("codegen/cpu/**/*.py"), *_PACKAGE.glob("runtime/*_ir.py"), _PACKAGE / "runtime" / "numba_compiler.py",
]
_EMITTING_MODULES = [".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts) for path in _EMITTING]
_EMITTERS = digest_of(_EMITTING)  # a new emitter must not meet an old one's kernels


@functools.cache
def _are_as_digested(imported: int) -> bool:
    """Whether no emitter was edited before the last of them was imported, mostly when a kernel is to be compiled."""
    return digest_of(_EMITTING) == _EMITTERS


kernel_cache = KernelCache(lambda: cache_directory("kernels"))
get_or_compile = kernel_cache.get_or_compile


def compiled(symbol: str, llvm_ir: str) -> int:
    """The address of the function `symbol` of a text."""
    [address] = get_or_compile([KernelSource(symbol, llvm_ir, lambda: llvm_ir)])
    return address
