"""The words of a Mersenne Twister (M. Matsumoto, T. Nishimura, 1998), seeded and stored as PyTorch's generator of the CPU.

NumPy makes the words. A state's bytes are those of `torch.get_rng_state()`.
"""

from __future__ import annotations

import numpy as np

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

    __slots__ = ("_bits", "normal")

    def __init__(self, seed: int) -> None:
        self._bits = np.random.MT19937()
        self._bits.state = np.random.RandomState(seed & 0xFFFFFFFF).get_state(legacy=False)  # type: ignore[assignment]
        self.normal: float | None = None

    def words(self, count: int) -> np.ndarray:
        """The next `count` words."""
        return self._bits.random_raw(count).astype(np.uint32)

    def long_words(self, count: int) -> np.ndarray:
        """The next `count` pairs of words as words of 64 bits, the first of a pair above."""
        halves = self.words(2 * count).view(np.uint64)
        return halves << np.uint64(32) | halves >> np.uint64(32)

    def state(self, seed: int, counter: int) -> bytes:
        """Its state together with a generator's seed and counter."""
        inner = self._bits.state["state"]
        place = inner["pos"]
        record = np.zeros((), _STATE)
        record["seed"], record["seeded"], record["left"], record["next"] = seed, 1, 625 - place, place % 624
        record["key"], record["counter"] = inner["key"], counter
        record["normal"], record["has_normal"] = self.normal or 0.0, self.normal is not None
        return record.tobytes()

    def set_state(self, state: bytes) -> tuple[int, int]:
        """Continue from the bytes that `state` gave; returns the seed and the counter in them."""
        (record,) = np.frombuffer(state, _STATE)
        place = 625 - int(record["left"])
        self._bits.state = {
            "bit_generator": "MT19937", "state": {"key": record["key"].astype(np.uint32), "pos": place}}
        self.normal = float(record["normal"]) if record["has_normal"] else None
        return int(record["seed"]), int(record["counter"])


STATE_BYTES = _STATE.itemsize
