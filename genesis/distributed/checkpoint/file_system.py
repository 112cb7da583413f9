"""PyTorch's names for where a checkpoint is, and for plans of it: `FileSystemWriter` and `Reader`, the default planners."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from genesis.ir.errors import ArgumentError, ArgumentTypeError


class CheckpointException(Exception):
    """PyTorch's error of several ranks; genesis raises others."""


class StorageWriter:
    """Where a checkpoint is written: a `FileSystemWriter`."""


class StorageReader:
    """Where a checkpoint is read: a `FileSystemReader`."""


class FileSystemWriter(StorageWriter):
    """A directory to write. Settings other than `path` and `overwrite` have no effect: a rank writes one file, in one thread.

    Saving raises RuntimeError if there is a checkpoint, unless `overwrite`.
    """

    def __init__(
        self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True, thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False, overwrite: bool = True,
    ) -> None:
        self.path, self.overwrite = Path(path), overwrite


class FileSystemReader(StorageReader):
    """A directory to read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)


class SavePlanner:
    """What is saved: a `DefaultSavePlanner`."""


class LoadPlanner:
    """What is loaded: a `DefaultLoadPlanner`."""


class DefaultSavePlanner(SavePlanner):
    """All of a state. The settings have no effect: dictionaries are saved by paths, and what several ranks have once."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None: ...


class DefaultLoadPlanner(LoadPlanner):
    """All of a state; with `allow_partial_load`, what the checkpoint has of it. Other settings have no effect."""

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.allow_partial_load = allow_partial_load


def directory_of(checkpoint_id: str | os.PathLike[str] | None, storage: Any, kind: type, planner: Any, plans: type) -> Path:
    """The directory of a checkpoint: `checkpoint_id`, or that of a writer or reader, of class `kind`.

    Raises TypeError for other storages, and for planners that are not of class `plans`; ValueError if neither is given.
    """
    for given, wanted in ((storage, kind), (planner, plans)):
        if given is not None and type(given) is not wanted:
            raise ArgumentTypeError(f"checkpoint: {type(given).__name__}; want a {wanted.__name__}, or None")
    if checkpoint_id is None and storage is None:
        raise ArgumentError("checkpoint: wants checkpoint_id, or a storage")
    return storage.path if checkpoint_id is None else Path(checkpoint_id)  # type: ignore[no-any-return]
