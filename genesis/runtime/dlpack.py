"""DLPack: arrays of other libraries' memory, and of ours for them, without a copy. See dlpack.h, version 0.8."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from genesis.runtime.references import is_sole_owner

CPU, CUDA = 1, 2  # DLDeviceType
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}  # DLDataTypeCode
_NAME, _USED = b"dltensor", b"used_dltensor"


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("index", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


_python = ctypes.PyDLL(None)
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_python.PyCapsule_SetName.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


class _Export:
    """An exported array: its structures, the holder of its memory, and the capsule while that may still own them."""

    def __init__(self, structures: tuple[Any, ...], holder: object, capsule: object) -> None:
        self.structures = structures
        self.holder = holder
        self.capsule = capsule


_exports: dict[int, _Export] = {}  # by the address of the DLManagedTensor


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _delete(address: int) -> None:
    _exports.pop(address, None)


def _forget_unused() -> None:
    """Release exports whose capsules died before anybody took the tensor."""
    # A destructor of the capsule would do, but it may run while an exception propagates, when Python code must not run.
    for address, export in [*_exports.items()]:
        capsule = export.capsule
        if capsule is not None and is_sole_owner([capsule], 2):  # besides the export and the local name
            export.capsule = None
            if _python.PyCapsule_IsValid(id(capsule), _NAME):
                _exports.pop(address, None)


class Outside(NamedTuple):
    """An array in another library's memory, valid as long as `owner` lives. Strides are in elements, None in C order."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    device: tuple[int, int]
    owner: object


class _Owner:
    """Calls the deleter of a tensor that was taken."""

    def __init__(self, managed: _Managed, address: int) -> None:
        self._managed = managed
        self._address = address

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(self._address)


def exported(
    address: int, shape: Sequence[int], strides: Sequence[int], dtype: str, device: tuple[int, int], holder: object
) -> Any:
    """A capsule with an array, for another library; `holder` lives until that is done with it.

    A capsule that nobody took is released when the next one is made.
    """
    _forget_unused()
    kind = dtype.rstrip("0123456789")
    bits = int(dtype[len(kind) :] or 8)
    code = next(code for code, name in _CODES.items() if name == kind)
    extents, steps = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*strides)
    tensor = _Tensor(address, _Device(*device), len(shape), _DataType(code, bits, 1), extents, steps, 0)
    managed = _Managed(tensor, None, _delete)
    capsule = _python.PyCapsule_New(ctypes.addressof(managed), _NAME, None)
    _exports[ctypes.addressof(managed)] = _Export((managed, extents, steps), holder, capsule)
    return capsule


def imported(capsule: Any) -> Outside:
    """The array in a capsule, which is used up. Raises BufferError if there is none, or its elements are no numbers."""
    own = id(capsule)
    if not _python.PyCapsule_IsValid(own, _NAME):
        raise BufferError("from_dlpack: wants a capsule that holds a tensor, and that nobody has taken it from yet")
    address = _python.PyCapsule_GetPointer(own, _NAME)
    managed = _Managed.from_address(address)
    tensor = managed.tensor
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    if code not in _CODES or lanes != 1:
        raise BufferError(f"from_dlpack: elements of DLPack's type code {code}, {bits} bits, {lanes} lanes have no dtype here")
    _python.PyCapsule_SetName(own, _USED)  # from here on the tensor is ours to release
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else None
    dtype = "bool" if code == 6 else f"{_CODES[code]}{bits}"
    place = tensor.device.type, tensor.device.index
    return Outside((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, place, _Owner(managed, address))
