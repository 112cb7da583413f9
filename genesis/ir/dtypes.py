"""Element types and PyTorch's promotion rules.

A dtype is one of eighteen singletons: ten that every operation supports; complex numbers, supported by the operations of
`genesis.ops.complex_rules`; further unsigned integers, for storage and elementwise arithmetic; and 8-bit floats, for storage
only. Promotion follows https://pytorch.org/docs/stable/tensor_attributes.html: dimensioned tensors
decide, then 0-d tensors, then Python scalars; a lower rank only matters when its *category* (bool < integer < floating <
complex) is higher.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis.ir.annotations import Arguments
from genesis.ir.errors import ArgumentError, ArgumentTypeError, DataError
from genesis.ir.library import Library
from genesis.ir.symbolic_sizes import Size

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class DType:
    """An element type: `name`, `itemsize` in bytes, `category` (0 bool, 1 integer, 2 floating, 3 complex) and NumPy's dtype.

    NumPy's of those that NumPy lacks is of ml_dtypes, which is loaded when it is first asked for.

    Attributes:
        compute: the dtype that arithmetic runs in: float32 for float16, bfloat16 and the dtypes of storage, complex64 for
            complex32, and itself for others.
    """

    __slots__ = ("_numpy", "category", "compute", "itemsize", "name", "rank")
    compute: DType

    def __init__(self, name: str, itemsize: int, category: int, rank: int, in_numpy: bool = True) -> None:
        self.name = name
        self.itemsize = itemsize
        self.category = category
        self.rank = rank
        self._numpy = np.dtype(name) if in_numpy else None

    @property
    def numpy(self) -> np.dtype[Any]:
        if self._numpy is None:
            self._numpy = np.dtype(getattr(import_module("ml_dtypes"), self.name))
        return self._numpy

    @property
    def is_floating_point(self) -> bool:
        return self.category == 2

    @property
    def is_complex(self) -> bool:
        return self.category == 3

    @property
    def real(self) -> DType:
        """The dtype of a complex dtype's parts; other dtypes return themselves."""
        return self if self.category != 3 else {4: float16, 8: float32, 16: float64}[self.itemsize]

    @property
    def complex(self) -> DType:
        """The complex dtype with parts of this dtype: float16 and float64 keep their width, others get 32-bit parts."""
        return self if self.category == 3 else {"float16": complex32, "float64": complex128}.get(self.name, complex64)

    @property
    def is_signed(self) -> bool:
        return self.name not in ("bool", "uint8", "uint16", "uint32", "uint64")

    def __repr__(self) -> str:
        return f"{Library.name}.{self.name}"

    def __reduce__(self) -> Arguments:
        return _named, (self.name,)


bool_ = DType("bool", 1, 0, 0)
uint8 = DType("uint8", 1, 1, 1)
int8 = DType("int8", 1, 1, 1)
int16 = DType("int16", 2, 1, 2)
int32 = DType("int32", 4, 1, 3)
int64 = DType("int64", 8, 1, 4)
uint16 = DType("uint16", 2, 1, 2)
uint32 = DType("uint32", 4, 1, 3)
uint64 = DType("uint64", 8, 1, 4)
float16 = DType("float16", 2, 2, 5)
bfloat16 = DType("bfloat16", 2, 2, 5, in_numpy=False)
float32 = DType("float32", 4, 2, 6)
float64 = DType("float64", 8, 2, 7)
complex32 = DType("complex32", 4, 3, 8, in_numpy=False)
complex64 = DType("complex64", 8, 3, 9)
complex128 = DType("complex128", 16, 3, 10)

DTYPES: dict[str, DType] = {d.name: d for d in (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64)}
float8_e4m3fn = DType("float8_e4m3fn", 1, 2, 4, in_numpy=False)
float8_e5m2 = DType("float8_e5m2", 1, 2, 4, in_numpy=False)
float8_e4m3fnuz = DType("float8_e4m3fnuz", 1, 2, 4, in_numpy=False)
float8_e5m2fnuz = DType("float8_e5m2fnuz", 1, 2, 4, in_numpy=False)
float8_e8m0fnu = DType("float8_e8m0fnu", 1, 2, 4, in_numpy=False)
FLOATS_OF_8_BITS = float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz, float8_e8m0fnu
STORED = frozenset(FLOATS_OF_8_BITS)  # for storage only: `Tensor.to` converts them
# For files and other libraries.
NAMED: dict[str, DType] = DTYPES | {d.name: d for d in (
    uint16, uint32, uint64, *FLOATS_OF_8_BITS, complex32, complex64, complex128)}
for _dtype in NAMED.values():
    _is_narrow = _dtype in (float16, bfloat16, *FLOATS_OF_8_BITS)
    _dtype.compute = float32 if _is_narrow else complex64 if _dtype is complex32 else _dtype


def _named(name: str) -> DType:
    return NAMED[name]


NOT_NUMPYS = frozenset((bfloat16, complex32, *FLOATS_OF_8_BITS))  # ml_dtypes' instead
_FROM_NUMPY = {d.numpy: d for d in NAMED.values() if d not in NOT_NUMPYS}
default_dtype = [float32]  # the dtype of Python floats


def get_default_dtype() -> DType:
    """The floating type that Python floats and `genesis.zeros` take.

    >>> genesis.get_default_dtype()
    genesis.float32
    """
    return default_dtype[0]


def set_default_dtype(dtype: DType) -> None:
    """Sets only the variable; use `genesis.set_default_dtype`."""
    dtype = as_dtype("set_default_dtype", dtype)
    if not dtype.is_floating_point:
        raise TypeError(f"set_default_dtype: want a floating dtype, got {dtype!r}")
    refuse_stored("set_default_dtype", dtype)
    default_dtype[0] = dtype


def from_numpy_dtype(dtype: DTypeLike) -> DType:
    """The genesis dtype of a NumPy dtype; raises TypeError if there is none."""
    try:
        found = _of_numpy(np.dtype(dtype))
    except TypeError:
        found = None
    if found is None:
        names = ", ".join(NAMED)
        raise DataError(f"genesis has no dtype for NumPy's {dtype!r}; it has {names}")
    return found


def _of_numpy(dtype: np.dtype[Any]) -> DType | None:
    found = _FROM_NUMPY.get(dtype)
    if found is None and dtype.isbuiltin == 2:  # registered by a library, so ml_dtypes may be there already
        named = NAMED.get(dtype.name)
        found = named if named is not None and named.numpy == dtype else None
    return found


_NUMBERS = int, float, bool
_GREATEST = {float16: 65504.0, bfloat16: 2.0**128 - 2.0**120, float32: 2.0**128 - 2.0**104}


def float_limits(dtype: DType) -> np.finfo[Any]:
    """The limits of a floating dtype, by NumPy or by ml_dtypes."""
    library = import_module("ml_dtypes") if dtype in NOT_NUMPYS else np
    limits: np.finfo[Any] = library.finfo(dtype.numpy)
    return limits


def dtype_of_scalar(value: complex | np.generic | np.ndarray) -> DType:
    """bool -> bool, int -> int64, float -> the default floating dtype, complex -> its complex dtype."""
    if value.__class__ is float or value.__class__ is int:
        return int64 if value.__class__ is int else default_dtype[0]
    if isinstance(value, bool | np.bool_):
        return bool_
    if isinstance(value, complex | np.complexfloating):
        return default_dtype[0].complex
    return int64 if isinstance(value, int | np.integer | Size) else default_dtype[0]


def as_dtype(name: str, dtype: object) -> DType:
    """The dtype for a dtype, a name, Python's complex, float, int or bool, or a NumPy dtype. Raises TypeError, naming the
    operation `name`, for anything else.

    >>> as_dtype("zeros", "float32"), as_dtype("zeros", float), as_dtype("zeros", np.int8)
    (genesis.float32, genesis.float64, genesis.int8)
    """
    if isinstance(dtype, DType):
        return dtype
    known = NAMED.get(dtype) if isinstance(dtype, str) else None
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic | int | float | complex)):
        known = _of_numpy(np.dtype(dtype))
    if known is None:
        raise TypeError(f"{name}: wants a genesis dtype such as genesis.float32, got {type(dtype).__name__} {dtype!r:.40}")
    return known


def refuse_stored(name: str, dtype: DType) -> None:
    """Raise TypeError, naming the operation, for a storage-only dtype."""
    if dtype in STORED:
        raise TypeError(f"{name}: {dtype.name} is for storage; convert it, as by .to(genesis.float32)")


def refuse_complex_number(name: str, value: object, dtype: DType) -> None:
    """Raise TypeError, naming the operation, for converting a complex Python number to a real dtype."""
    if isinstance(value, complex) and dtype.category in (1, 2):
        raise ArgumentTypeError(f"{name}: the number {value} is complex, and the tensor {dtype.name}; take its real part")


def refuse_number(name: str, value: object, dtype: DType) -> None:
    """As `refuse_complex_number`; raises ValueError for a number outside the dtype's range. As in PyTorch, infinities and NaN
    are numbers of every floating dtype, and negative ints wrap in unsigned ones.
    """
    if value.__class__ in _NUMBERS and 0 <= value <= 127:  # type: ignore[operator]
        return  # every dtype has it
    value = value.item() if isinstance(value, np.generic) else value
    refuse_complex_number(name, value, dtype)
    least: float
    greatest: float
    if dtype.category == 1 and isinstance(value, int | float):
        info = np.iinfo(dtype.numpy)
        least, greatest = -info.max if isinstance(value, int) and not dtype.is_signed else info.min, info.max
        fits = least <= value <= greatest  # also false for NaN
    elif dtype.real in _GREATEST and isinstance(value, int | float | complex):
        greatest = _GREATEST[dtype.real]
        least, fits = -greatest, not any(greatest < abs(part) < inf for part in (value.real, value.imag))
    else:
        return
    if not fits:
        raise ArgumentError(f"{name}: value cannot be converted to {dtype.name} without overflow: {value}; want {least} to "
                            f"{greatest}")


def promote(type1: DType, type2: DType) -> DType:
    """The smallest dtype that can represent both, as `torch.promote_types`. Raises TypeError for uint64 and a signed integer.

    >>> genesis.promote_types(genesis.int64, genesis.float16)
    genesis.float16
    """
    a, b = as_dtype("promote_types", type1), as_dtype("promote_types", type2)
    if a is b:
        return a
    if a.category != b.category:
        higher, lower = (a, b) if a.category > b.category else (b, a)
        return promote(higher.real, lower).complex if lower.category == 2 and higher.category == 3 else higher
    if {a.name, b.name} == {"float16", "bfloat16"}:
        return float32
    if a.category == 1 and a.is_signed is not b.is_signed:
        unsigned, signed = (b, a) if a.is_signed else (a, b)
        if signed.itemsize > unsigned.itemsize:
            return signed
        if unsigned is uint64:
            raise TypeError(f"promote_types: no integer holds both uint64 and {signed.name}; convert one of them")
        return {1: int16, 2: int32, 4: int64}[unsigned.itemsize]
    return a if a.rank > b.rank else b


def result_type(operands: Iterable[tuple[DType, int]]) -> DType:
    """The common type of operands given as (dtype, priority): 2 dimensioned tensor, 1 0-d tensor, 0 Python scalar."""
    by_priority: list[DType | None] = [None, None, None]
    for dtype, priority in operands:
        known = by_priority[priority]
        by_priority[priority] = dtype if known is None else promote(known, dtype)
    result = by_priority[0]
    for higher in by_priority[1:]:
        if higher is not None and (result is None or higher.category >= result.category):
            result = higher
        elif higher is not None:
            assert result is not None
            result = higher.complex if higher.category == 2 else result if higher.category == 0 else promote(higher, result)
    assert result is not None
    return result


NOT_REPLAYABLE = ("set_default_dtype",)
