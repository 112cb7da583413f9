"""A block of the simulated GPU, whose threads run one after the other from barrier to barrier.

Numba's simulator runs a thread of the host for each thread of a block, all at once, and polls them. Here one runs at a time, to
the next barrier, in an order that reverses at each: a read of what a neighbour writes without a barrier between comes too early
in one of the two orders, so a missing barrier always shows. Tests of the simulator take a third of the time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numba.cuda.simulator.kernelapi import Dim3

from genesis.runtime.system import at_fork


class Block:
    """A block as numba's simulator calls it: made for a function and the shapes of grid and block, run at a grid position."""

    def __init__(self, function: Callable[..., None], grid: Sequence[int], shape: Sequence[int], debug: bool) -> None:
        self._function, self._shape = function, tuple(shape)
        self.shared: dict[int, np.ndarray] = {}  # shared arrays, by the source lines that ask for them
        self.given: dict[int, float] = {}  # the values that threads exchange, by their numbers
        self.error: BaseException | None = None

    def run(self, position: Sequence[int], *arguments: object) -> None:
        """Run all threads to their ends. Raises what the first that fails raises."""
        self._position, self._arguments = Dim3(*position), arguments
        points = list(np.ndindex(self._shape))
        self._points = iter(points[:: -1 if sum(position) % 2 else 1])
        # One thread of the host at a time: the simulator's tests took 64 s, and take 15.
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
            player.blockIdx, player.threadIdx = self._position, Dim3(x, y, z)
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
at_fork(after_in_child=_idle.clear)
