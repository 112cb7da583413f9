"""The header of a safetensors file: JSON with each tensor's dtype, shape and byte range."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from genesis.ir.dtypes import NAMED, DType
from genesis.tensor.handle import Tensor

_NAMES = {  # in file order, which aligns each tensor
    "uint64": "U64", "int64": "I64", "float64": "F64", "complex64": "C64", "float32": "F32", "uint32": "U32", "int32": "I32",
    "bfloat16": "BF16", "float16": "F16", "uint16": "U16", "int16": "I16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
    "int8": "I8", "uint8": "U8", "bool": "BOOL",
}
_ORDER = [*_NAMES]
_DTYPES = {short: name for name, short in _NAMES.items()}
MOST_HEADER = 100_000_000  # bytes, the package's limit


class SafetensorError(Exception):
    """A file that is damaged or not a safetensors file."""


class Entry(NamedTuple):
    """A tensor of a file: its bytes are `begin` to `end` after the header."""

    dtype: DType
    shape: tuple[int, ...]
    begin: int
    end: int


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise SafetensorError("load: the header names a tensor twice")
    return found


def _entry(name: str, fields: Any) -> Entry:
    """A tensor's entry in the header. Raises SafetensorError if it is inconsistent."""
    try:
        short, shape, (begin, end) = fields["dtype"], tuple(fields["shape"]), fields["data_offsets"]
        numbers = [*shape, begin, end]
    except (KeyError, TypeError, ValueError):
        raise SafetensorError(f"load: the header has {fields!r:.60} for {name!r}; want dtype, shape and data_offsets") from None
    if not isinstance(short, str) or _DTYPES.get(short) not in NAMED:
        raise SafetensorError(f"load: {name!r} is of dtype {short!r:.20}; genesis has {', '.join(NAMED)}")
    dtype = NAMED[_DTYPES[short]]
    if any(type(n) is not int or n < 0 for n in numbers) or len(shape) > 64 or math.prod(shape) * dtype.itemsize != end - begin:
        raise SafetensorError(f"load: {name!r} of shape {shape!r:.60} and dtype {short} does not take bytes {begin} to {end}")
    return Entry(dtype, shape, begin, end)


def parsed(head: bytes, length: int) -> tuple[dict[str, Entry], dict[str, str] | None, int]:
    """The entries and metadata of the header of a file of `length` bytes, and the offset of the data."""
    [size] = struct.unpack("<Q", head[:8]) if len(head) >= 8 else [0]
    if not 0 < size <= min(MOST_HEADER, length - 8) or len(head) < 8 + size:
        raise SafetensorError(f"load: a header of {size} bytes in a file of {length}; this is no safetensors file")
    try:
        header = json.loads(head[8 : 8 + size].decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as problem:
        raise SafetensorError(f"load: the header is no JSON: {problem}") from None
    if not isinstance(header, dict):
        raise SafetensorError("load: the header is no dict")
    metadata = header.pop("__metadata__", None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(text, str) for text in metadata.values())
    ):
        raise SafetensorError("load: the metadata is no dict of strings")
    entries = {name: _entry(name, fields) for name, fields in header.items()}
    at = 0
    for entry in sorted(entries.values(), key=lambda e: (e.begin, e.end)):
        if entry.begin != at:
            raise SafetensorError(f"load: tensors overlap or leave a hole at byte {at}")
        at = entry.end
    if at != length - 8 - size:
        raise SafetensorError(f"load: tensors take {at} bytes, the file has {length - 8 - size}")
    return entries, metadata, 8 + size


def header_of(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> tuple[bytes, list[Tensor]]:
    """The header of a file, and its tensors in their order."""
    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
            raise TypeError(f"save: metadata are strings by strings, got {metadata!r:.60}")
        header["__metadata__"] = {**metadata}
    for name, tensor in tensors.items():
        if not tensor.storage_layout.is_contiguous:
            raise ValueError(f"save: {name!r} is not contiguous; call .contiguous() on it before")
        if tensor.dtype.name not in _NAMES:
            raise TypeError(f"save: {name!r} is {tensor.dtype.name}, which the format has no name for")
    order = sorted(tensors.items(), key=lambda item: (_ORDER.index(item[1].dtype.name), item[0]))
    at = 0
    for name, tensor in order:
        end = at + tensor.numel() * tensor.dtype.itemsize
        header[name] = {"dtype": _NAMES[tensor.dtype.name], "shape": [*tensor.shape], "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, [tensor for _, tensor in order]
