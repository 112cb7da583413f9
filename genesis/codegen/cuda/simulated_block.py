"""The threads of a simulated block take turns.

Numba's simulator lets a thread of the host run for each of a block's, all at once, and asks them again and again whether they
wait. Here one runs at a time, to the next barrier, in an order that turns round at each: who reads what a neighbour writes
and does not wait for it comes too early in one order or the other, whenever it is run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.cuda.simulator.kernelapi import Dim3

__all__ = ["Block"]


class Block:
    """A block as numba's simulator wants it: made for a function, a grid's shape and its own, and run at a place."""

    def __init__(self, function: Callable[..., None], grid: Sequence[int], shape: Sequence[int], debug: bool) -> None:
        self._function, self._shape = function, tuple(shape)
        self.shared: dict[int, Any] = {}  # the arrays that its threads share, by the lines that ask for them
        self.given: dict[int, Any] = {}  # what threads give one another, by their numbers
        self.error: BaseException | None = None

    def run(self, place: Sequence[int], *arguments: Any) -> None:
        """Run all threads to their ends. Raises what the first that fails raises."""
        self._place, self._arguments = Dim3(*place), arguments
        points = list(np.ndindex(self._shape))
        self._points = iter(points[:: -1 if sum(place) % 2 else 1])
        waiting = []
        while (player := _idle.pop() if _idle else _Player()).waits_after_a_turn(self):
            waiting.append(player)
        while waiting:
            waiting = [player for player in reversed(waiting) if player.waits_after_a_turn(self)]
        if self.error:
            raise self.error

    def play(self, player: _Player) -> None:
        """Run threads that no other player has begun, one after the other."""
        for x, y, z in self._points:
            player.blockIdx, player.threadIdx = self._place, Dim3(x, y, z)
            player.thread_id = x + self._shape[0] * (y + self._shape[1] * z)
            self._function(*self._arguments)


class _Player(threading.Thread):
    """A thread of the host that plays threads of blocks; in a kernel, numba's simulator asks it where it is."""

    block: Block
    blockIdx: Dim3
    threadIdx: Dim3
    thread_id: int

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._turn, self._pause = threading.Lock(), threading.Lock()  # let go of when it has its turn, and when that is over
        self._turn.acquire()
        self._pause.acquire()
        self._waits = False
        self.start()

    def waits_after_a_turn(self, block: Block) -> bool:
        """Let it play until its thread waits for others, or there is none that it could begin: then it is idle."""
        self.block = block
        self._turn.release()
        self._pause.acquire()
        if not self._waits:
            _idle.append(self)
        return self._waits

    def run(self) -> None:
        while True:
            self._turn.acquire()
            try:
                self.block.play(self)
            except BaseException as error:
                self.block.error = self.block.error or error
            self._waits = False
            self._pause.release()

    def syncthreads(self) -> None:
        """Wait until each thread of the block that has not ended waits."""
        self._waits = True
        self._pause.release()
        self._turn.acquire()
        if self.block.error:
            raise RuntimeError("another thread of the block has failed")


_idle: list[_Player] = []
os.register_at_fork(after_in_child=_idle.clear)
