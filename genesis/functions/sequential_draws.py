"""PyTorch's random numbers on the CPU, drawn in sequence from a Mersenne Twister's words.

Each function consumes the same words in the same order as PyTorch's, so a seed gives the same numbers. Uniform numbers, and
float32 normal ones from 16 elements on, equal those of PyTorch's AVX2 code bit for bit.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from genesis.ir.dtypes import DType, float64, int32
from genesis.runtime.deferred import deferred
from genesis.runtime.mersenne_twister import MersenneTwister

if TYPE_CHECKING:
    from genesis.codegen.cpu.sequential_draws import draw_ir
    from genesis.runtime.kernel_cache import KernelSource, get_or_compile
else:  # with the first number drawn, and `draw_ir` only where the store lacks a kernel
    draw_ir = deferred("genesis.codegen.cpu.sequential_draws", "draw_ir")
    KernelSource = deferred("genesis.runtime.kernel_cache", "KernelSource")
    get_or_compile = deferred("genesis.runtime.kernel_cache", "get_or_compile")

_BLOCK = 16  # PyTorch makes this many normal numbers at once, from as many uniform ones
_LONG = 1 << 28  # from this range on, an integer takes 64 bits


def uniform_doubles(stream: MersenneTwister, count: int) -> np.ndarray:
    """Multiples of 2^-53 in [0, 1)."""
    return (stream.long_words(count) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53


def _uniform_floats(stream: MersenneTwister, count: int) -> np.ndarray:
    """Multiples of 2^-24 in [0, 1), in the words' memory."""
    words = stream.words(count)
    whole, even = count - count % 8, words.view(np.float32)
    _in_place("even", even[:whole])
    even[whole:] = (words[whole:] & np.uint32((1 << 24) - 1)).astype(np.float32) * np.float32(2.0**-24)
    return even


def uniform(stream: MersenneTwister, count: int, dtype: DType, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Numbers in [low, high). As in PyTorch, one that rounds up to `high` in a shorter dtype becomes `low`."""
    even = (uniform_doubles if dtype is float64 else _uniform_floats)(stream, count)
    if (low, high) != (0, 1):
        start, end = np.asarray([low, high], even.dtype)
        _in_place("spread", even, float(end - start), float(start))
    if dtype is dtype.compute:
        return even
    result = even.astype(dtype.numpy)
    start, end = np.asarray([low, high], dtype.numpy)
    result[result >= end] = start
    return result


def normal(stream: MersenneTwister, count: int, dtype: DType, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    """Normal numbers (Box and Muller, 1958): 16 or more in blocks, the last overlapping; fewer in pairs."""
    if count < _BLOCK:
        return (normal_pairs(stream, count) * std + mean).astype(dtype.numpy)
    whole = count - count % _BLOCK
    even = uniform(stream, count if dtype is dtype.compute else whole, dtype.compute)
    result = np.empty(count, dtype.numpy)
    result[:whole] = _blocks(even[:whole], mean, std)
    if whole < count:
        result[-_BLOCK:] = _blocks(uniform(stream, _BLOCK, dtype.compute), mean, std)
    return result


def _blocks(even: np.ndarray, mean: float, std: float) -> np.ndarray:
    if even.dtype == np.float32:
        _in_place("normal", even, std, mean)
        return even
    kind = even.dtype.type
    parts = even.reshape(-1, 2, _BLOCK // 2)
    radius = np.sqrt(kind(-2) * np.log(1 - parts[:, 0]))
    angle = kind(2 * math.pi) * parts[:, 1]
    result = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
    return result if (mean, std) == (0, 1) else result * kind(std) + kind(mean)  # type: ignore[no-any-return]


def normal_pairs(stream: MersenneTwister, count: int) -> np.ndarray:
    """Normal numbers in float64; the second of a pair waits in the stream for the next call."""
    ready = [] if stream.normal is None else [stream.normal]
    pairs = -(-max(count - len(ready), 0) // 2)
    turn, share = uniform_doubles(stream, 2 * pairs).reshape(-1, 2).T
    radius, angle = np.sqrt(-2 * np.log1p(-share)), 2 * math.pi * turn
    drawn = np.concatenate([ready, np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)])
    stream.normal = float(drawn[count]) if count < len(drawn) else None
    return drawn[:count]


def integers(stream: MersenneTwister, count: int, dtype: DType, low: int, high: int) -> np.ndarray:
    """Integers in [low, high), as int64."""
    extent = high - low
    alone = dtype is int32 and (low, high) == (0, 1 << 31)  # all bits of an element
    words = stream.words(count).astype(np.uint64) if alone or extent < _LONG else stream.long_words(count)
    return words.astype(np.int64) if extent == 1 << 64 else (words % np.uint64(extent)).astype(np.int64) + low


def trials(stream: MersenneTwister, count: int, p: float) -> np.ndarray:
    """Whether each of `count` trials of probability `p` succeeds."""
    return (stream.long_words(count) & np.uint64((1 << 53) - 1)) < np.uint64(math.ceil(p * 2.0**53))


def permutation(stream: MersenneTwister, count: int) -> np.ndarray:
    """0 to count-1 in random order (Fisher and Yates)."""
    words = stream.words(max(count - 1, 0))
    order = np.arange(count)
    _in_place("shuffle", order, words.ctypes.data)
    return order


def _in_place(name: str, elements: np.ndarray, *parameters: float) -> None:
    _native(name, elements.dtype, len(parameters))(elements.ctypes.data, elements.size, *parameters)


@functools.cache
def _native(name: str, dtype: np.dtype, parameters: int) -> Callable[..., None]:
    """The function that `draw_ir` writes: of an array's address, its size and parameters of its elements' type."""
    symbol = f"genesis_{name}_{dtype.name}"
    [address] = get_or_compile([KernelSource(symbol, symbol, functools.partial(draw_ir, symbol, name, dtype.name))])
    kinds = [np.ctypeslib.as_ctypes_type(dtype)] * parameters
    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, *kinds)(address)


KINDS: dict[str, Callable[..., np.ndarray]] = {"uniform": uniform, "normal": normal, "randint": integers}
