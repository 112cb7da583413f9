"""DLPack: arrays of other libraries' memory, and of ours for them, without a copy. See dlpack.h, versions 0.8 and 1.0."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from genesis.runtime.references import is_sole_owner

CPU, CUDA = 1, 2  # DLDeviceType
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}  # DLDataTypeCode
_BYTES = {  # codes of kinds of one byte
    10: "float8_e4m3fn", 11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz", 14: "float8_e8m0fnu"}
_NAME, _USED = b"dltensor", b"used_dltensor"
_VERSIONED_NAME, _VERSIONED_USED = b"dltensor_versioned", b"used_dltensor_versioned"
VERSION = 1, 0  # what is asked of others, and given where they ask
_READ_ONLY, _COPIED = 1, 2  # flags


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


class _Version(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("version", _Version), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]


_python = ctypes.PyDLL("python", handle=ctypes.pythonapi._handle)
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_python.PyCapsule_SetName.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


class _Export:
    """An exported array: its structures, the holder of its memory, and the capsule while that may still own them."""

    def __init__(self, structures: tuple[Any, ...], holder: object, capsule: object, name: bytes) -> None:
        self.structures = structures
        self.name = name  # of the capsule, while nobody has taken the tensor
        self.holder = holder
        self.capsule = capsule


_exports: dict[int, _Export] = {}  # by the address of the DLManagedTensor, versioned or not


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
            if _python.PyCapsule_IsValid(id(capsule), export.name):
                _exports.pop(address, None)


class Outside(NamedTuple):
    """An array in another library's memory, valid as long as `owner` lives. Strides are in elements, None in C order."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    device: tuple[int, int]
    owner: object
    writeable: bool = True


class _Owner:
    """Calls the deleter of a tensor that was taken."""

    def __init__(self, managed: _Managed | _Versioned, address: int) -> None:
        self._managed = managed
        self._address = address

    def __del__(self) -> None:
        if self._managed.deleter:
            self._managed.deleter(self._address)


def exported(
    address: int, shape: Sequence[int], strides: Sequence[int], dtype: str, device: tuple[int, int], holder: object,
    versioned: bool = False, writeable: bool = True, copied: bool = False,
) -> Any:
    """A capsule with an array, for another library; `holder` lives until that is done with it.

    A versioned one says whether the array may be written, and whether it is a copy; BufferError for another one that may not.
    A capsule that nobody took is released when the next one is made.
    """
    _forget_unused()
    kind = dtype if dtype in _BYTES.values() else dtype.rstrip("0123456789")
    bits = int(dtype[len(kind) :] or 8)
    code = next(code for code, name in (_CODES | _BYTES).items() if name == kind)
    extents, steps = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*strides)
    tensor = _Tensor(address, _Device(*device), len(shape), _DataType(code, bits, 1), extents, steps, 0)
    if not versioned and not writeable:
        raise BufferError("__dlpack__: the tensor's memory is read-only, which DLPack tells from 1.0 on; want max_version")
    flags = _READ_ONLY * (not writeable) | _COPIED * copied
    managed = _Versioned(_Version(*VERSION), None, _delete, flags, tensor) if versioned else _Managed(tensor, None, _delete)
    name = _VERSIONED_NAME if versioned else _NAME
    capsule = _python.PyCapsule_New(ctypes.addressof(managed), name, None)
    _exports[ctypes.addressof(managed)] = _Export((managed, extents, steps), holder, capsule, name)
    return capsule


def imported(capsule: Any) -> Outside:
    """The array in a capsule, which is used up. Raises BufferError if there is none, or its elements are no numbers."""
    own = id(capsule)
    versioned = bool(_python.PyCapsule_IsValid(own, _VERSIONED_NAME))
    if not versioned and not _python.PyCapsule_IsValid(own, _NAME):
        raise BufferError("from_dlpack: wants a capsule that holds a tensor, and that nobody has taken it from yet")
    address = _python.PyCapsule_GetPointer(own, _VERSIONED_NAME if versioned else _NAME)
    managed = _Versioned.from_address(address) if versioned else _Managed.from_address(address)
    if isinstance(managed, _Versioned) and managed.version.major > VERSION[0]:
        raise BufferError(f"from_dlpack: the array is of DLPack {managed.version.major}; want version {VERSION[0]}")
    tensor = managed.tensor
    code, bits, lanes = tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes
    if code not in _CODES | _BYTES or lanes != 1:
        raise BufferError(f"from_dlpack: elements of DLPack's type code {code}, {bits} bits, {lanes} lanes have no dtype here")
    _python.PyCapsule_SetName(own, _VERSIONED_USED if versioned else _USED)  # from here on the tensor is ours to release
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else None
    dtype = "bool" if code == 6 else _BYTES[code] if code in _BYTES else f"{_CODES[code]}{bits}"
    device = tensor.device.type, tensor.device.index
    writeable = not (isinstance(managed, _Versioned) and managed.flags & _READ_ONLY)
    return Outside((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, device, _Owner(managed, address), writeable)
