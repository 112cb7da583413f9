"""PyTorch's files before 1.6: consecutive pickles, then the bytes of each storage."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from genesis.serialization.names import Builder, Read, damaged
from genesis.serialization.storage import MapLocation
from genesis.serialization.unpickler import CarefulUnpickler, TrustingUnpickler

MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # a number, pickled
_PROTOCOL = 1001


def load_legacy(file: BinaryIO, map_location: MapLocation, unpickler: type[CarefulUnpickler] | type[TrustingUnpickler]) -> Read:
    """The contents of a file that begins with MAGIC."""
    start = file.tell()
    size = file.seek(0, os.SEEK_END)
    file.seek(start + len(MAGIC))
    builder = Builder(None, map_location)
    protocol, system = CarefulUnpickler(file, builder).load(), CarefulUnpickler(file, builder).load()
    if protocol != _PROTOCOL or type(system) is not dict:
        raise damaged(f"protocol {protocol!r:.20}; want {_PROTOCOL}")
    result = unpickler(file, builder, size).load()
    little = bool(system.get("little_endian", True))
    for key in CarefulUnpickler(file, builder).load():
        storage = builder.storages.pop(key)
        [elements] = struct.unpack("<q" if little else ">q", file.read(8))
        if storage.dtype is None or elements * storage.dtype.itemsize != storage.nbytes():
            raise damaged(f"storage {key!r} has {elements} elements")
        storage.fill(_reader(file), little != (sys.byteorder == "little"))
    if builder.storages:
        raise damaged(f"storage {next(iter(builder.storages))!r} is missing")
    return result


def _reader(file: BinaryIO) -> Callable[[np.ndarray], None]:
    def read(into: np.ndarray) -> None:
        content = file.read(into.nbytes)
        if len(content) != into.nbytes:
            raise damaged("it ends early")
        into[...] = np.frombuffer(content, np.uint8)

    return read
