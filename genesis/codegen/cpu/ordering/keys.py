"""Elements as keys: unsigned integers in the order in which elements are sorted.

Floats are mapped monotonically; NaN is the greatest and -0.0 is 0.0. Keys of a descending order are complements, so equal
elements keep their order either way. Words of the launch describe the elements, so all dtypes of a size share one kernel.
"""

from __future__ import annotations

from typing import NamedTuple

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.code import Code
from genesis.codegen.cpu.tiling import vector_bytes
from genesis.ir.dtypes import DType

ORDER = "zero", "infinity", "flipped", "sign", "reversed"  # the words of a launch that say what elements are
_MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
ALIGNED = 64  # bytes


def order_words(dtype: DType, descending: bool) -> tuple[int, ...]:
    """The words of `ORDER` for elements of `dtype`."""
    bits = 8 * dtype.itemsize
    sign, rest = 1 << (bits - 1), (1 << (bits - 1)) - 1
    backwards = -1 if descending else 0
    if dtype.is_floating_point:
        return sign, rest >> _MANTISSA[dtype.name] << _MANTISSA[dtype.name], rest, sign, backwards
    return 0, rest, 0, sign if dtype.is_signed else 0, backwards


def has_keys(dtype: DType) -> bool:
    """Whether elements of `dtype` have keys."""
    return dtype.category < 2 or dtype.name in _MANTISSA


class Keys(NamedTuple):
    """Keys of elements of `size` bytes; those of less than 32 bits have keys of 32."""

    size: int

    @property
    def bytes(self) -> int:
        return max(self.size, 4)

    @property
    def type(self) -> ir.IntType:
        return ir.IntType(8 * self.bytes)

    @property
    def greatest(self) -> int:
        """The greatest key, as a word."""
        return -1 if self.size == 8 else (1 << 8 * self.size) - 1

    @property
    def dtype(self) -> str:
        return f"uint{8 * self.bytes}"

    @property
    def lanes(self) -> int:
        return vector_bytes() // self.bytes

    @property
    def short(self) -> int:
        """The longest row that is sorted by counting, for each element, those that precede it."""
        return 3 * vector_bytes()  # measured: 192 keys of 32 or of 64 bits

    @property
    def pair(self) -> int:
        """The bytes of a pair of a position and a key."""
        return 2 * self.bytes

    def pairs_bytes(self, count: int) -> int:
        """The bytes of so many pairs, padded by a whole vector."""
        return -(-(count + self.lanes) * self.pair // ALIGNED) * ALIGNED

    def loader(self, code: Code, words: ir.Value) -> Loader:
        """What reads elements by the words of `ORDER`, with which a launch's begin."""
        order = {word: code.get(words, number) for number, word in enumerate(ORDER)}
        return Loader(self, code, {word: code.builder.trunc(x, ir.IntType(8 * self.size)) for word, x in order.items()})


class Loader(NamedTuple):
    """Reads elements as keys, in a function that knows the words of `ORDER`."""

    keys: Keys
    code: Code
    order: dict[str, ir.Value]

    def load(self, source: ir.Value, index: ir.Value, mask: ir.Value) -> ir.Value:
        """A vector of keys of the elements from `index` on; undefined outside `mask`."""
        code, builder, order = self.code, self.code.builder, {word: self.code.splat(x) for word, x in self.order.items()}
        dtype = f"uint{8 * self.keys.size}"
        x = code.load(code.element_pointer(source, index, dtype), dtype, mask)
        x = code.select(builder.icmp_unsigned("==", x, order["zero"]), 0, x)
        bits = 8 * self.keys.size
        flips = code.shift_right_arithmetic(x, bits - 1) & order["flipped"]
        key = x ^ flips ^ order["sign"]
        size = code.logical_and(x, (1 << (bits - 1)) - 1)
        key = code.select(builder.icmp_unsigned(">", size, order["infinity"]), -1, key) ^ order["reversed"]
        return builder.zext(key, ir.VectorType(self.keys.type, code.width))
