"""Kernels by their source: in memory, as object code on disk (see `content_store`), or compiled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from genesis.runtime import machine_code
from genesis.runtime.compile_claims import CompileClaims
from genesis.runtime.content_store import LONGEST_WAIT, POLL_INTERVAL, SIZE_LIMIT, ContentStore, name_of
from genesis.runtime.counters import count
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.logs import CompilingLine, tell
from genesis.runtime.private_directory import cache_directory
from genesis.runtime.short_ir import declared, spelled_out
from genesis.runtime.timeline import timeline
from genesis.runtime.uninterrupted import uninterrupted


class KernelSource(NamedTuple):
    """A kernel before it is machine code."""

    symbol: str  # the function's name in the IR, different for different sources
    source: str  # canonical text; equal texts are the same kernel
    llvm_ir: Callable[[], str]  # called only if the kernel must be compiled
    of_program: bool = True  # counted and noted, unlike what the library loads for itself at any call


class KernelCache(ContentStore):
    """The kernels of one process, over a store of their object code."""

    def __init__(self, find_directory: Callable[[], Path | None], size_limit: int = SIZE_LIMIT) -> None:
        super().__init__(find_directory, size_limit)
        self._addresses: dict[str, int] = {}
        self._supplied: dict[str, bytes] = {}  # object code by its name
        self._noted: list[list[KernelSource]] = []
        self._lock = fork_safe_lock(longest_wait=0)  # what a fork must wait for has its own locks

    def get_or_compile(self, kernels: Sequence[KernelSource]) -> list[int]:
        """The address of each kernel, in order. Any thread may ask; a kernel is compiled at most once.

        Raises RuntimeError if a kernel's text is not valid LLVM IR.
        """
        # First without the lock: a known kernel never changes, and most plans use only known ones.
        addresses = self._addresses
        for noted in self._noted:
            noted += [kernel for kernel in kernels if kernel.of_program]
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
        name = name_of(kernel.source)
        code = self._supplied.get(name) or self.find(kernel.source)
        return name, code or machine_code.compile_modules([(kernel.symbol, kernel.llvm_ir)])[0]

    def supply(self, objects: Mapping[str, bytes]) -> None:
        """Take in object code by name: where the name is the same here, nothing is compiled."""
        self._supplied.update(objects)

    def _link(self, kernels: Iterable[KernelSource]) -> None:
        started, loaded = time.perf_counter(), 0
        missing = []
        for kernel in kernels:
            # Object code is ready in 0.8 ms. Numba's own cache takes 0.56 s to load, and leaves globals out of its key.
            if kernel.source in self._addresses:  # a signal handler has been quicker
                continue
            object_code = self._supplied.get(name_of(kernel.source)) if self._supplied else None
            if object_code is None and (object_code := self.find(kernel.source)) is None:
                missing.append(kernel)
            else:
                self._addresses[kernel.source] = machine_code.load(object_code, kernel.symbol)
                loaded += kernel.of_program
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
            if len(missing) < len(kernels) or any(claims.is_free(name_of(kernel.source)) for kernel in missing):
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
        count("kernels_loaded", int(kernel.of_program))
        return True

    def _compile(self, kernels: Sequence[KernelSource], claims: CompileClaims) -> list[KernelSource]:
        """Compile the unclaimed kernels; returns the others."""
        started = time.perf_counter()
        others, found = [], []

        def begin(index: int) -> bool:
            kernel = kernels[index]
            if not claims.take(name_of(kernel.source)):
                others.append(kernel)
            elif claims.are_shared and self.find(kernel.source, again=True) is not None:  # written since our first look
                claims.let_go(name_of(kernel.source))
                found.append(kernel)
            else:
                return True
            return False

        def finish(index: int, object_code: bytes) -> None:
            self.write(kernels[index].source, object_code)
            claims.let_go(name_of(kernels[index].source))
            line.step()

        with CompilingLine(len(kernels)) as line:
            objects = machine_code.compile_modules([(kernel.symbol, kernel.llvm_ir) for kernel in kernels], begin, finish)
        compiled = [(kernel, code) for kernel, code in zip(kernels, objects, strict=True) if code]
        for kernel, object_code in compiled:
            self._addresses[kernel.source] = machine_code.load(object_code, kernel.symbol)
        others += [kernel for kernel in found if not self._is_there(kernel)]
        if compiled:
            took = time.perf_counter() - started
            count("kernels_compiled", sum([kernel.of_program for kernel, _ in compiled]))
            count("compile_microseconds", round(1e6 * took))
            names = ", ".join(kernel.symbol for kernel, _ in compiled)
            tell("compile", "compiled %d kernel%s in %.2f s: %s", len(compiled), "s" * (len(compiled) != 1), took, names)
            self.sweep()
        return others


kernel_cache = KernelCache(lambda: cache_directory("kernels"))
get_or_compile = kernel_cache.get_or_compile


def text_source(symbol: str, text: str, of_program: bool = True) -> KernelSource:
    """The source of the function `symbol` of a text, which may have the forms of `short_ir` and lack declarations."""
    return KernelSource(symbol, text, lambda: declared(spelled_out(text)), of_program)


def compiled(symbol: str, text: str) -> int:
    """The address of the function `symbol` of a text, one of the library's own."""
    [address] = get_or_compile([text_source(symbol, text, of_program=False)])
    return address
