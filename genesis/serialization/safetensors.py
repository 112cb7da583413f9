"""Safetensors files: a header of JSON that names tensors, then their bytes. No code, no pickle.

The functions are those of `safetensors.torch`. The format: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from genesis.ir.shapes import numel
from genesis.ops.layout import contiguous_layout
from genesis.runtime.devices import CPU, Device, DeviceLike, device_of
from genesis.serialization.replaced_file import replaced_file
from genesis.serialization.safetensors_header import MOST_HEADER, Entry, SafetensorError, header_of, parsed
from genesis.serialization.storage import Storage
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.views import memory_of

__all__ = [
    "SafetensorError", "load", "load_file", "load_model", "safe_open", "save", "save_file", "save_model", "storage_ptr",
    "storage_size",
]
__dir__ = __all__.copy


def sharing(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Groups of sorted names of tensors that share memory."""
    by_root: dict[int, list[tuple[int, int, str]]] = {}
    for name, tensor in tensors.items():
        root = root_of(tensor)
        at = tensor.storage_layout
        if 0 not in at.shape:
            last = at.offset + sum((extent - 1) * stride for extent, stride in zip(at.shape, at.strides, strict=True))
            by_root.setdefault(id(root), []).append((at.offset, last, name))
    groups = []
    for spans in by_root.values():
        reached = -1
        for first, last, name in sorted(spans):
            if first > reached:
                groups.append([name])
            else:
                groups[-1].append(name)
            reached = max(reached, last)
    return [sorted(names) for names in groups]


def _is_whole(tensor: Tensor) -> bool:
    return tensor._base is None or numel(tensor.shape) == numel(tensor._base.shape)


def dropped_names(tensors: Mapping[str, Tensor], preferred: Sequence[str] = ()) -> dict[str, str]:
    """The name of each tensor contained in another -> the name of that one, to keep."""
    dropped: dict[str, str] = {}
    for names in (names for names in sharing(tensors) if len(names) > 1):
        whole = [name for name in names if _is_whole(tensors[name])]
        if not whole:
            raise RuntimeError(f"save_model: {' and '.join(names)} share memory, and none takes all of it; clone() them")
        kept = next((name for name in whole if name in preferred), whole[0])
        dropped |= {name: kept for name in names if name != kept}
    return dropped


def storage_ptr(tensor: Tensor) -> int:
    """The address of the tensor's storage."""
    root = root_of(tensor)
    return root.data_ptr()


def storage_size(tensor: Tensor) -> int:
    """The bytes of the tensor's storage."""
    root = root_of(tensor)
    return root.numel() * root.dtype.itemsize


Path_ = str | os.PathLike[str]
Tensors = Mapping[str, Tensor]


class Stateful(Protocol):
    """An object with a module's state dict."""

    def state_dict(self) -> dict[str, Tensor]: ...

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = ...) -> Any: ...


# ---- loading ----
class _Bytes:
    """The source of a storage: bytes in memory, possibly mapped from a file."""

    def __init__(self, content: np.ndarray, copied: bool) -> None:
        self._content = content
        self._copied = copied

    def check(self, key: str, nbytes: int) -> None:
        """Does nothing: the header has been checked."""

    def read(self, key: str, into: np.ndarray) -> None:
        into[...] = self._content

    def mapped(self, key: str, nbytes: int) -> np.ndarray | None:
        return None if self._copied or not nbytes or self._content.ctypes.data % 8 else self._content


class safe_open:  # the package's name
    """A safetensors file, whose tensors are read one by one, as a context.

    Args:
        filename: its path.
        framework: accepted for compatibility and ignored: tensors are genesis'.
        device: the tensors' device.
        backend: "mmap" maps the file's pages into CPU tensors, copied on write; "pread" reads them.

    Raises SafetensorError for a file that is damaged.

    >>> import genesis, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "x.safetensors")
    >>> save_file({"x": genesis.arange(4).reshape(2, 2)}, path, {"made": "here"})
    >>> with safe_open(path) as file:
    ...     file.keys(), file.metadata(), file.get_slice("x")[1]
    (['x'], {'made': 'here'}, tensor([2, 3]))
    """

    def __init__(
        self, filename: Path_, framework: str = "pt", device: DeviceLike | int = CPU, *, backend: str = "mmap"
    ) -> None:
        if backend not in ("mmap", "pread"):
            raise ValueError(f"safe_open: backend {backend!r}; want 'mmap' or 'pread'")
        self._device = device_of(f"cuda:{device}" if isinstance(device, int) else device)
        self._copied = backend == "pread"
        with open(filename, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if length else b""
        self._content = np.frombuffer(mapped, np.uint8)
        head = struct.unpack("<Q", mapped[:8])[0] if length >= 8 else 0
        self._entries, self._metadata, self._start = parsed(bytes(mapped[: 8 + min(head, MOST_HEADER)]), length)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        """Does nothing: the pages live as long as tensors use them."""

    def keys(self) -> list[str]:
        """The names of the tensors, in their order in the file."""
        return sorted(self._entries, key=lambda name: self._entries[name].begin)

    offset_keys = keys

    def metadata(self) -> dict[str, str] | None:
        """The saved metadata, if any."""
        return self._metadata

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of a name. Raises SafetensorError if there is none."""
        entry = self._entries.get(name)
        if entry is None:
            raise SafetensorError(f"safe_open: the file has no tensor {name!r}; it has {', '.join(self.keys()):.200}")
        content = self._content[self._start + entry.begin : self._start + entry.end]
        return _tensor(entry, _Bytes(content, self._copied), self._device)

    get_slice = get_tensor  # a mapped tensor reads only what is indexed

    def get_tensors(self) -> dict[str, Tensor]:
        """All tensors, by name."""
        return {name: self.get_tensor(name) for name in self.keys()}


def _tensor(entry: Entry, source: _Bytes, device: Device) -> Tensor:
    storage = Storage(entry.dtype, entry.end - entry.begin)
    storage.open("", source, False, device)
    return storage.tensor(entry.dtype, contiguous_layout(entry.shape))


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a safetensors file. Raises SafetensorError for damaged ones.

    >>> import genesis
    >>> load(save({"x": genesis.ones(2)}))
    {'x': tensor([1., 1.])}
    """
    entries, _, start = parsed(data, len(data))
    content = np.frombuffer(data, np.uint8)
    return {
        name: _tensor(entry, _Bytes(content[start + entry.begin : start + entry.end], True), CPU)
        for name, entry in sorted(entries.items(), key=lambda item: item[1].begin)
    }


def load_file(filename: Path_, device: DeviceLike | int = CPU, *, backend: str = "mmap") -> dict[str, Tensor]:
    """The tensors of a safetensors file, on `device`; `backend` as for `safe_open`."""
    with safe_open(filename, device=device, backend=backend) as file:
        return file.get_tensors()


# ---- saving ----
def _parts(tensors: Tensors, metadata: Mapping[str, str] | None) -> Iterator[memoryview | bytes]:
    """The bytes of a file, in parts. Raises before the first part for tensors that cannot be saved."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"save: {name!r} is a {type(tensor).__name__}; want a dict of tensors")
    shared = [names for names in sharing(tensors) if len(names) > 1]
    if shared:
        raise RuntimeError(f"save: {' and '.join(shared[0])} share memory, and files cannot; want save_model, or clones")
    header, order = header_of(tensors, metadata)
    yield header
    for tensor in order:
        yield memory_of(tensor).numpy(tensor.dtype).reshape(-1).view(np.uint8).data


def save(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file. Raises as `save_file`."""
    return b"".join(_parts(tensors, metadata))


def save_file(tensors: Tensors, filename: Path_, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors, by name, to a safetensors file; `metadata` are strings saved with them. Tensors mapped from a former file
    of that path keep their values.

    Raises ValueError for a tensor that is not contiguous, RuntimeError for tensors that share memory (`save_model`
    keeps one of these).
    """
    with replaced_file(filename) as file:
        file.writelines(_parts(tensors, metadata))


def save_model(
    model: Stateful, filename: Path_, metadata: Mapping[str, str] | None = None, force_contiguous: bool = True
) -> None:
    """Write a module's state to a safetensors file; one of tied weights is written; the metadata list the others."""
    state = model.state_dict()
    dropped = dropped_names(state)
    kept = {name: tensor for name, tensor in state.items() if name not in dropped}
    if force_contiguous:
        kept = {name: tensor.contiguous() for name, tensor in kept.items()}
    save_file(kept, filename, {**dropped, **(metadata or {})} if dropped or metadata is not None else None)


def load_model(
    model: Stateful, filename: Path_, strict: bool = True, device: DeviceLike | int = CPU, *, backend: str = "mmap"
) -> tuple[list[str], list[str]]:
    """Read a module's state from a safetensors file; returns (names missing in the file, names unknown to the module).

    With `strict` either raises RuntimeError. One of several tied weights is enough.
    """
    read = load_file(filename, device, backend=backend)
    dropped = dropped_names(model.state_dict(), [*read])
    missing, unexpected = model.load_state_dict(read, strict=False)
    lacking = sorted(set(missing) - set(dropped))
    unwanted = [*unexpected, *(name for name in dropped if name in read)]
    if strict and (lacking or unwanted):
        raise RuntimeError(f"load_model: the file lacks {lacking}, and has {unwanted}, which {type(model).__name__} does not")
    return lacking, unwanted
