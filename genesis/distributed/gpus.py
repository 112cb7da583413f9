"""GPUs of several processes: each rank's GPU, and each group's NCCL communicator."""

from __future__ import annotations

from functools import partial
from typing import Any

from genesis.ir.errors import ArgumentError
from genesis.runtime.collectives import Group
from genesis.runtime.cuda import gpu_count, reason_for_none
from genesis.runtime.cuda.collective import watch
from genesis.runtime.cuda.gpu import UnavailableError
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.nccl import Communicator, library, unique_id
from genesis.runtime.devices import device_of, get_current_gpu, set_current_gpu

ENGINES = {"mpi": "cpu", "gloo": "cpu", "nccl": "cuda"}  # backend -> device type


def uses_nccl(backend: str | None) -> bool:
    """Whether a backend, by PyTorch's name, uses NCCL. Raises ValueError for an unknown one.

    >>> from genesis.distributed.gpus import uses_nccl
    >>> [uses_nccl(name) for name in (None, "mpi", "gloo", "nccl", "cpu:mpi,cuda:nccl")]
    [False, False, False, True, True]
    """
    parts = ["mpi"] if backend is None else str(backend).lower().split(",")
    engines = {}
    for part in parts:
        device, colon, engine = part.strip().rpartition(":")
        if engine not in ENGINES or (device if colon or len(parts) > 1 else ENGINES[engine]) != ENGINES[engine] or (
                ENGINES[engine] in engines):
            raise ArgumentError(
                f"init_process_group: there is no backend {backend!r}; want 'mpi', 'nccl', 'cpu:mpi,cuda:nccl', or None")
        engines[ENGINES[engine]] = engine
    return "cuda" in engines


def gpu_of(device_id: Any, neighbour: int) -> GpuMemory:
    """A rank's GPU: `device_id`, the one chosen by `cuda.set_device`, or by its local rank.

    Raises ValueError for a device that is not a GPU, RuntimeError if there is none.
    """
    if not gpu_count():
        raise UnavailableError(f"there is no GPU: {reason_for_none()}")
    number = get_current_gpu() or neighbour % gpu_count() if device_id is None else device_id
    device = device_of(f"cuda:{number}" if isinstance(number, int) else number)
    if device.type != "cuda":
        raise ArgumentError(f"init_process_group: device_id is {device_id!r}; want a GPU, as 'cuda:0' or 0")
    memory: GpuMemory = device.memory
    return memory


def connect(group: Group, comm: Any, device_id: Any, neighbour: int) -> None:
    """Connect the GPUs of a group's ranks; `comm` is their communicator. All of them must call it.

    Raises RuntimeError on all ranks if one has no GPU or no NCCL, or fails to connect.
    """
    problem, ident, engine = "", b"", None
    try:
        memory, functions = gpu_of(device_id, neighbour), library()
        ident = unique_id(functions) if group.rank == 0 else b""
    except (UnavailableError, ValueError) as missing:
        problem = str(missing)
    ident = _checked(group, comm, problem, ident)
    try:
        engine = Communicator(memory, functions, ident, group.size, group.rank, group.timeout)
    except UnavailableError as refused:
        problem = str(refused)
    try:
        _checked(group, comm, problem, b"")
    except RuntimeError:
        if engine is not None:
            engine.close(is_broken=True)
        raise
    assert engine is not None
    group.gpu = engine
    memory.watches.append(partial(watch, group, engine))


def become_current(group: Group) -> int:
    """Make the group's GPU the current one, "cuda"; returns its number."""
    assert isinstance(group.gpu, Communicator)
    number = group.gpu.memory.gpu.index
    set_current_gpu(number)
    return number


def disconnect(group: Group) -> None:
    """Close the group's NCCL communicator."""
    if isinstance(group.gpu, Communicator):
        watches = group.gpu.memory.watches
        watches[:] = [each for each in watches if not (isinstance(each, partial) and each.args[0] is group)]


def _checked(group: Group, comm: Any, problem: str, ident: bytes) -> bytes:
    """Rank 0's `ident`; raises on all ranks if any has a problem."""
    said = comm.allgather((problem, ident))
    problems = [f"rank {rank}: {text}" for rank, (text, _) in zip(group.ranks, said, strict=True) if text]
    if problems:
        raise RuntimeError("init_process_group: " + "\n  ".join(problems))
    found: bytes = said[0][1]
    return found
