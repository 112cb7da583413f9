"""What turns sources into machine code, as text: it is part of the names of stored files."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import llvmlite

from genesis.runtime import machine_code
from genesis.runtime.digest import digest

# Environment variables that change what Numba's code generator makes of the same text.
_NUMBA_SETTINGS = ("CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE")


@functools.cache
def toolchain() -> bytes:
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
    whole = digest()
    for path in sorted(map(str, files)):
        with open(path, "rb", buffering=0) as file:
            whole.update(file.read())
    return whole.hexdigest()


_PACKAGE = Path(__file__).parents[1]
_EMITTING = [
    *_PACKAGE.glob("codegen/cpu/**/*.py"), *_PACKAGE.glob("runtime/*_ir.py"), _PACKAGE / "runtime" / "numba_compiler.py",
]
_EMITTERS = digest_of(_EMITTING)  # a new emitter must not meet an old one's kernels


def are_emitters_as_digested() -> bool:
    """Whether no emitter was edited before the last of them was imported, mostly when a kernel is to be compiled."""
    return _are_as_digested(sum(map(sys.modules.__contains__, _emitting_modules())))


@functools.cache
def _emitting_modules() -> list[str]:
    return [".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts) for path in _EMITTING]


@functools.cache
def _are_as_digested(imported: int) -> bool:
    return digest_of(_EMITTING) == _EMITTERS
