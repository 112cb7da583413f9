"""The interface to a GPU, implemented twice: by NVIDIA's driver and by a simulation on the host.

A GPU has one stream for programs and copies: work runs in the order of its submission, and only `synchronize`, `wait` and
`wait_for` wait for it. What communicates has a second one; `hold` orders the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from genesis.ir.annotations import Key

Command = Callable[[], Any]  # a call that submits one launch; what it returns is the driver's status
Mark = Any  # an event of the driver's; on the simulated GPU, a time and a position in a stream
Image = bytes | Callable[..., None]  # machine code; on the simulated GPU, a function of (blocks, threads, arguments)
Loaded = Any  # a function that `Gpu.load` returned, or a `Gemm`


class UnavailableError(RuntimeError):
    """There is no driver, or no package that talks to it."""


class LaunchError(RuntimeError):
    """Command number `failed` was refused, and those after it were not submitted; `in_part`: it may have run in part."""

    def __init__(self, said: str, failed: int, in_part: bool = False) -> None:
        super().__init__(said)
        self.failed = failed
        self.in_part = in_part


class Properties(NamedTuple):
    """A GPU's properties, under PyTorch's names; sizes in bytes."""

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


class Gpu(Protocol):
    """A GPU with its context and its stream.

    Attributes:
        index: its number.
        name: the model.
        capability: (major, minor).
        processors: its multiprocessors.
        functions: the loaded functions with their sources, by key.
        has_blas: whether a `Gemm` can be launched.
    """

    index: int
    name: str
    capability: tuple[int, int]
    processors: int
    functions: dict[Key, tuple[Any, Loaded]]
    has_blas: bool = False

    def __init__(self, index: int) -> None:
        self.index, self.functions = index, {}

    def properties(self) -> Properties:
        """The GPU's properties."""

    # ---- memory ----
    def free_and_total(self) -> tuple[int, int]:
        """The bytes that are free, and all there are."""

    def allocate(self, nbytes: int) -> int:
        """The address of new memory; 0 if there is not enough."""

    def release(self, address: int) -> None:
        """Give back what `allocate` gave. Work that may still touch it has to be done."""

    def owner_of(self, address: int) -> int:
        """The number of the GPU whose memory is at an address; that of this one for none."""

    def pinned(self, nbytes: int) -> np.ndarray:
        """Page-locked host memory for asynchronous copies; it is never released."""

    def copy_in(self, address: int, values: np.ndarray) -> None:
        """Copy contiguous pinned values to the GPU. They may be changed once a mark set after this is passed."""

    def copy_out(self, values: np.ndarray, address: int) -> None:
        """Copy from the GPU over contiguous pinned values, which are there once a mark set after this is passed."""

    def copy(self, address: int, source: int, nbytes: int, communicates: bool = False) -> None:
        """Copy within the GPU, in the communication stream if requested."""

    def clear(self, address: int, nbytes: int) -> None:
        """Fill with zeros."""

    # ---- order ----
    def mark(self, timed: bool = False, sleeping: bool = False, communicates: bool = False) -> Mark:
        """A mark in the stream behind all work so far, in the communication stream if requested.

        `timed` records the time, `sleeping` lets a waiting thread sleep.
        """

    def hold(self, mark: Mark, communicates: bool = False) -> None:
        """Make later work on a stream wait for the work before a mark of the other stream."""

    def wait(self, mark: Mark) -> None:
        """Wait until the work before a mark is done."""

    def has_passed(self, mark: Mark) -> bool:
        """Whether the work before a mark is done."""

    def seconds_between(self, first: Mark, second: Mark) -> float:
        """From one timed mark, which has been passed, to another."""

    def synchronize(self) -> None:
        """Wait until all is done. Raises RuntimeError if some of it failed."""

    def wait_for(self, stream: int) -> None:
        """Wait until the work of another library's stream is done."""

    @property
    def stream(self) -> int:
        """The stream's handle."""

    @property
    def communication_stream(self) -> int:
        """The handle of the stream of what communicates."""

    # ---- kernels ----
    def load(self, image: Image, name: str) -> Loaded:
        """The function `name` of an image, ready to be launched. Raises RuntimeError if it cannot be loaded."""

    def command(
        self, function: Loaded, blocks: Sequence[int], threads: Sequence[int], types: Sequence[str], arguments: Sequence[float]
    ) -> Command:
        """A launch of up to three axes of blocks of threads, to be submitted.

        `arguments` fill parameters of `types`: `int64`, `float64`, `float32*`, `float32[]`.
        """

    def submit(self, commands: Sequence[Command], after: Command = int) -> None:
        """Submit the commands in order, then call `after`; no interrupt can come between. Raises LaunchError at the first
        that fails, and submits no more.
        """

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of another library with this GPU as the current one."""

    def timed(self, commands: Sequence[Command]) -> tuple[list[Command], Callable[[], list[float]]]:
        """The commands with marks between them, and a function that gives the seconds of each after they have run."""

    def captured(self, commands: Sequence[Command]) -> Command:
        """One command that does what `commands` do."""
