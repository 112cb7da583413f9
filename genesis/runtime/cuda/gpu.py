"""What genesis wants of a GPU: the narrow way to the driver, of which there are two, a real one and a simulated one.

A GPU has one stream. Work is done in the order in which it was asked for, and nobody waits for it but `synchronize` and
`download`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Gpu", "LaunchError", "OutOfMemoryError", "Properties", "UnavailableError"]


class UnavailableError(RuntimeError):
    """There is nothing to drive GPUs with."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """A GPU has not as much memory left as was asked for."""


class LaunchError(RuntimeError):
    """Of some commands, number `failed` could not be begun, nor were those after it; it may have done a part, if `in_part`."""

    def __init__(self, said: str, failed: int, in_part: bool = False) -> None:
        super().__init__(said)
        self.failed = failed
        self.in_part = in_part


class Properties(NamedTuple):
    """What a GPU is, under PyTorch's names; sizes in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    warp_size: int
    is_integrated: int


class Gpu(ABC):
    """A GPU with its context and its stream.

    Attributes:
        index: its number.
        name: what it is called.
        capability: (major, minor).
        processors: how many blocks of threads it works on at a time, at least.
        functions: those that were loaded, by what they were made of.
        has_blas: whether a `Gemm` is a function here, too.
    """

    name: str
    capability: tuple[int, int]
    processors: int
    has_blas = False

    def __init__(self, index: int) -> None:
        self.index = index
        self.functions: dict[Any, Any] = {}

    @abstractmethod
    def properties(self) -> Properties:
        """What it is."""

    # ---- memory ----

    @abstractmethod
    def free_and_total(self) -> tuple[int, int]:
        """The bytes that are free, and all there are."""

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """The address of new memory; 0 if there is not enough."""

    @abstractmethod
    def release(self, address: int) -> None:
        """Give back what `allocate` gave. Work that may still touch it has to be done."""

    @abstractmethod
    def owner_of(self, address: int) -> int:
        """The number of the GPU whose memory is at an address; that of this one for none."""

    @abstractmethod
    def pinned(self, nbytes: int) -> np.ndarray:
        """Bytes of the host that copies read and write while the host goes on; for good."""

    @abstractmethod
    def copy_in(self, address: int, values: np.ndarray) -> None:
        """Copy contiguous pinned values to the GPU. They may be changed once a mark set after this is passed."""

    @abstractmethod
    def copy_out(self, values: np.ndarray, address: int) -> None:
        """Copy from the GPU over contiguous pinned values, which are there once a mark set after this is passed."""

    @abstractmethod
    def copy(self, address: int, source: int, nbytes: int) -> None:
        """Copy within the GPU."""

    @abstractmethod
    def clear(self, address: int, nbytes: int) -> None:
        """Fill with zeros."""

    # ---- order ----

    @abstractmethod
    def mark(self, timed: bool = False, sleeping: bool = False) -> Any:
        """A mark in the stream behind all that was asked for so far: with the time; who waits for it may sleep."""

    @abstractmethod
    def wait(self, mark: Any) -> None:
        """Wait until the work before a mark is done."""

    @abstractmethod
    def has_passed(self, mark: Any) -> bool:
        """Whether the work before a mark is done."""

    @abstractmethod
    def seconds_between(self, first: Any, second: Any) -> float:
        """From one timed mark, which has been passed, to another."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all is done. Raises RuntimeError if some of it failed."""

    @abstractmethod
    def wait_for(self, stream: int) -> None:
        """Wait until the work of another library's stream is done."""

    @property
    @abstractmethod
    def stream(self) -> int:
        """The stream's handle."""

    # ---- kernels ----

    @abstractmethod
    def load(self, image: Any, name: str) -> Any:
        """A function of an image, ready to be launched: machine code; where that is simulated, a function of (blocks, threads,
        arguments). Raises RuntimeError if it cannot be.
        """

    @abstractmethod
    def command(
        self, function: Any, blocks: Sequence[int], threads: Sequence[int], types: Sequence[str], arguments: Sequence[float]
    ) -> Callable[[], Any]:
        """A launch of up to three axes of blocks of threads, to be submitted.

        `arguments` fill parameters of `types`: `int64`, `float64`, `float32*`, `float32[]`.
        """

    @abstractmethod
    def submit(self, commands: Sequence[Callable[[], Any]], after: Callable[[], Any] = int) -> None:
        """Begin the commands, in order, and call `after`. No interrupt comes between. Raises LaunchError at the first that
        fails, and begins no more.
        """

    @abstractmethod
    def timed(self, commands: Sequence[Callable[[], Any]]) -> tuple[list[Callable[[], Any]], Callable[[], list[float]]]:
        """The commands with marks between them; and, for when they have been submitted, how many seconds each took."""

    @abstractmethod
    def captured(self, commands: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """One command that does what `commands` do."""
