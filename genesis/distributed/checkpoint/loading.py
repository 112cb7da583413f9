"""Loading: each rank reads the parts it needs from the files of any number of ranks."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from genesis.distributed.checkpoint.file_system import DefaultLoadPlanner, FileSystemReader, directory_of
from genesis.distributed.checkpoint.layout import Part, all_leaves, part_of, read_metadata, restored
from genesis.distributed.checkpoint.stateful import give_back, states_of
from genesis.functions.from_data import tensor as tensor_from
from genesis.ir.errors import ArgumentError
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: FileSystemReader | None = None, planner: DefaultLoadPlanner | None = None, process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Fill tensors and DTensors of `state_dict` in place with those of a checkpoint, and replace its numbers and strings.

    The checkpoint is that of the directory `checkpoint_id`, or of `storage_reader`. A `planner` may allow that it lacks some;
    the last two settings have no effect, as each rank reads what it needs.
    Objects with `load_state_dict` load their state. Other contents of the checkpoint are ignored. Raises FileNotFoundError if
    there is no checkpoint, KeyError for a missing path, and ValueError for a tensor of another shape or dtype.
    """
    directory = directory_of(checkpoint_id, storage_reader, FileSystemReader, planner, DefaultLoadPlanner)
    metadata = read_metadata(directory)
    if metadata is None:
        raise FileNotFoundError(f"checkpoint: there is none in {directory}")
    state = states_of(state_dict)
    wanted = all_leaves(state)
    known = metadata["tensors"].keys() | metadata["values"].keys()
    if planner is not None and planner.allow_partial_load:
        wanted = {path: place for path, place in wanted.items() if path in known}
    if missing := [path for path in wanted if path not in known]:
        raise KeyError(f"checkpoint: {directory} has no {', '.join(missing)}")
    read = {}
    for path, (holder, key) in wanted.items():
        value = holder[key]
        if isinstance(value, Tensor) is not (path in metadata["tensors"]):
            raise ArgumentError(f"checkpoint: {path} is a tensor in one of the checkpoint and the state, and none in the other")
        if isinstance(value, Tensor):
            read[path] = _read(directory, path, part_of(value), metadata["tensors"][path])
    with grad_mode(False):
        for path, (holder, key) in wanted.items():
            if path in read:
                local = part_of(holder[key]).local
                write(detach(local), tensor_from(read[path], dtype=local.dtype))
            else:
                holder[key] = restored(metadata["values"][path])  # type: ignore[index]
    give_back(state_dict, state)


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: FileSystemReader, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: DefaultLoadPlanner | None = None,
) -> None:
    """`load`, by an old name."""
    load(state_dict, storage_reader=storage_reader, planner=planner)


def _read(directory: Path, path: str, part: Part, entry: Mapping[str, Any]) -> np.ndarray:
    """The part of a tensor that a rank needs."""
    dtype, shape = part.local.dtype, tuple(entry["shape"])
    if shape != part.shape or entry["dtype"] != dtype.name:
        held, found = f"{dtype.name}{[*part.shape]}", f"{entry['dtype']}{entry['shape']}"
        raise ArgumentError(f"checkpoint: {path} is {held}; the checkpoint has {found}")
    result, count = np.empty(part.local.shape, dtype.numpy), 0
    for source in entry["parts"]:
        # the overlap of the part and this rank's part, along each axis
        low = [max(a, b) for a, b in zip(source["start"], part.start, strict=True)]
        high = [min(a + n, b + m) for a, n, b, m in zip(
            source["start"], source["shape"], part.start, result.shape, strict=True)]
        if any(a >= b for a, b in zip(low, high, strict=True)):
            continue
        file = directory / source["file"]
        stored = np.memmap(file, np.uint8, "r", source["at"], (math.prod(source["shape"]) * dtype.itemsize,))
        whole = stored.view(dtype.numpy).reshape(source["shape"])
        there, here = ([slice(a - s, b - s) for a, b, s in zip(low, high, start, strict=True)]
                       for start in (source["start"], part.start))
        result[tuple(here)] = whole[tuple(there)]
        count += math.prod(b - a for a, b in zip(low, high, strict=True))
    if count != result.size:
        raise ArgumentError(f"checkpoint: {path} has {count} of {result.size} elements in {directory}")
    return result
