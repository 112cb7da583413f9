"""The format of a checkpoint: a directory with a file of bytes per rank, and `.metadata`, which lists their contents.

The metadata is JSON: `save`, a unique name of the save; `tensors`, path -> {dtype, shape, parts}, where each part has its file,
its offset there, and its start and shape in the whole tensor; `values`, path -> any other value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from genesis.distributed.tensor.dtensor import DTensor
from genesis.ir.errors import ArgumentError
from genesis.tensor.handle import Tensor

METADATA = ".metadata"
_PLAIN = (type(None), bool, int, float, str)


class Part(NamedTuple):
    """This rank's part of a tensor of `shape`, and where the part starts in it."""

    local: Tensor
    start: tuple[int, ...]
    shape: tuple[int, ...]


def part_of(value: Tensor) -> Part:
    """This rank's part of a DTensor; all of a tensor."""
    if isinstance(value, DTensor):
        return Part(value.to_local(), value.start, value.shape)
    return Part(value, (0,) * value.ndim, tuple(value.shape))


def leaves(state: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """(path, its dictionary, its key there) of all values in nested dictionaries and lists of dictionaries.

    Raises TypeError for keys other than strings, and ValueError for two values at one path.
    """
    for key, value in state.items():
        if not isinstance(key, str):
            raise TypeError(f"checkpoint: the key {key!r} of {'.'.join(before) or 'the state'}; want a string")
        if isinstance(value, Mapping) and value:
            yield from leaves(value, (*before, key))
        elif isinstance(value, list) and value and all([isinstance(each, Mapping) and each for each in value]):
            for number, each in enumerate(value):
                yield from leaves(each, (*before, key, str(number)))
        else:
            yield ".".join((*before, key)), state, key


def all_leaves(state: Mapping[str, Any]) -> dict[str, tuple[Mapping[str, Any], str]]:
    """Path -> (its dictionary, its key there)."""
    found: dict[str, tuple[Mapping[str, Any], str]] = {}
    for path, holder, key in leaves(state):
        if path in found:
            raise ArgumentError(f"checkpoint: two values have the path {path!r}; want other keys")
        found[path] = holder, key
    return found


def plain(path: str, value: Any) -> Any:
    """A value converted for JSON. Raises TypeError unless it consists of numbers, strings, lists, tuples and dictionaries."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        listed = [plain(path, each) for each in value]
        return listed if isinstance(value, list) else {"tuple": listed}
    if isinstance(value, Mapping):
        return {"dict": {str(key): plain(path, each) for key, each in value.items()}}
    raise TypeError(f"checkpoint: {path} is a {type(value).__name__}; want tensors, numbers, strings, and lists of them")


def restored(value: Any) -> Any:
    """The inverse of `plain`."""
    if isinstance(value, list):
        return [restored(each) for each in value]
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple([restored(each) for each in value["tuple"]])
        return {key: restored(each) for key, each in value["dict"].items()}
    return value


def read_metadata(directory: Path) -> dict[str, Any] | None:
    """A checkpoint's metadata; None if there is no checkpoint."""
    try:
        return json.loads((directory / METADATA).read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None
