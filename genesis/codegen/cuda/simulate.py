"""Running a function on the simulated device: its text as Python, by numba's simulator, on memory of the host."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.codegen.cuda.binaries import names, toolchain
from genesis.codegen.cuda.signature import Function
from genesis.ir.annotations import Attributes
from genesis.runtime.uninterrupted import uninterrupted


class _Memory:
    """A pointer as a kernel sees it: an address with a type."""

    def __init__(self, address: int, dtype: np.dtype) -> None:
        self.address, self.dtype = address, dtype
        self._elements = _memory(dtype, address % dtype.itemsize + dtype.itemsize)
        self._first = address // dtype.itemsize - 1

    def __getitem__(self, index: int) -> np.generic | _Memory:
        return self._elements[self._first + int(index)]

    def __setitem__(self, index: int, value: float) -> None:
        self._elements[self._first + int(index)] = value


class _Pointers(_Memory):
    def __init__(self, address: int, dtype: np.dtype) -> None:
        super().__init__(address, np.dtype(np.int64))
        self.target = dtype

    def __getitem__(self, index: int) -> _Memory:
        return _Memory(int(self._elements[self._first + int(index)]), self.target)


class _Interface:
    def __init__(self, interface: Attributes) -> None:
        self.__array_interface__ = interface


@functools.cache
def _memory(dtype: np.dtype, start: int) -> np.ndarray:
    """All memory of the process from an address on, as elements of a dtype; only single elements are ever touched."""
    # One array over everything from `start` on: pointers of kernels have no extent.
    many = sys.maxsize // dtype.itemsize
    return np.asarray(_Interface({"data": (start, False), "shape": (many,), "typestr": dtype.str, "version": 3}))


@functools.cache
def _kernel(function: Function) -> Any:
    namespace = {**names(), "__name__": function.name}
    exec(compile(function.source, f"<{function.name}>", "exec"), namespace)
    return toolchain().quietly(namespace[function.name])


def run(function: Function, blocks: Sequence[int], threads: Sequence[int], values: Sequence[float]) -> None:
    """Run a function; `values` are its parameters, addresses and numbers. Returns when all threads are done."""
    uninterrupted(_run, function, blocks, threads, values)  # in another thread: a recording would watch numba's simulator


def _run(function: Function, blocks: Sequence[int], threads: Sequence[int], values: Sequence[float]) -> None:
    arguments = [_argument(type_, value) for type_, value in zip(function.parameters, values, strict=True)]
    _kernel(function)[tuple(blocks), tuple(threads)](*arguments)


def _argument(type_: str, value: float) -> _Memory | np.generic:
    dtype = np.dtype(type_.rstrip("*[]"))
    if type_.endswith("**"):
        return _Pointers(int(value), dtype)
    return _Memory(int(value), dtype) if type_[-1] in "*]" else dtype.type(value)
