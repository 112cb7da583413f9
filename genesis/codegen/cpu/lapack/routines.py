"""The addresses of LAPACK's and BLAS' routines, which SciPy exports for Cython, and how much memory they ask for."""

from __future__ import annotations

import ctypes
import importlib
from array import array
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

ARGUMENTS = 16  # the most that any routine here takes: a callee reads no more than it has
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_NAMES = [f"{prefix}openblas_{{}}_num_threads{suffix}" for suffix in ("64_", "") for prefix in ("scipy_", "")]


@cache
def address(name: str) -> int:
    """The address of a routine, whose arguments are pointers."""
    modules = importlib.import_module("scipy.linalg.cython_lapack"), importlib.import_module("scipy.linalg.cython_blas")
    capsule = next(module.__pyx_capi__[name] for module in modules if name in module.__pyx_capi__)
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found: int = pointer_of(capsule, name_of(capsule))
    return found


def workspace(name: str, arguments: Sequence[bytes], kinds: dict[int, str]) -> dict[str, int]:
    """How many elements a routine wants of each kind of memory: it writes them to the arguments at the places `kinds`."""
    memory = [ctypes.create_string_buffer(argument, 32) for argument in arguments]
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(memory))(address(name))
    routine(*map(ctypes.addressof, memory))
    real = ctypes.c_float if name[0] in "sc" else ctypes.c_double
    found = {}
    for at, kind in kinds.items():
        number = (ctypes.c_int if kind == "integers" else real).from_buffer(memory[at]).value
        found[kind] = int(number * (1 + 1e-6)) + 1  # in single precision it may have been rounded down
    return found


class BlasThreads(NamedTuple):
    """The functions that tell and set how many threads SciPy's BLAS uses, 0 if it is not OpenBLAS; and who limits them: a lock,
    how many launches do, and how many threads there were before the first."""

    get: int
    set: int
    state: int


_state = array("q", [0, 0, 0])


@cache
def blas_threads() -> BlasThreads:
    """Those of this process."""
    linked = ctypes.PyDLL(str(importlib.import_module("scipy.linalg._flapack").__file__))  # and what it is linked to
    name = next((name for name in _NAMES if hasattr(linked, name.format("set"))), None)
    found = [name and ctypes.cast(getattr(linked, name.format(what)), ctypes.c_void_p).value for what in ("get", "set")]
    return BlasThreads(found[0] or 0, found[1] or 0, _state.buffer_info()[0])
