"""The dtypes in a kernel: types of variables and of memory, and conversions. A dtype is a string, a value is text.

float16 and bfloat16 are storage formats, computed as float32; bfloat16 is stored as its 16 bits.
"""

from __future__ import annotations

__all__ = ["FLOATING", "accumulated", "converted", "loaded", "memory_type", "register_type", "rounded", "stored"]

FLOATING = frozenset(("float64", "float32", "float16", "bfloat16"))


def register_type(dtype: str) -> str:
    """The type of a variable; nothing converts to `bool`."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def memory_type(dtype: str) -> str:
    """The type of an element in memory."""
    return {"bool": "uint8", "bfloat16": "uint16"}.get(dtype, dtype)


def accumulated(dtype: str) -> str:
    """The type of a reduction over values of a dtype: one of the three that warps exchange."""
    return register_type(dtype) if dtype in FLOATING else "int64"


def loaded(element: str, dtype: str) -> str:
    """An element of memory as a value."""
    if dtype == "bool":
        return f"{element} != 0"
    return {"float16": f"float32({element})", "bfloat16": f"float32_of_bfloat16({element})"}.get(dtype, element)


def stored(value: str, dtype: str) -> str:
    """A value as an element of memory."""
    return {"bool": f"uint8({value})", "float16": f"float16({value})", "bfloat16": f"bfloat16_bits({value})"}.get(dtype, value)


def rounded(value: str, dtype: str) -> str:
    """A float32 to the precision of a 16-bit type; for another dtype as it is."""
    return loaded(stored(value, dtype), dtype) if dtype in ("float16", "bfloat16") else value


def converted(value: str, source: str, dtype: str) -> str:
    """NumPy's `astype`; see the CPU's `convert` for floats beyond an integer's range."""
    if source == dtype:
        return value
    if dtype == "bool":
        return f"{value} != {register_type(source)}(0)"
    # Through 32 or 64 bits, saturating; narrower integers wrap from there, as on the CPU.
    if source in FLOATING and dtype not in FLOATING:
        return f"int64_of({value})" if dtype == "int64" else f"int32_of({value})" if dtype == "int32" else \
            f"{dtype}(int32_of({value}))"
    target = register_type(dtype)
    return rounded(value if register_type(source) == target else f"{target}({value})", dtype)
