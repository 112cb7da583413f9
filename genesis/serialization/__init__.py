"""Saving to files and loading, in PyTorch's file format; by default nothing is built but tensors and plain containers."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from genesis.ir.annotations import AnyFunction
from genesis.ir.errors import FolderError
from genesis.runtime.devices import Device
from genesis.serialization import safetensors
from genesis.serialization.archive import MAGIC, Archive, load_legacy, write_archive
from genesis.serialization.names import Builder, Read, allowed_by_users
from genesis.serialization.pickles import CarefulUnpickler, Pickler, TrustingUnpickler
from genesis.serialization.replaced_file import replaced_file
from genesis.serialization.storage import MapLocation

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "safetensors", "save"]
__dir__ = __all__.copy

File = str | os.PathLike[str] | BinaryIO


def save(
    obj: object, f: File, pickle_module: ModuleType = pickle, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write `obj` (a tensor, a state dict, anything that pickles) to a path or an open binary file.

    A file of that path is replaced once the new one is complete.
    `torch.load` reads what is written. Tensors that share storage share it in the file and after loading. Raises
    ValueError for another pickle module or the format before PyTorch 1.6.

    >>> import genesis, io
    >>> file = io.BytesIO()
    >>> save({"weight": genesis.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> load(file)
    {'weight': tensor([1., 1.])}
    """
    if pickle_module is not pickle or not _use_new_zipfile_serialization:
        raise ValueError("save: writes PyTorch's zip format with Python's own pickle; want the defaults")
    content = io.BytesIO()
    pickler = Pickler(content, pickle_protocol)
    pickler.dump(obj)
    if isinstance(f, str | os.PathLike):
        folder = os.path.dirname(f)
        if folder and not os.path.isdir(folder):
            raise FolderError(f"save: Parent directory {os.fspath(folder)} does not exist.")
        with replaced_file(f) as file:
            write_archive(file, Path(f).stem or "archive", content.getvalue(), pickler.storages())
    else:
        write_archive(f, "archive", content.getvalue(), pickler.storages())


def load(
    f: File, map_location: MapLocation = None, pickle_module: ModuleType | None = None, *, weights_only: bool | None = True,
    mmap: bool | None = None, **pickle_load_args: Any,
) -> Read:
    """Read a file written by `save` or `torch.save`, without PyTorch.

    Args:
        f: a path, or a binary file that can seek.
        map_location: where tensors go: a device, a dict from locations in the file to devices, or a function of a storage
            and a location that returns the storage on its device, or None. By default they return to their devices.
        weights_only: build only tensors, dtypes, numbers, strings and their containers. Anything else raises
            pickle.UnpicklingError. Without it, a pickle may run any code: only use that with trusted files.
        mmap: map the file's pages into tensors, read on demand; writes do not reach the file. Requires a path.

    Raises pickle.UnpicklingError for a damaged file, RuntimeError for tensors on a missing device.
    """
    careful = weights_only is not False
    if pickle_module not in (None, pickle) or set(pickle_load_args) - {"encoding"}:
        raise ValueError("load: reads with Python's own pickle; want no pickle_module and no arguments for one")
    if not (map_location is None or callable(map_location) or isinstance(map_location, str | Device | Mapping)):
        raise TypeError(f"load: map_location is a device, a dict of devices or a function, got {type(map_location).__name__}")
    if not isinstance(f, str | os.PathLike):
        if mmap:
            raise ValueError("load: mmap=True wants a path, not an open file")
        return _load(f, map_location, careful, False)
    with open(f, "rb") as file:
        if mmap and not _is_zip(file):
            raise ValueError("load: mmap=True wants a file in the zip format; save it again")
        return _load(file, map_location, careful, bool(mmap))


def _load(file: BinaryIO, map_location: MapLocation, careful: bool, mapping: bool) -> Read:
    if not careful:
        return _read(file, map_location, TrustingUnpickler, mapping)
    try:
        return _read(file, map_location, CarefulUnpickler, mapping)
    except (pickle.UnpicklingError, RuntimeError):
        raise
    except Exception as problem:
        raise pickle.UnpicklingError(f"load: the file is damaged: {problem or type(problem).__name__}") from problem


def _read(
    file: BinaryIO, map_location: MapLocation, unpickler: type[CarefulUnpickler] | type[TrustingUnpickler], mapping: bool
) -> Read:
    """The contents of a file in any of the formats."""
    if _is_zip(file):
        archive = Archive(file, mapping)
        builder = Builder(archive, map_location, archive.swapped)
        return unpickler(archive.pickled(), builder).load()
    if _begins(file, MAGIC):
        return load_legacy(file, map_location, unpickler)
    return unpickler(file, Builder(None, map_location), 0).load()  # earlier versions of `save` wrote one pickle


def names_in(file: BinaryIO) -> set[tuple[str, str]]:
    """The names, (module, name), in the pickle of a file in the zip format."""
    found, strings = set[tuple[str, str]](), list[str]()
    for opcode, argument, _ in pickletools.genops(Archive(file).pickled()):
        if opcode.name == "GLOBAL":
            module, _, name = str(argument).partition(" ")
            found.add((module, name))
        elif opcode.name == "STACK_GLOBAL":
            found.add((strings[-2], strings[-1]))
        elif isinstance(argument, str):
            strings.append(argument)
    return found


def unknown_names(file: BinaryIO) -> list[str]:
    """The names in a file that `load` with weights_only rejects, sorted."""
    reader = CarefulUnpickler(io.BytesIO(), Builder(None, None))
    refused = []
    for module, name in names_in(file):
        try:
            reader.find_class(module, name)
        except pickle.UnpicklingError:
            refused.append(f"{module}.{name}")
    return sorted(refused)


def _begins(file: BinaryIO, content: bytes) -> bool:
    start = file.tell()
    begin = file.read(len(content))
    file.seek(start)
    return begin == content


def _is_zip(file: BinaryIO) -> bool:
    return _begins(file, b"PK\x03\x04")


# ---- further classes for weights_only ----
def add_safe_globals(safe_globals: Sequence[AnyFunction | tuple[AnyFunction, str]]) -> None:
    """Let `load` with weights_only build objects of these classes, or call these functions; (class, full name) renames one.

    >>> import genesis, fractions
    >>> with genesis.serialization.safe_globals([fractions.Fraction]):
    ...     fractions.Fraction in genesis.serialization.get_safe_globals()
    True
    """
    for entry in safe_globals:
        function, name = entry if isinstance(entry, tuple) else (entry, f"{entry.__module__}.{entry.__qualname__}")
        module, _, short = name.rpartition(".")
        allowed_by_users[module, short] = function


def get_safe_globals() -> list[AnyFunction | tuple[AnyFunction, str]]:
    """The classes and functions given to `add_safe_globals`."""
    return [*allowed_by_users.values()]


def clear_safe_globals() -> None:
    """Undo all `add_safe_globals`."""
    allowed_by_users.clear()


@contextmanager
def safe_globals(safe_globals: Sequence[AnyFunction | tuple[AnyFunction, str]]) -> Iterator[None]:
    """A context in which `load` may build what `safe_globals` lists."""
    before = {**allowed_by_users}
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        allowed_by_users.clear()
        allowed_by_users.update(before)
