"""Saving: each rank writes its file, then rank 0 replaces the metadata. Until then the old checkpoint is valid."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from genesis.distributed.checkpoint.file_system import DefaultSavePlanner, FileSystemWriter, directory_of
from genesis.distributed.checkpoint.layout import METADATA, Part, all_leaves, part_of, plain, read_metadata
from genesis.distributed.checkpoint.stateful import states_of
from genesis.distributed.objects import all_gather_object
from genesis.distributed.process_group import ProcessGroup, check_departures, departed, group_of, is_initialized
from genesis.ir.errors import ArgumentError
from genesis.runtime.groups import CollectiveError
from genesis.tensor.handle import Tensor

_PAUSE = 0.005  # seconds between checks of other ranks' files
_writer = ThreadPoolExecutor(1, "checkpoint")


def save(
    state_dict: Mapping[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None, planner: DefaultSavePlanner | None = None, process_group: Any = None,
    no_dist: bool = False, use_collectives: bool = True,
) -> None:
    """Write dictionaries of tensors, DTensors, numbers and strings to a directory that all ranks share: `checkpoint_id`, or
    that of `storage_writer`.

    With `no_dist`, or without a process group, this process alone saves. `use_collectives` has no effect: ranks do agree.
    Objects with `state_dict` and `load_state_dict` are saved by their state: see `Stateful`.
    All ranks must call it. A DTensor's parts are written by the ranks that have them; a plain tensor must be equal on all ranks
    that have it, and is written once. An interrupted save leaves the previous checkpoint intact.
    Raises TypeError for other values, ValueError for a tensor that differs between ranks, and CollectiveError if a rank does
    not write its file within the group's timeout.

    >>> import tempfile
    >>> weight, folder = genesis.ones(3), tempfile.mkdtemp()
    >>> genesis.distributed.checkpoint.save({"weight": weight, "step": 5}, checkpoint_id=folder)
    >>> state = {"weight": genesis.zeros(3), "step": 0}
    >>> genesis.distributed.checkpoint.load(state, checkpoint_id=folder)
    >>> state
    {'weight': tensor([1., 1., 1.]), 'step': 5}
    """
    where = _directory(checkpoint_id, storage_writer, planner)
    _begin(state_dict, where, process_group, no_dist, is_copied=False).write()


def async_save(
    state_dict: Mapping[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None, planner: DefaultSavePlanner | None = None, process_group: Any = None,
    no_dist: bool = False, use_collectives: bool = True, async_checkpointer_type: Any = None,
) -> Future[None]:
    """As `save`, in a thread: saves the tensors' current values. `result()` waits, and raises errors. The last setting has no
    effect: no process is begun for it."""
    where = _directory(checkpoint_id, storage_writer, planner)
    return _writer.submit(_begin(state_dict, where, process_group, no_dist, is_copied=True).write)


def save_state_dict(
    state_dict: Mapping[str, Any], storage_writer: FileSystemWriter, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: DefaultSavePlanner | None = None,
) -> None:
    """`save`, by an old name; rank 0 coordinates."""
    save(state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner)


def _directory(checkpoint_id: Any, writer: FileSystemWriter | None, planner: DefaultSavePlanner | None) -> Path:
    directory = directory_of(checkpoint_id, writer, FileSystemWriter, planner, DefaultSavePlanner)
    if writer is not None and not writer.overwrite and read_metadata(directory) is not None:
        raise RuntimeError(f"Checkpoint already exists and self.overwrite=False: {directory}")
    return directory


class _Save:
    """A save that the ranks have agreed on: this rank's parts, and the common metadata."""

    def __init__(self, directory: Path, group: ProcessGroup | None, own: list[np.ndarray], metadata: dict[str, Any]) -> None:
        self.directory, self.own, self.name, self.metadata = directory, own, metadata["save"], metadata
        self.rank, self.ranks, self.seconds = (0, 1, 0.0) if group is None else (
            group.rank(), group.size(), group.handle.timeout)
        self.numbers: Sequence[int] = (0,) if group is None else group.ranks

    def write(self) -> None:
        """Write this rank's file, and wait until this save is the checkpoint."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / f"{file_of(self.name, self.rank)}.tmp", "wb") as file:
            for part in self.own:
                file.write(part.tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, self.directory / file_of(self.name, self.rank))
        if self.rank:
            self._await(lambda: (read_metadata(self.directory) or {}).get("save") == self.name, "rank 0's metadata", 0)
            return
        for rank in range(self.ranks):
            self._await((self.directory / file_of(self.name, rank)).exists, f"rank {self.numbers[rank]}'s file", rank)
        with open(self.directory / f"{METADATA}.tmp", "wb") as file:
            file.write(json.dumps(self.metadata).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, self.directory / METADATA)
        for other in self.directory.glob("*.distcp*"):  # names increase; a later save may have begun
            if other.name < self.name:
                other.unlink(missing_ok=True)

    def _await(self, there: Any, what: str, rank: int) -> None:
        """Wait until `rank` of the group has written a file; raises if it has ended without."""
        end = time.monotonic() + self.seconds
        while not there():
            if time.monotonic() > end:
                raise CollectiveError(f"checkpoint: {self.directory} has not got {what} after {self.seconds:g} s")
            if departed([self.numbers[rank]]) and not there():
                check_departures(f"checkpoint: {self.directory} waits for {what}", [self.numbers[rank]])
            time.sleep(_PAUSE)


def file_of(save: str, rank: int) -> str:
    """A rank's file name."""
    return f"{save}_{rank}.distcp"


def _begin(state: Mapping[str, Any], directory: Path, process_group: Any, no_dist: bool, is_copied: bool) -> _Save:
    """Agree with the other ranks on who writes what, and capture the tensors' values."""
    group = None if no_dist or not is_initialized() else group_of(process_group)
    own_rank, ranks = (0, 1) if group is None else (group.rank(), group.size())
    parts, values = {}, {}
    for path, (holder, key) in all_leaves(states_of(state)).items():
        value = holder[key]
        if isinstance(value, Tensor):
            parts[path] = part_of(value)
        else:
            values[path] = plain(path, value)
    is_shared = ranks > 1
    own = {(path, part.start): (part.local.dtype.name, tuple(part.local.shape), part.shape, is_shared and _checksum(part),
                                part.local.nbytes) for path, part in parts.items()}
    found: list[Any] = [(f"{time.time_ns():016x}", own, values)] * ranks
    if group is not None:
        all_gather_object(found, found[0], group)
    name, sizes, mine = found[0][0], [0] * ranks, []
    tensors: dict[str, Any] = {}
    for path, start in dict.fromkeys([key for _, known, _ in found for key in known]):
        holders = [rank for rank, (_, known, _) in enumerate(found) if (path, start) in known]
        rank = min(holders, key=sizes.__getitem__)  # of the ranks that have it, the one with least to write
        if len({found[holder][1][path, start] for holder in holders}) > 1:
            raise ArgumentError(
                f"checkpoint: {path} differs on ranks {holders}; want other paths, or parts as get_model_state_dict gives them")
        dtype, extent, shape, _, nbytes = found[rank][1][path, start]
        entry = tensors.setdefault(path, {"dtype": dtype, "shape": shape, "parts": []})
        entry["parts"].append({"file": file_of(name, rank), "at": sizes[rank], "start": start, "shape": extent})
        sizes[rank] += nbytes
        if rank == own_rank:
            local = parts[path].local.detach().numpy()
            mine.append(local.copy() if is_copied else local)
    metadata = {"save": name, "tensors": tensors, "values": {k: v for _, _, known in reversed(found) for k, v in known.items()}}
    return _Save(directory, group, mine, metadata)


def _checksum(part: Part) -> int:
    """A checksum, to detect tensors that differ between ranks."""
    return zlib.crc32(np.ascontiguousarray(part.local.detach().numpy()).reshape(-1).view(np.uint8).data)
