"""Horizontal reductions over threads: those of a warp by exchange, those of a block through shared memory.

All threads of the team must call one, since it has barriers, and all get the result. Values are combined in the order of the
threads, so a result has the same bits every time.
"""

from __future__ import annotations

from collections.abc import Callable

from genesis.codegen.cuda.device.arithmetic import maximum, minimum
from genesis.codegen.cuda.target import WARP
from genesis.codegen.cuda.toolchain import Elements, device as cuda, device_function, exchanged

Reduction = Callable[..., float | tuple[float, int]]  # (values, shared arrays) -> the result of all threads


@device_function
def _thread() -> int:
    """A thread's number in its block."""
    return cuda.threadIdx.x + cuda.threadIdx.y * cuda.blockDim.x


def _reductions(combine: Callable[[float, float], float]) -> tuple[Reduction, Reduction, Reduction]:
    """The reductions with `combine` over a warp, a block, and a column: the threads of a block that have one x."""

    @device_function
    def of_warp(x: float) -> float:
        offset = WARP // 2
        while offset:
            x = combine(x, exchanged(x, offset))
            offset //= 2
        return x

    @device_function
    def of_block(x: float, shared: Elements) -> float:
        x = of_warp(x)
        if _thread() % WARP == 0:
            shared[_thread() // WARP] = x
        cuda.syncthreads()
        x = shared[0]  # every thread combines all warps' values: no broadcast, no barrier for it
        for warp in range(1, cuda.blockDim.x * cuda.blockDim.y // WARP):
            x = combine(x, shared[warp])
        cuda.syncthreads()  # the next reduction writes the same shared memory
        return x

    @device_function
    def of_column(x: float, shared: Elements) -> float:
        shared[_thread()] = x
        cuda.syncthreads()
        x = shared[cuda.threadIdx.x]
        for y in range(1, cuda.blockDim.y):
            x = combine(x, shared[cuda.threadIdx.x + y * cuda.blockDim.x])
        cuda.syncthreads()
        return x

    return of_warp, of_block, of_column


@device_function
def _sum(x: float, y: float) -> float:
    return x + y


@device_function
def _product(x: float, y: float) -> float:
    return x * y


warp_sum, block_sum, column_sum = _reductions(_sum)
warp_prod, block_prod, column_prod = _reductions(_product)
warp_max, block_max, column_max = _reductions(maximum)
warp_min, block_min, column_min = _reductions(minimum)


# ---- positions: the first NaN, or else the first of the greatest; a position of -1 stands for nothing ----
@device_function
def argmax_of(x: float, position: int, y: float, other: int) -> tuple[float, int]:
    """The greater of two values with its position."""
    if other < 0 or (position >= 0 and (x > y or (x != x and y == y))):
        return x, position
    if position >= 0 and position < other and (x == y or x != x):
        return x, position
    return y, other


@device_function
def argmin_of(x: float, position: int, y: float, other: int) -> tuple[float, int]:
    """The lesser of two values with its position."""
    if other < 0 or (position >= 0 and (x < y or (x != x and y == y))):
        return x, position
    if position >= 0 and position < other and (x == y or x != x):
        return x, position
    return y, other


def _positional(combine: Callable[..., tuple[float, int]]) -> tuple[Reduction, Reduction, Reduction]:
    """As `_reductions`, for values with their positions."""

    @device_function
    def of_warp(x: float, position: int) -> tuple[float, int]:
        offset = WARP // 2
        while offset:
            x, position = combine(x, position, exchanged(x, offset), exchanged(position, offset))
            offset //= 2
        return x, position

    @device_function
    def of_block(x: float, position: int, shared: Elements, positions: Elements) -> tuple[float, int]:
        x, position = of_warp(x, position)
        if _thread() % WARP == 0:
            shared[_thread() // WARP], positions[_thread() // WARP] = x, position
        cuda.syncthreads()
        x, position = shared[0], positions[0]
        for warp in range(1, cuda.blockDim.x * cuda.blockDim.y // WARP):
            x, position = combine(x, position, shared[warp], positions[warp])
        cuda.syncthreads()
        return x, position

    @device_function
    def of_column(x: float, position: int, shared: Elements, positions: Elements) -> tuple[float, int]:
        shared[_thread()], positions[_thread()] = x, position
        cuda.syncthreads()
        x, position = shared[cuda.threadIdx.x], positions[cuda.threadIdx.x]
        for y in range(1, cuda.blockDim.y):
            at = cuda.threadIdx.x + y * cuda.blockDim.x
            x, position = combine(x, position, shared[at], positions[at])
        cuda.syncthreads()
        return x, position

    return of_warp, of_block, of_column


warp_argmax, block_argmax, column_argmax = _positional(argmax_of)
warp_argmin, block_argmin, column_argmin = _positional(argmin_of)
