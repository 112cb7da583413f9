"""A GPU simulated by the host, in its memory: kernels are Python functions.

Commands run when they are submitted, so the programs' stream is always empty. Communication may take effect later (`defer`):
when a thread waits for a mark after it, or finds it passed after a while. During a capture commands are recorded, and run when
the graph is launched.
"""

from __future__ import annotations

import bisect
import ctypes
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from genesis.runtime.cuda.gpu import Command, Gpu, Image, LaunchError, Loaded, Mark, Properties

TOTAL = 1 << 30
LATENCY = 0.01  # seconds that what is deferred takes, if nobody waits
_ALIGNMENT = 512


class SimulatedMark(NamedTuple):
    """A time, and the number of commands submitted to a stream before it; within a capture, the mark's number."""

    seconds: float
    communicates: bool
    position: int
    capture: SimulatedCapture | None = None
    number: int = 0


class SimulatedCapture:
    """The effects of a graph, in order; each gets the marks set before it in the same launch.

    `forked`: whether the communication stream takes part; `open`: its effects for which programs do not wait yet.
    """

    def __init__(self) -> None:
        self.effects: list[Callable[[list[Mark]], object]] = []
        self.marks = 0
        self.forked, self.open = False, 0

    def launch(self) -> None:
        """Run all effects."""
        marks: list[Mark] = []
        for effect in self.effects:
            effect(marks)


class SimulatedGpu(Gpu):
    """A GPU with `total` bytes of memory, allocated on the host as needed."""

    def __init__(self, index: int, total: int = TOTAL) -> None:
        super().__init__(index)
        self.name = "simulated GPU"
        self.capability = 9, 0
        self.processors = 2
        self.total = total
        self.submitted = [0, 0]  # to the stream of programs, and to that of what communicates
        self.held = [0, 0]  # how much of the other one each waits for
        self.capture: SimulatedCapture | None = None
        self._deferred: deque[tuple[int, Callable[[], None]]] = deque()
        self._memory: dict[int, np.ndarray] = {}
        self._addresses: list[int] = []

    def properties(self) -> Properties:
        return Properties(self.name, *self.capability, self.total, self.processors, 8, 1 << 16, 48 << 10, 48 << 10, 0, 4, 1)

    # ---- memory ----
    def free_and_total(self) -> tuple[int, int]:
        return self.total - sum(len(block) for block in self._memory.values()), self.total

    def allocate(self, nbytes: int) -> int:
        if nbytes > self.free_and_total()[0]:
            return 0
        block = np.full(nbytes + _ALIGNMENT, 0xCB, np.uint8)  # a pattern: reads of what was never written show
        block = block[-block.ctypes.data % _ALIGNMENT :][:nbytes]
        address = block.ctypes.data
        self._memory[address] = block
        bisect.insort(self._addresses, address)
        return address

    def release(self, address: int) -> None:
        del self._memory[address]
        self._addresses.remove(address)

    def owner_of(self, address: int) -> int:
        return self.index

    def pinned(self, nbytes: int) -> np.ndarray:
        return np.empty(nbytes, np.uint8)

    def _bytes(self, address: int, nbytes: int | None = None) -> np.ndarray:
        """The bytes from an address on, to the end of its allocation or `nbytes`."""
        index = bisect.bisect_right(self._addresses, address) - 1
        start = self._addresses[index] if index >= 0 else 0
        rest = self._memory[start][address - start :] if index >= 0 else np.empty(0, np.uint8)
        if len(rest) < (nbytes or 1):
            raise RuntimeError(f"CUDA: {nbytes or 1} bytes at {address:#x} are not in the GPU's memory")
        return rest[:nbytes]

    def copy_in(self, address: int, values: np.ndarray) -> None:
        self.submitted[0] += 1
        self._bytes(address, values.nbytes)[:] = values.reshape(-1).view(np.uint8)

    def copy_out(self, values: np.ndarray, address: int) -> None:
        values[:] = self._bytes(address, values.nbytes)

    def copy(self, address: int, source: int, nbytes: int, communicates: bool = False) -> None:
        addresses = self._bytes(address, nbytes).ctypes.data, self._bytes(source, nbytes).ctypes.data
        self.do(partial(ctypes.memmove, *addresses, nbytes), communicates)

    def clear(self, address: int, nbytes: int) -> None:
        self.submitted[0] += 1
        self._bytes(address, nbytes)[:] = 0

    # ---- order ----
    def do(self, effect: Callable[[], object], communicates: bool = False) -> None:
        """Run an effect on a stream: now or, during a capture, whenever the graph is launched.

        Raises RuntimeError during a capture that the stream is not part of.
        """
        self.submitted[communicates] += 1
        if self.capture is None:
            effect()
            return
        if communicates and not self.capture.forked:
            raise RuntimeError("the stream of what communicates is not being captured")
        self.capture.open += communicates
        self.capture.effects.append(lambda marks: self.do(effect, communicates))

    def mark(self, timed: bool = False, sleeping: bool = False, communicates: bool = False) -> Mark:
        capture = self.capture
        made = SimulatedMark(time.perf_counter(), communicates, self.submitted[communicates], capture)
        if capture is not None:
            made = made._replace(number=capture.marks)
            capture.marks += 1
            capture.effects.append(lambda marks: marks.append(self.mark(communicates=communicates)))
        return made

    def hold(self, mark: Mark, communicates: bool = False) -> None:
        capture = self.capture
        if mark.capture is not capture:
            raise RuntimeError("a stream is to wait for what is not part of the graph that is captured")
        self.held[communicates] = max(self.held[communicates], mark.position)
        if capture is None:
            self.wait(mark)
            return
        capture.effects.append(lambda marks: self.hold(marks[mark.number], communicates))
        if communicates:
            capture.forked = True
        elif mark.communicates and mark.position == self.submitted[1]:
            capture.open = 0

    def defer(self, effect: Callable[[], None]) -> None:
        """Submit to the communication stream an effect that happens once a thread waits for a mark after it."""
        self.submitted[1] += 1
        self._deferred.append((self.submitted[1], effect))

    def wait(self, mark: Mark) -> None:
        while mark.communicates and self._deferred and self._deferred[0][0] <= mark.position:
            self._deferred.popleft()[1]()

    def has_passed(self, mark: Mark) -> bool:
        if time.perf_counter() - mark.seconds > LATENCY:
            self.wait(mark)
        return not (mark.communicates and self._deferred and self._deferred[0][0] <= mark.position)

    def seconds_between(self, first: Mark, second: Mark) -> float:
        return float(second.seconds - first.seconds)

    def synchronize(self) -> None:
        while self._deferred:
            self._deferred.popleft()[1]()

    def wait_for(self, stream: int) -> None:
        pass

    @property
    def stream(self) -> int:
        return 0

    @property
    def communication_stream(self) -> int:
        return 1

    # ---- kernels ----
    def load(self, image: Image, name: str) -> Loaded:
        return image

    def command(
        self, function: Loaded, blocks: Sequence[int], threads: Sequence[int], types: Sequence[str], arguments: Sequence[float]
    ) -> Command:
        return partial(self.do, partial(function, blocks, threads, arguments))

    def submit(self, commands: Sequence[Command], after: Command = int) -> None:
        for number, command in enumerate(commands):
            try:
                command()
            except RuntimeError as problem:
                raise LaunchError(str(problem), number, isinstance(problem, LaunchError)) from problem
        after()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def timed(self, commands: Sequence[Command]) -> tuple[list[Command], Callable[[], list[float]]]:
        times: list[float] = []

        def mark() -> None:
            times.append(time.perf_counter())

        between = [mark, *[each for command in commands for each in (command, mark)]]
        return between, lambda: [after - before for before, after in pairwise(times)]

    def captured(self, commands: Sequence[Command]) -> Command:
        capture = self.capture = SimulatedCapture()
        try:
            self.submit(commands)
        finally:
            self.capture = None
        if capture.open:
            raise RuntimeError("a graph ends while what communicates in it is under way")
        return capture.launch
