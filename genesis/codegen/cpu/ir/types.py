"""LLVM's types, and values of them: operands and constants."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar


class Type:
    """An LLVM type. There is one object for each, so types are compared by identity."""

    text: str
    width: int  # of an integer, in bits
    element: Type  # of a vector or an array
    count: int
    _known: ClassVar[dict[tuple[Any, ...], Type]] = {}

    def __new__(cls, *given: Any) -> Any:
        found = cls._known.get((cls, *given))
        if found is None:
            made = super().__new__(cls)
            made._describe(*given)
            found = cls._known.setdefault((cls, *given), made)  # another thread may have made it meanwhile
        return found

    def _describe(self, *given: Any) -> None:
        """The fields of a type with these arguments."""

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __call__(self, value: Any) -> Constant:
        return Constant(self, value)


class PlainType(Type):
    """A type that is a word of LLVM's."""

    def _describe(self, text: str) -> None:
        self.text = text


class IntType(Type):
    def _describe(self, width: int) -> None:
        self.width, self.text = width, f"i{width}"


class VectorType(Type):
    def _describe(self, element: Type, count: int) -> None:
        self.element, self.count, self.text = element, count, f"<{count} x {element}>"


class ArrayType(Type):
    def _describe(self, element: Type, count: int) -> None:
        self.element, self.count, self.text = element, count, f"[{count} x {element}]"


class FunctionType:
    def __init__(self, return_type: Type, args: Sequence[Type]) -> None:
        self.return_type, self.args = return_type, tuple(args)


class FunctionPointer(Type):
    """The type of a pointer to a function of known type, which can be called."""

    def __new__(cls, function_type: FunctionType) -> Any:
        return object.__new__(cls)

    def __init__(self, function_type: FunctionType) -> None:
        self.function_type, self.text = function_type, "ptr"


VOID, POINTER, HALF, BFLOAT, FLOAT, DOUBLE = map(PlainType, ("void", "ptr", "half", "bfloat", "float", "double"))
I1 = IntType(1)

# ---- values ----


class Value:
    """An operand of an instruction: its type, and its name in the text."""

    __slots__ = ("text", "type")

    def __init__(self, type_: Any, text: str) -> None:
        self.type, self.text = type_, text


class Constant(Value):
    """A number, a vector of integers, or a constant as LLVM spells it, such as "zeroinitializer"."""

    __slots__ = ("constant",)

    def __init__(self, type_: Any, constant: Any) -> None:
        if isinstance(constant, str):
            text = constant
        elif isinstance(constant, tuple):
            text = f"<{', '.join([f'{type_.element.text} {int(number)}' for number in constant])}>"
        elif type_ in (FLOAT, DOUBLE):
            text = _bits(constant, type_)
        else:
            text = str(int(constant))
        super().__init__(type_, text)
        self.constant = constant


def _bits(number: float, type_: Type) -> str:
    """A float as the bits of a double, the only exact spelling, and one that NaN and infinities have too."""
    if type_ is FLOAT:
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    return f"0x{struct.unpack('Q', struct.pack('d', number))[0]:016X}"
