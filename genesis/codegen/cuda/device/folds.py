"""The threads' results joined: those of a warp by exchange, those of a block through shared memory.

All threads that share a result call a fold together, and all of them get it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.codegen.cuda.device.real import maximum, minimum
from genesis.codegen.cuda.target import WARP
from genesis.codegen.cuda.toolchain import device as cuda
from genesis.codegen.cuda.toolchain import device_function, exchanged

__all__ = [
    "argmax_of", "argmin_of", "block_argmax", "block_argmin", "block_max", "block_min", "block_prod", "block_sum",
    "column_argmax", "column_argmin", "column_max", "column_min", "column_prod", "column_sum", "warp_argmax", "warp_argmin",
    "warp_max", "warp_min", "warp_prod", "warp_sum",
]


@device_function
def _thread() -> Any:
    """A thread's number in its block."""
    return cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x


def _folds(join: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """The functions that join values by `join`: of a warp, of a block, and of the threads with one x of a block."""

    @device_function
    def of_warp(x: Any) -> Any:
        offset = WARP // 2
        while offset:
            x = join(x, exchanged(x, offset))
            offset //= 2
        return x

    @device_function
    def of_block(x: Any, shared: Any) -> Any:
        x = of_warp(x)
        if _thread() % WARP == 0:
            shared[_thread() // WARP] = x
        cuda.syncthreads()
        x = shared[0]
        for warp in range(1, cuda.blockDim.x * cuda.blockDim.y // WARP):
            x = join(x, shared[warp])
        cuda.syncthreads()
        return x

    @device_function
    def of_column(x: Any, shared: Any) -> Any:
        shared[_thread()] = x
        cuda.syncthreads()
        x = shared[cuda.threadIdx.x]
        for y in range(1, cuda.blockDim.y):
            x = join(x, shared[cuda.threadIdx.x + y * cuda.blockDim.x])
        cuda.syncthreads()
        return x

    return of_warp, of_block, of_column


@device_function
def _sum(x: Any, y: Any) -> Any:
    return x + y


@device_function
def _product(x: Any, y: Any) -> Any:
    return x * y


warp_sum, block_sum, column_sum = _folds(_sum)
warp_prod, block_prod, column_prod = _folds(_product)
warp_max, block_max, column_max = _folds(maximum)
warp_min, block_min, column_min = _folds(minimum)


# ---- positions: the first NaN, or else the first of the greatest; a position of -1 stands for nothing ----

@device_function
def argmax_of(x: Any, place: Any, y: Any, other: Any) -> Any:
    """The greater of two values with its place."""
    if other < 0 or (place >= 0 and (x > y or (x != x and y == y))):
        return x, place
    if place >= 0 and place < other and (x == y or x != x):
        return x, place
    return y, other


@device_function
def argmin_of(x: Any, place: Any, y: Any, other: Any) -> Any:
    """The lesser of two values with its place."""
    if other < 0 or (place >= 0 and (x < y or (x != x and y == y))):
        return x, place
    if place >= 0 and place < other and (x == y or x != x):
        return x, place
    return y, other


def _place_folds(join: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """As `_folds`, of values with their places."""

    @device_function
    def of_warp(x: Any, place: Any) -> Any:
        offset = WARP // 2
        while offset:
            x, place = join(x, place, exchanged(x, offset), exchanged(place, offset))
            offset //= 2
        return x, place

    @device_function
    def of_block(x: Any, place: Any, shared: Any, places: Any) -> Any:
        x, place = of_warp(x, place)
        if _thread() % WARP == 0:
            shared[_thread() // WARP], places[_thread() // WARP] = x, place
        cuda.syncthreads()
        x, place = shared[0], places[0]
        for warp in range(1, cuda.blockDim.x * cuda.blockDim.y // WARP):
            x, place = join(x, place, shared[warp], places[warp])
        cuda.syncthreads()
        return x, place

    @device_function
    def of_column(x: Any, place: Any, shared: Any, places: Any) -> Any:
        shared[_thread()], places[_thread()] = x, place
        cuda.syncthreads()
        x, place = shared[cuda.threadIdx.x], places[cuda.threadIdx.x]
        for y in range(1, cuda.blockDim.y):
            at = cuda.threadIdx.x + y * cuda.blockDim.x
            x, place = join(x, place, shared[at], places[at])
        cuda.syncthreads()
        return x, place

    return of_warp, of_block, of_column


warp_argmax, block_argmax, column_argmax = _place_folds(argmax_of)
warp_argmin, block_argmin, column_argmin = _place_folds(argmin_of)
