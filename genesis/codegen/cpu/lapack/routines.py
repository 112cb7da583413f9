"""The addresses of LAPACK's and BLAS' routines, which SciPy exports for Cython, and their workspace queries."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from genesis.runtime.deferred import import_whole

ARGUMENTS = 16  # the most that a routine takes; one with fewer parameters ignores the rest
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_NAMES = [f"{prefix}openblas_{{}}_num_threads{suffix}" for suffix in ("64_", "") for prefix in ("scipy_", "")]


@cache
def address(name: str) -> int:
    """The address of a routine, whose arguments are pointers."""
    modules = import_whole("scipy.linalg.cython_lapack"), import_whole("scipy.linalg.cython_blas")
    capsule = next(module.__pyx_capi__[name] for module in modules if name in module.__pyx_capi__)
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found: int = pointer_of(capsule, name_of(capsule))
    return found


def workspace(name: str, arguments: Sequence[bytes], kinds: dict[int, str]) -> dict[str, int]:
    """The workspace that a routine asks for, in elements by kind: a query writes it to the arguments at the indices `kinds`."""
    memory = [ctypes.create_string_buffer(argument, 32) for argument in arguments]
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(memory))(address(name))
    routine(*map(ctypes.addressof, memory))
    real = ctypes.c_float if name[0] in "sc" else ctypes.c_double
    sizes = {}
    for index, kind in kinds.items():
        number = (ctypes.c_int if kind == "integers" else real).from_buffer(memory[index]).value
        sizes[kind] = int(number * (1 + 1e-6)) + 1  # in single precision it may have been rounded down
    return sizes


class BlasThreads(NamedTuple):
    """The addresses of the functions that get and set the threads of SciPy's BLAS, 0 if it is not OpenBLAS; and of the limit's
    state: a lock, how many launches limit them, and how many threads there were before the first."""

    get: int
    set: int
    state: int


_state = array("q", [0, 0, 0])


@cache
def blas_threads() -> BlasThreads:
    """The thread controls of this process' BLAS."""
    linked = ctypes.PyDLL(str(import_whole("scipy.linalg._flapack").__file__))  # and what it links to
    name = next((name for name in _NAMES if hasattr(linked, name.format("set"))), None)
    found = [name and ctypes.cast(getattr(linked, name.format(what)), ctypes.c_void_p).value for what in ("get", "set")]
    return BlasThreads(found[0] or 0, found[1] or 0, _state.buffer_info()[0])
