"""Dtypes: promotion of arrays, kinds, limits."""

from __future__ import annotations

import builtins
from typing import NamedTuple

from genesis.functions import comparison
from genesis.ir import dtypes
from genesis.ir.dtypes import DType, bool_, dtype_of_scalar, get_default_dtype
from genesis.runtime.devices import Device, device_of
from genesis.tensor.handle import Tensor

KINDS = {
    "bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"), "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]
Kind = str | DType | tuple["Kind", ...]


def common(*found: DType) -> DType:
    """The dtype that arrays of these have together."""
    result = found[0]
    for dtype in found[1:]:
        result = dtypes.promote(result, dtype)
    return result


def astype(x: Tensor, dtype: DType, /, *, copy: builtins.bool = True, device: Device | str | None = None) -> Tensor:
    """The array in another dtype; without `copy`, itself where nothing changes."""
    result = x.to(device or x.device, dtype)
    return x.clone() if copy and result is x else result


def can_cast(from_: DType | Tensor, to: DType, /) -> builtins.bool:
    """Whether promotion leads from one dtype to the other, of the same kind (bool, integer or floating), or to complex."""
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    alike = dtype.category == to.category or (dtype.is_floating_point and to.is_complex)
    if not alike or (to.is_signed is False and dtype.is_signed):
        return False
    return not (dtype is dtypes.uint64 and to.is_signed) and common(dtype, to) is to


def result_type(*arrays_and_dtypes: Tensor | DType | float) -> DType:
    """The dtype that arrays, dtypes and numbers have together. Raises ValueError if there are numbers alone."""
    arrays = [x.dtype if isinstance(x, Tensor) else x for x in arrays_and_dtypes if isinstance(x, Tensor | DType)]
    if not arrays:
        raise ValueError("result_type: wants an array or a dtype")
    result = common(*arrays)
    for number in (x for x in arrays_and_dtypes if not isinstance(x, Tensor | DType)):
        own = dtype_of_scalar(number)
        if own.category > result.category:
            result = result.complex if own.is_complex and result.category == 2 else own
    return result


def isdtype(dtype: DType, kind: Kind) -> builtins.bool:
    """Whether a dtype is of a kind ("bool", "integral", "real floating", ..), of one of several, or another dtype."""
    if isinstance(kind, tuple):
        return any([isdtype(dtype, one) for one in kind])
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"isdtype: kind {kind!r}; want one of {', '.join(KINDS)}")
    if dtype.name in ("float16", "bfloat16"):
        return kind in ("real floating", "numeric")
    return dtype.name in KINDS[kind]


class finfo_object(NamedTuple):
    """The limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DType | Tensor, /) -> finfo_object:
    """The limits of a floating dtype, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    of = comparison.finfo(dtype)
    return finfo_object(of.bits, of.eps, of.max, of.min, of.smallest_normal, dtype.real)


def iinfo(type: DType | Tensor, /) -> iinfo_object:
    """The limits of an integer dtype, or of an array's."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    of = comparison.iinfo(dtype)
    return iinfo_object(of.bits, of.max, of.min, dtype)


class __array_namespace_info__:
    """The namespace's properties: `capabilities`, `default_device`, `default_dtypes`, `devices`, `dtypes`.

    >>> import genesis
    >>> genesis.array_api.__array_namespace_info__().default_dtypes()["real floating"]
    genesis.float32
    """

    def capabilities(self) -> dict[str, builtins.bool | int]:
        """Boolean indexing and shapes that depend on data work; arrays have at most 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of new arrays."""
        return device_of(None)

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, DType]:
        """The dtypes of Python's numbers, and of indices."""
        default = get_default_dtype()
        return {"real floating": default, "complex floating": default.complex, "integral": dtypes.int64,
                "indexing": dtypes.int64}

    def dtypes(self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The dtypes, by name, of a kind, of several, or all."""
        kinds = (kind,) if isinstance(kind, str) else tuple(KINDS) if kind is None else kind
        if not all([one in KINDS for one in kinds]):
            raise ValueError(f"dtypes: kind {kind!r}; want of {', '.join(KINDS)}")
        names = [name for one in kinds for name in KINDS[one]]
        return {name: dtypes.NAMED[name] for name in names if name in dtypes.NAMED}

    def devices(self) -> list[Device]:
        """The devices: that of new arrays, and the CPU."""
        return [*dict.fromkeys((device_of(None), Device("cpu")))]


bool = bool_
