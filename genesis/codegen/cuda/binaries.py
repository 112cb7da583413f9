"""Functions by their text: machine code from disk, or compiled."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from genesis.codegen.cuda.signature import Function, Machine
from genesis.codegen.cuda.target import SIMULATED
from genesis.runtime.content_store import SIZE_LIMIT, ContentStore
from genesis.runtime.counters import count
from genesis.runtime.deferred import import_whole
from genesis.runtime.installation import install_command
from genesis.runtime.loaded_source import digest_of
from genesis.runtime.private_directory import cache_directory
from genesis.runtime.uninterrupted import uninterrupted

COMPILERS = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12")


@functools.cache
def _makers() -> list[Path]:
    folder = Path(__file__).parent
    formulas = (folder.parent / "cpu" / "vector_math").glob("*.py")  # that kernels have as device functions
    return [*folder.glob("device/*.py"), *formulas, folder / "toolchain.py"]


_cache = ContentStore(lambda: cache_directory("cuda"), SIZE_LIMIT, _makers)


@functools.cache
def toolchain() -> ModuleType:
    """The compiler, imported when it is first needed. Raises ImportError, which says what to install."""
    # Imported late: numba-cuda takes half a second, which a process with all its cubins on disk saves.
    missing = [name for name in ("numba_cuda", "cuda.bindings")[: 1 if SIMULATED else 2] if not _is_installed(name)]
    if missing:
        command = install_command("cuda13")
        raise ImportError(f"device 'cuda' needs {' and '.join(missing)}: {command}, or cuda12 for older drivers")
    return import_whole("genesis.codegen.cuda.toolchain")


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def names() -> Mapping[str, object]:
    """The names that the text of a function may use."""
    toolchain()
    return import_whole("genesis.codegen.cuda.device").NAMES


def machine_code(function: Function, capability: tuple[int, int]) -> Machine:
    """A function compiled for a compute capability: its cubin, registers and spills. Raises ImportError without a compiler."""
    compiler = toolchain()
    ptx = compiler.compile_ptx(function.source, function.name, function.parameters, names(), capability, function.threads)
    return compiler.link(ptx, capability)


def cubin(function: Function, capability: tuple[int, int]) -> bytes:
    """A function's machine code, whose entry has the function's name. Raises ImportError if it must be compiled and cannot.

    Of several processes that need it one compiles it, where no interrupt reaches: that would leave the compiler in an
    inconsistent state.
    """
    def compile() -> bytes:
        count("kernels_compiled")
        return uninterrupted(machine_code, function, capability).cubin

    parameters = ", ".join(function.parameters)
    return _cache.kept(f"sm {capability} {_versions()}\n{parameters} {function.threads}\n{function.source}", compile)


@functools.cache
def _versions() -> str:
    """The other inputs of the machine code: the compilers' versions, and the text of the device functions."""
    found = [digest_of(_makers())]
    for package in COMPILERS:
        try:
            found.append(importlib.metadata.version(package))
        except importlib.metadata.PackageNotFoundError:
            found.append("none")
    return " ".join(found)
