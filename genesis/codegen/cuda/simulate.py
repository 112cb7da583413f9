"""Running a function on the simulated device: its text as Python, by numba's simulator, on memory of the host."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.codegen.cuda.binaries import names, toolchain
from genesis.codegen.cuda.signature import Function

__all__ = ["run"]


class _Memory:
    """A pointer as a kernel sees it: an address with a type."""

    def __init__(self, address: int, dtype: Any) -> None:
        self.address = address
        self.dtype = dtype

    def _element(self, index: Any) -> Any:
        at = self.address + int(index) * self.dtype.itemsize
        return np.asarray(_Interface({"data": (at, False), "shape": (1,), "typestr": self.dtype.str, "version": 3}))

    def __getitem__(self, index: Any) -> Any:
        return self._element(index)[0]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._element(index)[0] = value


class _Pointers(_Memory):
    """A pointer to pointers."""

    def __init__(self, address: int, dtype: Any) -> None:
        super().__init__(address, np.dtype(np.int64))
        self.target = dtype

    def __getitem__(self, index: Any) -> Any:
        return _Memory(int(super().__getitem__(index)), self.target)


class _Interface:
    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


@functools.cache
def _kernel(function: Function) -> Any:
    namespace = {**names(), "__name__": function.name}
    exec(compile(function.source, f"<{function.name}>", "exec"), namespace)
    return toolchain().quietly(namespace[function.name])


def run(function: Function, blocks: Sequence[int], threads: Sequence[int], values: Sequence[float]) -> None:
    """Run a function; `values` are its parameters, addresses and numbers. Returns when all threads are done."""
    arguments = [_argument(type_, value) for type_, value in zip(function.parameters, values, strict=True)]
    _kernel(function)[tuple(blocks), tuple(threads)](*arguments)


def _argument(type_: str, value: float) -> Any:
    dtype = np.dtype(type_.rstrip("*[]"))
    if type_.endswith("**"):
        return _Pointers(int(value), dtype)
    return _Memory(int(value), dtype) if type_[-1] in "*]" else dtype.type(value)
