"""Tries each part of CUDA, run in a separate process, and prints a line before and after each.

The doctor runs this file by its path, with the names of parts to skip. It imports nothing of genesis: a broken part may
crash the process.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

PACKAGES = {
    "numba-cuda": "numba.cuda", "cuda-bindings": "cuda.bindings.driver", "cuda-core": "cuda.core",
    "nvmath-python": "nvmath.bindings.cublas",
}
LIBRARIES = {"nvvm": "libnvvm.so", "nvrtc": "libnvrtc.so", "nvJitLink": "libnvJitLink.so", "cublas": "libcublas.so"}
NCCL = "libnccl.so.2"
SAYS = "cuda probe: "  # prefix of its lines
CAPABILITY = (75, 76)  # a GPU's attributes of these numbers in cuda.h: major, minor


class Missing(Exception):
    """The part is not installed."""


def parts() -> Iterator[tuple[str, Callable[[], object]]]:
    """Each part's name and its test, which returns what it found or raises."""
    yield "driver", driver
    for package, module in PACKAGES.items():
        yield package, partial(imported, package, module)
    for library, file in LIBRARIES.items():
        yield library, partial(loaded, library, file)
    yield "nccl", nccl


def driver() -> dict[str, object]:
    """The newest CUDA that NVIDIA's driver runs, and the GPUs."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Missing from error

    def ask(function: str, *arguments: object) -> None:
        if code := getattr(library, function)(*arguments):
            text = ctypes.c_char_p()
            library.cuGetErrorString(code, ctypes.byref(text))
            raise OSError(f"{function}: {(text.value or b'unknown error').decode()}")

    version, count, major, minor, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    ask("cuInit", 0)
    ask("cuDriverGetVersion", ctypes.byref(version))
    ask("cuDeviceGetCount", ctypes.byref(count))
    gpus = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        ask("cuDeviceGetName", name, len(name), number)
        ask("cuDeviceTotalMem_v2", ctypes.byref(size), number)
        for value, attribute in zip((major, minor), CAPABILITY, strict=True):
            ask("cuDeviceGetAttribute", ctypes.byref(value), attribute, number)
        gpus.append((name.value.decode(), (major.value, minor.value), size.value))
    return {"cuda": (version.value // 1000, version.value % 1000 // 10), "gpus": gpus}


def imported(package: str, module: str) -> str:
    """A package's version, if its module can be imported."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError as error:
        raise Missing from error
    __import__(module)
    return version


def loaded(library: str, file: str) -> str:
    """The version of a library's wheel, or its path, if it can be loaded the way its users load it."""
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

        path = str(load_nvidia_dynamic_lib(library).abs_path)
    except ModuleNotFoundError as error:
        raise Missing from error
    except DynamicLibNotFoundError as error:
        raise Missing from error
    for wheel in importlib.metadata.distributions():
        for owned in (wheel.files or ()) if (wheel.name or "").startswith("nvidia-") else ():
            if owned.name.startswith(file) and str(owned.locate()) == path:
                return wheel.version
    return path


def nccl() -> str:
    """The version of NCCL: the wheel's, or that of the system."""
    found = importlib.util.find_spec("nvidia")
    folders = [*(found.submodule_search_locations or ())] if found else []
    paths = [path for folder in folders if (path := Path(folder, "nccl", "lib", NCCL)).exists()]
    try:
        library = ctypes.CDLL(str(paths[0]) if paths else NCCL)
    except OSError as error:
        if paths:
            raise
        raise Missing from error
    version = ctypes.c_int()
    if status := library.ncclGetVersion(ctypes.byref(version)):
        raise OSError(f"ncclGetVersion: status {status}")
    return f"{version.value // 10000}.{version.value // 100 % 100}.{version.value % 100}"


def tried(attempt: Callable[[], object]) -> tuple[str, object]:
    """An attempt's outcome: ("found", what), ("missing", ..) or ("broken", why)."""
    try:
        return "found", attempt()
    except Missing:
        return "missing", None
    except BaseException as error:  # a package may raise anything, even SystemExit; the doctor goes on
        return "broken", " ".join(f"{type(error).__name__}: {error}".split())


if __name__ == "__main__":
    for name, attempt in parts():
        if name in sys.argv[1:]:
            continue
        print(SAYS + json.dumps([name, "began", None]), flush=True)
        print(SAYS + json.dumps([name, *tried(attempt)]), flush=True)
