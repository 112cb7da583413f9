"""A private OpenBLAS: NumPy's library once more, with the kernel set that is fastest here and no threads of its own.

OpenBLAS picks a kernel set by the processor's name when it is loaded, and on a processor it does not know that may be
half the speed (DESIGN.md, F6). `OPENBLAS_CORETYPE` overrides it, so the variable is set around our load alone;
NumPy's copy of the library is another file, already loaded, and keeps its own choice. The choice is a rule, unless
`measure` has found a better one.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from genesis.runtime.cache_directory import cache_directory
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.kernel_cache import write_whole
from genesis.runtime.uninterrupted import uninterrupted

CORE_TYPES = ("", "SkylakeX", "Cooperlake", "Sapphirerapids", "Zen", "Haswell")  # the empty one leaves it to OpenBLAS


class Blas(NamedTuple):
    """A loaded library: the addresses of its matrix products (64-bit integers), and what it says of itself."""

    cblas_sgemm: int
    cblas_dgemm: int
    core: str
    config: str


_loading = fork_safe_lock()


@functools.cache
def blas() -> Blas:
    """The process's OpenBLAS, loaded at the first call. Any thread may call its functions; they compute on that thread.

    Raises ImportError if the scipy-openblas64 package is missing.
    """
    return uninterrupted(load, core_type())


def load(core_type: str) -> Blas:
    """Load OpenBLAS with the kernels of `core_type`; "" leaves the choice to OpenBLAS."""
    with _loading, _environment(OPENBLAS_CORETYPE=core_type, OPENBLAS_NUM_THREADS="1"):
        library = ctypes.CDLL(str(_library_path()))
    library.scipy_openblas_set_num_threads64_(1)
    core, config = library.scipy_openblas_get_corename64_, library.scipy_openblas_get_config64_
    core.restype = config.restype = ctypes.c_char_p
    return Blas(
        cblas_sgemm=_address(library.scipy_cblas_sgemm64_),
        cblas_dgemm=_address(library.scipy_cblas_dgemm64_),
        core=core().decode(),
        config=config().decode(),
    )


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def core_type() -> str:
    """The kernel set to load: what OPENBLAS_CORETYPE says, else what `measure` found best here, else by rule."""
    if chosen := os.environ.get("OPENBLAS_CORETYPE"):
        return chosen
    if (path := _choice_path()) is not None:
        with contextlib.suppress(OSError):
            if (remembered := path.read_text()) in CORE_TYPES:
                return remembered
    features = llvm.get_host_cpu_features()
    has_avx512 = all(features.get(name) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl"))
    return "SkylakeX" if has_avx512 else ""


def measure() -> dict[str, float]:
    """GFLOP/s of a float32 product with each kernel set, each in a process of its own.

    The best is remembered for this user. Takes some seconds. Kernel sets that the processor cannot run are left out.
    """
    command = [sys.executable, "-m", "genesis.runtime.blas"]
    speeds = {}
    for name in CORE_TYPES:
        child = subprocess.run([*command, name], capture_output=True, text=True, check=False)
        if child.returncode == 0:
            speeds[name] = float(child.stdout)
    if speeds and (path := _choice_path()) is not None:
        with contextlib.suppress(OSError):
            write_whole(path, max(speeds, key=speeds.__getitem__).encode())
    return speeds


def _speed(library: Blas, extent: int = 768, seconds: float = 0.3) -> float:
    """GFLOP/s of a square float32 product, the best of as many as fit in the time."""
    i64, f32, pointer = ctypes.c_int64, ctypes.c_float, ctypes.c_void_p
    sgemm = ctypes.CFUNCTYPE(
        None, *[ctypes.c_int] * 3, i64, i64, i64, f32, pointer, i64, pointer, i64, f32, pointer, i64
    )(library.cblas_sgemm)
    a, b, c = ((ctypes.c_float * extent**2)(*[1.0] * extent**2) for _ in range(3))
    best, end = float("inf"), time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        sgemm(101, 111, 111, extent, extent, extent, 1.0, a, extent, b, extent, 0.0, c, extent)
        best = min(best, time.perf_counter() - start)
    return 2e-9 * extent**3 / best


def _library_path() -> Path:
    """The library file of scipy-openblas64; importing the package would load it, with its own choice of kernels."""
    spec = importlib.util.find_spec("scipy_openblas64")
    if spec is None or spec.origin is None:
        raise ImportError("matrix products need the package scipy-openblas64: pip install scipy-openblas64")
    (path,) = Path(spec.origin).with_name("lib").glob("*scipy_openblas64_*.[sd]*")
    return path


def _choice_path() -> Path | None:
    """The file that remembers this processor's best kernel set for this build of the library."""
    if (directory := cache_directory("blas")) is None:
        return None
    library = _library_path().stat()
    key = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()} {library.st_size} {library.st_mtime_ns}"
    return directory / hashlib.sha256(key.encode()).hexdigest()[:32]


@contextlib.contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Environment variables for the duration; an empty value removes one."""
    before = {name: os.environ.get(name, "") for name in variables}
    _set_environment(variables)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: dict[str, str]) -> None:
    for name, value in variables.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)


if __name__ == "__main__":
    print(_speed(load(sys.argv[1])))
