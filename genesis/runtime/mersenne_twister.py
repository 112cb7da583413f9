"""The words of a Mersenne Twister (M. Matsumoto, T. Nishimura, 1998), seeded and stored as PyTorch's generator of the CPU.

A state's bytes are those of `torch.get_rng_state()`. What takes many words is native code.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.runtime import twister_ir
from genesis.runtime.deferred import deferred

if TYPE_CHECKING:
    from genesis.runtime.kernel_cache import compiled
else:  # with the first number drawn
    compiled = deferred("genesis.runtime.kernel_cache", "compiled")

_STATE = np.dtype({
    "names": ["seed", "left", "seeded", "next", "key", "counter", "normal", "has_normal"],
    "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", 624), "<u8", "<f8", "<i4"],
    "offsets": [0, 8, 12, 16, 24, 5016, 5024, 5040],  # `counter` lies where PyTorch has a number that it does not read
    "itemsize": 5056,
})


class MersenneTwister:
    """A stream of words of 32 bits, and a normal number that waits for the next call, for they are drawn in pairs.

    >>> MersenneTwister(0).words(2).tolist()
    [2357136044, 2546248239]
    """

    __slots__ = ("_key", "normal")

    def __init__(self, seed: int) -> None:
        state: Any = np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=False)
        self._key = _with_position(state["state"]["key"], twister_ir.KEY)
        self.normal: float | None = None

    def words(self, count: int) -> np.ndarray:
        """The next `count` words."""
        words = np.empty(count, np.uint32)
        _take_words()(self._key.ctypes.data, words.ctypes.data, count)
        return words

    def long_words(self, count: int) -> np.ndarray:
        """The next `count` pairs of words as words of 64 bits, the first of a pair above."""
        halves = self.words(2 * count).view(np.uint64)
        return halves << np.uint64(32) | halves >> np.uint64(32)

    def state(self, seed: int, counter: int) -> bytes:
        """Its state together with a generator's seed and counter."""
        position = int(self._key[-1])
        record = np.zeros((), _STATE)
        record["seed"], record["seeded"], record["left"], record["next"] = seed, 1, 625 - position, position % 624
        record["key"], record["counter"] = self._key[:-1], counter
        record["normal"], record["has_normal"] = self.normal or 0.0, self.normal is not None
        return record.tobytes()

    def set_state(self, state: bytes) -> tuple[int, int]:
        """Continue from the bytes that `state` gave; returns the seed and the counter in them."""
        (record,) = np.frombuffer(state, _STATE)
        self._key = _with_position(record["key"], 625 - int(record["left"]))
        self.normal = float(record["normal"]) if record["has_normal"] else None
        return int(record["seed"]), int(record["counter"])


STATE_BYTES = _STATE.itemsize


def _with_position(key: np.ndarray, position: int) -> np.ndarray:
    """A key, followed by the position of its next word; a position out of range becomes the end."""
    state = np.empty(twister_ir.KEY + 1, np.uint32)
    state[:-1], state[-1] = key, position if 0 <= position < twister_ir.KEY else twister_ir.KEY
    return state


@functools.cache
def _take_words() -> Callable[[int, int, int], None]:
    """The native function. It holds the interpreter's lock: no two threads take the same words."""
    kind = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    return kind(compiled("genesis_twister_words", twister_ir.WORDS))
