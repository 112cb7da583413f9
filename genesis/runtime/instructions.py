"""Assembling instructions over Python objects into functions of machine code (`instruction_set` says what each does).

    code = Instructions(MISSED)
    left = code.call(operator.add, code.constant(1), code.constant(2))
    code.emit("RETURN", left)
    code.function()()    # 3
"""

from __future__ import annotations

import ctypes
import functools
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from genesis.runtime.builtin_function import METH_FASTCALL, builtin
from genesis.runtime.executor_ir import FAULT_WORDS
from genesis.runtime.instructions_ir import HEADER_WORDS, NUMBER_OF, interpret_ir
from genesis.runtime.kernel_cache import compiled
from genesis.runtime.object_words import VERSION, attribute_word, size_word, slot_offset, word_at

__all__ = ["FAILURES", "FAULT_WORDS", "HOLDING", "MISSED", "Instructions", "Register", "are_possible"]


class _Missed:
    """The result of a function of instructions if a guard fails."""

    def __repr__(self) -> str:
        return "MISSED"


MISSED = _Missed()
FAILURES = AttributeError, KeyError, IndexError, ValueError, TypeError  # of what a guard reads; a handler's own are raised

HOLDING = 5e-3  # seconds that programs may hold the GIL, as long as Python code does (`sys.getswitchinterval`)
_TP_NEW = 65  # CPython's number of that slot


class Register(NamedTuple):
    """The number of a register; ~n, which is negative, is that of constant n."""

    number: int


class Instructions:
    """A list of instructions under construction, and the objects that they name.

    An object as an operand stands for its address, and is kept alive by the function. Attributes that are slots of `slotted`
    classes are read by their offset, if their owner is of that class.
    """

    def __init__(self, arguments: int = 0, slotted: Sequence[type] = ()) -> None:
        self._words: list[int | Register] = []
        self._keep: list[object] = []
        self._registers = arguments
        self._constants: dict[int, Register] = {}
        self._slots = _slots_of(tuple(slotted))

    def __len__(self) -> int:
        return len(self._words) // 5

    def register(self) -> Register:
        """A new register."""
        self._registers += 1
        return Register(self._registers - 1)

    def keep(self, thing: Any) -> Any:
        """Keep `thing` alive as long as the function."""
        self._keep.append(thing)
        return thing

    def emit(self, operation: str, *operands: object) -> int:
        """Add an instruction; returns its index. An int that is meant as an object has to be a `Constant`."""
        words = [*map(self._word, operands)]
        self._words += [NUMBER_OF[operation], *words, *[0] * (4 - len(words))]
        return len(self) - 1

    def _word(self, operand: object) -> int | Register:
        if operand.__class__ in (Register, int):
            return operand  # type: ignore[return-value]
        self._keep.append(operand)
        return id(operand if operand.__class__ is not Constant else operand.value)  # type: ignore[attr-defined]

    def _resolved(self, word: int | Register) -> int:
        if word.__class__ is int:
            return word % (1 << 64)  # type: ignore[operator]
        [number] = word  # type: ignore[misc]
        return number if number >= 0 else self._registers + ~number  # constants come behind the other registers

    def skip_from(self, index: int) -> None:
        """End the skip at `index` here: it jumps over all instructions that were added since."""
        self._words[5 * index + 3] = len(self) - 1 - index

    def attribute(self, owner: Register, name: str, target: Register | None = None) -> Register:
        """Load `owner`'s attribute into `target`, by default a new register; returns it."""
        target = target or self.register()
        self.emit("ATTRIBUTE", target, owner, sys.intern(name), self._slot(name))
        return target

    def assign(self, owner: Register, name: str, value: Register) -> None:
        """Set `owner`'s attribute."""
        self.emit("SET", owner, sys.intern(name), value, self._slot(name))

    def _slot(self, name: str) -> int:
        return self._slots[name].buffer_info()[0] if name in self._slots else 0

    def item(self, container: Register, key: object) -> Register:
        """Load the item at `key` into a new register."""
        target = self.register()
        self.emit("ITEM", target, container, Constant(key))
        return target

    def constant(self, value: object) -> Register:
        """The register of `value`."""
        register = self._constants.get(id(value))
        if register is None:
            self.keep(value)
            register = self._constants[id(value)] = Register(~len(self._constants))
        return register

    def call(self, function: Callable[..., object], *arguments: Register) -> Register:
        """Call a function; returns the register of its result."""
        first, result = self._consecutive(arguments), self.register()
        self.emit("CALL", result, Constant(function), first, len(arguments))
        return result

    def new(self, kind: type) -> Register:
        """Make an instance, as `object.__new__` does; returns its register."""
        made = self.register()
        self.emit("NEW", made, self.constant(kind), object_new(), ())
        return made

    def tuple(self, *members: Register) -> Register:
        """Make a tuple; returns its register."""
        first, result = self._consecutive(members), self.register()
        self.emit("TUPLE", result, 0, first, len(members))
        return result

    def _consecutive(self, registers: Sequence[Register]) -> Register:
        """Move registers to consecutive ones; returns the first."""
        consecutive = [self.register() for _ in registers] or [Register(0)]
        for register, moved in zip(consecutive, registers, strict=False):
            self.emit("MOVE", register, moved)
        return consecutive[0]

    # ---- guards of objects that are the same in all calls: they compare words instead of looking up ----
    def require_attribute(self, owner: object, name: str, value: object) -> None:
        """Go on if an attribute is `value`."""
        address = attribute_word(owner, name)
        word = None if address is None else word_at(address)
        if address is not None and (word == id(value) or (value is None and word == 0)):
            self._keep += (owner, value)
            self.emit("WORD", address, word)
        else:
            self.emit("IS", self.attribute(self.constant(owner), name), Constant(value))

    def require_size(self, container: Any, size: int) -> None:
        """Go on if a container has `size` items."""
        address = size_word(container)
        if address is None:
            self.emit("SIZE", self.constant(container), size)
        else:
            self.emit("WORD", address, size)
            self.keep(container)

    def skip_if_empty(self, container: Any) -> int:
        """Begin a skip, taken if a container is empty; returns its index."""
        address = size_word(container)
        if address is None:
            return self.emit("SKIP_IS", self.call(len, self.constant(container)), Constant(0), 0)
        self.keep(container)
        return self.emit("SKIP_HALF", address, 0, 0)

    @contextmanager
    def unless_passed(self, names: Register) -> Iterator[None]:
        """Guards of a dict in a register, skipped while its version is the one that last passed them."""
        if VERSION is None:
            yield
            return
        known, _ = self.keep(array("Q", [0])).buffer_info()
        skip = self.emit("SKIP_SAME", names, known, 0)
        yield
        self.emit("VERSION", known, names)
        self.skip_from(skip)

    def function(self) -> Callable[..., Any]:
        """The function that runs the instructions."""
        table = array("Q", [self._registers, len(self._constants), 0, id(FAILURES), id(MISSED), 0, *self._constants])
        table[HEADER_WORDS - 1] = 8 * len(table)
        table.extend([self._resolved(word) for word in self._words])
        table[HEADER_WORDS - 1] += table.buffer_info()[0]
        kept = (table, *self._slots.values(), *self._keep)
        return builtin(b"genesis_interpret", _interpret(), METH_FASTCALL, table.buffer_info()[0], *kept)


class Constant(NamedTuple):
    """An object as an operand, even if it is an int."""

    value: object


def are_possible() -> bool:
    """Whether instructions work with this interpreter: 64-bit CPython with a GIL, whose objects begin with a reference
    count."""
    return _IS_KNOWN


@functools.cache
def _slots_of(kinds: tuple[type, ...]) -> dict[str, array[int]]:
    """{class, offset} of each slot of some classes by its name, of the first that has it."""
    offsets = [(kind, name, slot_offset(kind, name)) for kind in reversed(kinds) for name in vars(kind)["__slots__"]]
    return {name: array("Q", [id(kind), offset]) for kind, name, offset in offsets if offset is not None}


@functools.cache
def object_new() -> int:
    """The address of `object.__new__`, which gives attributes their place in the object. Measured: memory from
    `PyType_GenericAlloc` has none, and each tensor got a dict: 95 ns more."""
    get_slot = ctypes.pythonapi.PyType_GetSlot
    get_slot.restype, get_slot.argtypes = ctypes.c_size_t, [ctypes.py_object, ctypes.c_int]
    return get_slot(object, _TP_NEW)  # type: ignore[no-any-return]


@functools.cache
def _interpret() -> int:
    return compiled("genesis_interpret", interpret_ir())


def _is_known() -> bool:
    if sys.implementation.name != "cpython" or object.__basicsize__ != 16 or hasattr(sys, "gettotalrefcount"):
        return False
    thing = [object()]
    count = ctypes.c_uint32.from_address(id(thing[0]))
    before = count.value
    thing.append(thing[0])
    return count.value == before + 1 and ctypes.c_void_p.from_address(id(thing[0]) + 8).value == id(object)


_IS_KNOWN = _is_known()
