"""What turns sources into machine code, as text: it is part of the names of stored files."""

from __future__ import annotations

import functools
import importlib.util
import os
from pathlib import Path

import llvmlite

from genesis.runtime import machine_code
from genesis.runtime.loaded_source import PACKAGE, digest_of
from genesis.runtime.uninterrupted import uninterrupted

# Environment variables that change what Numba's code generator makes of the same text.
_NUMBA_SETTINGS = ("CPU_NAME", "CPU_FEATURES", "ENABLE_AVX", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE")


@functools.cache
def toolchain() -> bytes:
    """Everything that turns a kernel's source into machine code, as text, without importing Numba."""
    numba = uninterrupted(importlib.util.find_spec, "numba")  # it takes the lock of imports
    if numba is None or numba.origin is None:
        numba_version = "none"
    else:
        numba_version = Path(numba.origin).with_name("_version.py").read_text(errors="replace")
    settings = [os.environ.get(f"NUMBA_{name}", "") for name in _NUMBA_SETTINGS]
    made_by = digest_of(emitters())  # a new emitter must not meet an old one's kernels
    return "\n".join([*machine_code.target(), llvmlite.__version__, numba_version, *settings, made_by, ""]).encode()


@functools.cache
def emitters() -> list[Path]:
    """The files of what turns kernels into LLVM IR, and that into object code."""
    return [*PACKAGE.glob("codegen/cpu/**/*.py"), *PACKAGE.glob("runtime/*_ir.py"), PACKAGE / "runtime" / "numba_compiler.py"]
