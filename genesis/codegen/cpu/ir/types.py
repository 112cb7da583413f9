"""LLVM's types, and values of them: operands and constants."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
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
FLOATS = HALF, BFLOAT, FLOAT, DOUBLE

# ---- values ----
Operand = Any  # a value, or a number: a constant of the other operand's type


def _operator(of_integers: str, of_floats: str = "", *, reflected: bool = False) -> Callable[[Value, Operand], Value]:
    """A method that emits an instruction of two integers, or of two floats."""

    def emit(self: Value, other: Operand) -> Value:
        other = other if isinstance(other, Value) else self.type(other)
        a, b = (other, self) if reflected else (self, other)
        builder = self.builder or other.builder
        if builder is None:
            return a.type(_FOLDED[of_integers](_integer(a), _integer(b)))
        emitted: Value = getattr(builder, of_floats if _is_floating(self) else of_integers)(a, b)
        return emitted

    return emit


def _comparison(predicate: str) -> Callable[[Value, Operand], Value]:
    """A method that emits a comparison."""

    def emit(self: Value, other: Operand) -> Value:
        a, b, how = self, other if isinstance(other, Value) else self.type(other), predicate
        if isinstance(a, Constant) and not isinstance(b, Constant):  # Python asks a subclass first, also for `value > constant`
            a, b, how = b, a, _MIRRORED.get(predicate, predicate)
        if a.builder is None:
            return I1(_FOLDED[how](_integer(a), _integer(b)))
        emitted: Value = (a.builder.fcmp_ordered if _is_floating(a) else a.builder.icmp_signed)(how, a, b)
        return emitted

    return emit


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FOLDED = {  # what nobody emits: of two constants
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and_": operator.and_, "or_": operator.or_,
    "xor": operator.xor, "shl": operator.lshift, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}


def _integer(constant: Any) -> int:
    if not isinstance(constant.constant, int):
        raise TypeError(f"an operator of two constants, one of which is {constant.text}; want an operand that is none")
    return constant.constant


class Value:
    """An operand of an instruction: its type, and its name in the text.

    Operators and calls emit instructions, by an operand's `builder`: `row * pitch + 1`. Comparisons are signed, and do not hold
    for NaN.
    """

    __slots__ = ("builder", "text", "type")

    def __init__(self, type_: Any, text: str, builder: Any = None) -> None:
        self.type, self.text, self.builder = type_, text, builder

    __add__, __radd__ = _operator("add", "fadd"), _operator("add", "fadd", reflected=True)
    __sub__, __rsub__ = _operator("sub", "fsub"), _operator("sub", "fsub", reflected=True)
    __mul__, __rmul__ = _operator("mul", "fmul"), _operator("mul", "fmul", reflected=True)
    __truediv__, __rtruediv__ = _operator("", "fdiv"), _operator("", "fdiv", reflected=True)
    __and__, __or__, __xor__ = map(_operator, ("and_", "or_", "xor"))
    __lshift__, __rlshift__ = _operator("shl"), _operator("shl", reflected=True)
    __lt__, __le__, __gt__, __ge__ = _comparison("<"), _comparison("<="), _comparison(">"), _comparison(">=")
    equals, differs = _comparison("=="), _comparison("!=")

    def __call__(self, *arguments: Value) -> Value:
        """Emit a call of a function."""
        builder = next(value.builder for value in (self, *arguments) if value.builder)
        result: Value = builder.call(self, arguments)
        return result

    def __bool__(self) -> bool:
        if self.type is I1:
            raise TypeError(f"{self.text} is known when the kernel runs; want a branch that is emitted")
        return True  # not None

    def __neg__(self) -> Value:
        negative: Value = self.builder.fneg(self) if _is_floating(self) else self.builder.neg(self)
        return negative

    def __invert__(self) -> Value:
        inverse: Value = self.builder.not_(self)
        return inverse


def _is_floating(value: Value) -> bool:
    return (value.type.element if isinstance(value.type, VectorType) else value.type) in FLOATS


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
