"""More names of `torch.serialization`: constants of its formats, settings, and queries of files and storages."""

from __future__ import annotations

import contextlib
import enum
import inspect
import mmap
import os
import struct
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, TypeVar

import genesis
from genesis.as_torch.stand_ins.settings import always, itself, stored
from genesis.functions.methods.inspection import TYPES
from genesis.functions.methods.storage import TypedStorage
from genesis.runtime.devices import device_of
from genesis.serialization import File, unknown_names
from genesis.serialization.storage import Storage

T = TypeVar("T")
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
DEFAULT_PROTOCOL, PROTOCOL_VERSION, STORAGE_KEY_SEPARATOR = 2, 1001, ","
SHORT_SIZE, INT_SIZE, LONG_SIZE = (len(struct.pack("=" + kind, 0)) for kind in "hil")
IS_WINDOWS = sys.platform == "win32"
MAP_SHARED, MAP_PRIVATE = getattr(mmap, "MAP_SHARED", 1), getattr(mmap, "MAP_PRIVATE", 2)
UNSAFE_MESSAGE = "load: give weights_only=False if you trust the file, or allow names with add_safe_globals."


class SourceChangeWarning(Warning):
    """PyTorch's warning that a class has changed since the file was written; never raised, as files hold no sources."""


class LoadEndianness(enum.Enum):
    """The byte order of a file without a record of it."""

    NATIVE, LITTLE, BIG = 1, 2, 3


set_crc32_options, get_crc32_options = stored(True)  # `save` always writes checksums, which `load` verifies
_set_endianness, get_default_load_endianness = stored(None)  # None means this machine's


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set the byte order of files without a record of it. Raises NotImplementedError unless it is this machine's."""
    other = LoadEndianness.BIG if sys.byteorder == "little" else LoadEndianness.LITTLE
    if endianness is other:
        raise NotImplementedError("set_default_load_endianness: files that do not tell are read in this machine's byte order")
    _set_endianness(endianness)


get_default_mmap_options = always(MAP_PRIVATE)  # `load(mmap=True)` maps files by it


@contextlib.contextmanager
def set_default_mmap_options(flags: int) -> Iterator[None]:
    """Accepts MAP_PRIVATE. Raises NotImplementedError for MAP_SHARED: writes never reach a mapped file."""
    if flags != MAP_PRIVATE:
        raise NotImplementedError("set_default_mmap_options: pages are copied when they are written to; want MAP_PRIVATE")
    yield


# ---- storages and where they go ----
def location_tag(storage: TypedStorage | Storage) -> str:
    """The location of a storage as files spell it: "cpu", "cuda:0"."""
    return str(storage.device)


def default_restore_location(storage: TypedStorage | Storage, location: str) -> Any:
    """The storage at a location. Raises RuntimeError for one that does not exist."""
    try:
        target = device_of(location)
    except ValueError as problem:
        raise RuntimeError(f"don't know how to restore data location of {type(storage).__name__} (tagged with {location}): "
                           f"{problem}") from None
    if isinstance(storage, Storage):
        return storage.to(target)
    return storage if storage.device is target else type(storage)(storage._root.to(target))


def validate_cuda_device(location: str) -> int:
    """The number of the GPU in a location. Raises RuntimeError for one that does not exist."""
    index = int(location.partition(":")[2] or 0)
    if index >= genesis.cuda.device_count():
        raise RuntimeError(f"load: {location} is not here; there are {genesis.cuda.device_count()} GPUs; want map_location")
    return index


normalize_storage_type = itself  # of a class of storages


def storage_to_tensor_type(storage: TypedStorage) -> str:
    """The name of a storage's tensor class: "torch.FloatTensor"."""
    return "torch." + next(name for name, kind in TYPES.items() if kind == storage.dtype.name)


# ---- sources and versions ----
@contextlib.contextmanager
def mkdtemp() -> Iterator[str]:
    """A directory that is removed at the end."""
    with tempfile.TemporaryDirectory() as path:
        yield path


def get_source_lines_and_file(obj: Any, error_msg: str | None = None) -> tuple[list[str], int, str | None]:
    """The source of a function or class: its lines, the number of the first, and the file. Raises OSError without one."""
    try:
        lines, first = inspect.getsourcelines(obj)
    except OSError as problem:
        raise OSError(f"Can't get source for {obj}. {error_msg or ''}") from problem
    return lines, first, inspect.getsourcefile(obj)


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's `__version__` is that one or later."""
    try:
        parts = zip(map(type, req_version_tuple), module.__version__.split("."), strict=False)
        found = tuple(kind(part) for kind, part in parts)
    except ValueError as problem:
        if error_if_malformed:
            raise RuntimeError(f"'{module.__name__}' module version string is malformed '{module.__version__}'") from problem
        return False
    return found >= req_version_tuple


def get_unsafe_globals_in_checkpoint(f: File) -> list[str]:
    """The names in a file that `load` with weights_only refuses, unless they are allowed."""
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return unknown_names(file)
    return unknown_names(f)
