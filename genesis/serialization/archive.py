"""PyTorch's files: zip files, of a pickle and the bytes of each storage, and those before 1.6, of consecutive pickles."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable
from typing import BinaryIO

import numpy as np

from genesis.serialization.names import Builder, Read, damaged
from genesis.serialization.pickles import CarefulUnpickler, TrustingUnpickler
from genesis.serialization.storage import MapLocation

_ALIGNMENT = 64
_HEADER = 30  # bytes of a record's header before its name
_ZIP64 = 20  # bytes of its extra field where sizes take 64 bits
_PADDING = 0x4246  # the extra field that PyTorch pads with
_CHUNK = 1 << 26  # bytes per CRC update


class Archive:
    """The records of a zip file; with `mapping` storages are its pages, copied on write."""

    def __init__(self, file: BinaryIO, mapping: bool = False) -> None:
        self._file = file
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as problem:
            raise damaged(str(problem)) from None
        names = [name for name in self._zip.namelist() if name.rpartition("/")[2] == "data.pkl"]
        if not names:
            raise damaged("a zip file without a data.pkl; want one of genesis.save or torch.save")
        self._folder = min(names, key=len)[: -len("data.pkl")]
        if self._folder + "constants.pkl" in self._zip.NameToInfo:
            raise pickle.UnpicklingError("load: the file is a TorchScript archive (torch.jit.save); want one of torch.save")
        self._pages = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8) if mapping else None

    @property
    def swapped(self) -> bool:
        """Whether numbers have the byte order opposite to this machine's."""
        if self._folder + "byteorder" not in self._zip.NameToInfo:
            return False
        order = self._zip.read(self._folder + "byteorder").decode("ascii", "replace")
        if order not in ("little", "big"):
            raise damaged(f"byte order {order!r}; want 'little' or 'big'")
        return order != sys.byteorder

    def pickled(self) -> BinaryIO:
        """The pickle."""
        return io.BytesIO(self._zip.read(self._folder + "data.pkl"))

    def read(self, key: str, into: np.ndarray) -> None:
        """Fill `into` with the bytes of a storage, whose checksum is verified."""
        info = self._record(key, into.nbytes)
        if info.compress_type != zipfile.ZIP_STORED:
            into[...] = np.frombuffer(self._zip.read(info), np.uint8)
            return
        self._file.seek(self._start(info))
        view, done, checksum = into.data, 0, 0
        while done < into.nbytes:
            count = self._file.readinto(view[done : done + _CHUNK])  # type: ignore[attr-defined]
            if not count:
                raise damaged(f"storage {key!r} ends early")
            checksum = zlib.crc32(view[done : done + count], checksum)
            done += count
        if checksum != info.CRC:
            raise damaged(f"the checksum of storage {key!r} does not fit its bytes")

    def mapped(self, key: str, nbytes: int) -> np.ndarray | None:
        """The mapped bytes of a storage; None unless the file is mapped and they are aligned."""
        if self._pages is None or not nbytes:
            return None
        info = self._record(key, nbytes)
        start = self._start(info)
        if info.compress_type != zipfile.ZIP_STORED or start % 8 or start + nbytes > self._pages.nbytes:
            return None
        return self._pages[start : start + nbytes]

    def check(self, key: str, nbytes: int) -> None:
        """Raise UnpicklingError unless a storage has `nbytes` bytes."""
        self._record(key, nbytes)

    def _record(self, key: str, nbytes: int) -> zipfile.ZipInfo:
        info = self._zip.NameToInfo.get(f"{self._folder}data/{key}")
        if info is None or info.file_size != nbytes:
            raise damaged(f"storage {key!r} has {info.file_size if info else 'no'} bytes, not {nbytes}")
        if info.compress_type == zipfile.ZIP_STORED and info.compress_size != nbytes:
            raise damaged(f"storage {key!r} has {info.compress_size} bytes, not {nbytes}")
        return info

    def _start(self, info: zipfile.ZipInfo) -> int:
        """The offset of a record's first byte in the file."""
        self._file.seek(info.header_offset)
        header = self._file.read(_HEADER)
        if len(header) != _HEADER or header[:4] != b"PK\x03\x04" or info.flag_bits & 1:
            raise damaged(f"{info.filename} has no header, or is encrypted")
        name, extra = struct.unpack("<HH", header[26:])
        return info.header_offset + _HEADER + name + extra


def write_archive(file: BinaryIO, folder: str, pickled: bytes, storages: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write a zip file that `torch.load` and `Archive` read. Its bytes depend only on the contents."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in (
            ("data.pkl", pickled), (".format_version", b"1"), (".storage_alignment", str(_ALIGNMENT).encode()),
            ("byteorder", sys.byteorder.encode()),
        ):
            _write(archive, f"{folder}/{name}", memoryview(content))
        for key, values in storages:
            _write(archive, f"{folder}/data/{key}", values.data)
        _write(archive, f"{folder}/version", memoryview(b"3\n"))


def _write(archive: zipfile.ZipFile, name: str, content: memoryview) -> None:
    """Add a record whose content is aligned in the file."""
    info = zipfile.ZipInfo(name)
    info.file_size = content.nbytes
    long = content.nbytes * 1.05 > zipfile.ZIP64_LIMIT
    start = archive.fp.tell() + _HEADER + len(name.encode()) + 4 + _ZIP64 * long  # type: ignore[union-attr]
    padding = -start % _ALIGNMENT
    info.extra = struct.pack("<HH", _PADDING, padding) + b"Z" * padding
    with archive.open(info, "w") as record:
        for at in range(0, content.nbytes, _CHUNK):
            record.write(content[at : at + _CHUNK])


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
