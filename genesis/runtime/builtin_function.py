"""Machine code as builtin functions."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from typing import Any

METH_O, METH_FASTCALL = 8, 0x80  # it takes one argument; any number of them, in C's array


def builtin(name: bytes, address: int, flags: int, *first: object) -> Callable[..., Any]:
    """The builtin function of the machine code at `address`; its `self` is `first`, and what keeps it alive."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # CPython's PyMethodDef, in memory that the collector does not clear before the function.
    method = array("Q", [ctypes.cast(ctypes.c_char_p(name), ctypes.c_void_p).value or 0, address, flags, 0])
    function: Callable[..., Any] = make(method.buffer_info()[0], (*first, name, method), None)
    return function
