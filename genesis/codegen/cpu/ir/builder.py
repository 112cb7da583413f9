"""The builder: writes the instructions that kernels need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from genesis.codegen.cpu.ir.functions import Block, Function, Module, Phi, Slot
from genesis.codegen.cpu.ir.types import I1, VOID, Constant, FunctionType, Type, Value, VectorType

_COMPARED = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}


def _binary(operation: str) -> Callable[..., Value]:
    def emit(self: IRBuilder, a: Value, b: Value, flags: Sequence[str] = ()) -> Value:
        return self._value(a.type, f"{' '.join([operation, *flags])} {a.type.text} {a.text}, {b.text}")

    return emit


def _cast(operation: str) -> Callable[[IRBuilder, Value, Type], Value]:
    def emit(self: IRBuilder, value: Value, to: Type) -> Value:
        if value.type is to:
            return value
        return self._value(to, f"{operation} {value.type.text} {value.text} to {to.text}")

    return emit


def _comparison(operation: str, kind: str) -> Callable[[IRBuilder, str, Value, Value], Value]:
    def emit(self: IRBuilder, predicate: str, a: Value, b: Value) -> Value:
        how = _COMPARED.get(predicate, predicate)  # "ord" and "uno" are LLVM's own words
        if predicate in _COMPARED and not (operation == "icmp" and how in ("eq", "ne")):  # which know no sign
            how = kind + how
        found = VectorType(I1, a.type.count) if isinstance(a.type, VectorType) else I1
        return self._value(found, f"{operation} {how} {a.type.text} {a.text}, {b.text}")

    return emit


class IRBuilder:
    """Appends instructions to a block, before its terminator."""

    def __init__(self, block: Block) -> None:
        self.block = block
        for argument in block.function.args:
            argument.builder = self

    @property
    def function(self) -> Function:
        return self.block.function

    @property
    def module(self) -> Module:
        return self.block.function.module

    def _name(self) -> str:
        function = self.block.function
        function.names += 1
        return f"%v{function.names}"

    def _value(self, type_: Type, text: str) -> Value:
        name = self._name()
        self.block.lines.append(f"{name} = {text}")
        return Value(type_, name, self)

    add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")
    udiv, sdiv, urem, srem = _binary("udiv"), _binary("sdiv"), _binary("urem"), _binary("srem")
    and_, or_, xor = _binary("and"), _binary("or"), _binary("xor")
    shl, lshr, ashr = _binary("shl"), _binary("lshr"), _binary("ashr")
    fadd, fsub, fmul, fdiv = _binary("fadd"), _binary("fsub"), _binary("fmul"), _binary("fdiv")

    trunc, zext, sext = _cast("trunc"), _cast("zext"), _cast("sext")
    fptrunc, fpext, bitcast = _cast("fptrunc"), _cast("fpext"), _cast("bitcast")
    fptosi, fptoui, sitofp, uitofp = _cast("fptosi"), _cast("fptoui"), _cast("sitofp"), _cast("uitofp")
    ptrtoint, inttoptr = _cast("ptrtoint"), _cast("inttoptr")

    icmp_signed, icmp_unsigned = _comparison("icmp", "s"), _comparison("icmp", "u")
    fcmp_ordered, fcmp_unordered = _comparison("fcmp", "o"), _comparison("fcmp", "u")

    def neg(self, x: Value) -> Value:
        return self.sub(Constant(x.type, "zeroinitializer"), x)

    def not_(self, x: Value) -> Value:
        every = f"splat ({x.type.element.text} -1)" if isinstance(x.type, VectorType) else -1
        return self.xor(x, Constant(x.type, every))

    def fneg(self, x: Value) -> Value:
        return self._value(x.type, f"fneg {x.type.text} {x.text}")

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self._value(
            a.type, f"select {condition.type.text} {condition.text}, {a.type.text} {a.text}, {b.type.text} {b.text}")

    def phi(self, type_: Type) -> Phi:
        phi = Phi(type_, self._name(), self)
        self.block.lines.append(phi)
        return phi

    def call(self, function: Value, arguments: Sequence[Value], aligned: tuple[int, int] | None = None) -> Value:
        """Call a function; `aligned`: the number of a pointer argument, and its alignment in bytes."""
        kind: FunctionType = function.function_type if isinstance(function, Function) else function.type.function_type
        given = [f"{a.type.text} {a.text}" for a in arguments]
        if aligned is not None:
            pointer = arguments[aligned[0]]
            given[aligned[0]] = f"{pointer.type.text} align {aligned[1]} {pointer.text}"
        return self._called(kind.return_type, f"call {kind.return_type.text} {function.text}({', '.join(given)})")

    def asm(self, kind: FunctionType, code: str, constraints: str, arguments: Sequence[Value]) -> Value:
        given = ", ".join([f"{a.type.text} {a.text}" for a in arguments])
        return self._called(kind.return_type, f'call {kind.return_type.text} asm "{code}", "{constraints}"({given})')

    def _called(self, result: Type, text: str) -> Value:
        if result is not VOID:
            return self._value(result, text)
        self.block.lines.append(text)
        return Value(VOID, "")

    # ---- memory ----
    def alloca(self, type_: Type, count: int = 1) -> Slot:
        """Memory on the stack, allocated at the function's entry: within a loop each iteration would grow the stack."""
        name = self._name()
        self.function.slots.append(f"{name} = alloca {type_.text}, i32 {count}")
        return Slot(type_, name)

    def gep(self, pointer: Value, indices: Sequence[Value], inbounds: bool = False, *, source_etype: Type) -> Value:
        given = ", ".join([f"{i.type.text} {i.text}" for i in indices])
        return self._value(
            pointer.type,
            f"getelementptr {'inbounds ' * inbounds}{source_etype.text}, {pointer.type.text} {pointer.text}, {given}")

    def load(self, pointer: Value, align: int | None = None, typ: Type | None = None) -> Value:
        """Load a value of type `typ`, which is known for memory on the stack."""
        if typ is None:
            assert isinstance(pointer, Slot)
            typ = pointer.holds
        return self._value(typ, f"load {typ.text}, ptr {pointer.text}{_aligned(align)}")

    def store(self, value: Value, pointer: Value, align: int | None = None, past_caches: bool = False) -> None:
        hint = f", !nontemporal {self.module.add_metadata('i32 1')}" if past_caches else ""
        self.block.lines.append(f"store {value.type.text} {value.text}, ptr {pointer.text}{_aligned(align)}{hint}")

    def atomic_rmw(self, operation: str, pointer: Value, value: Value, ordering: str) -> Value:
        return self._value(value.type, f"atomicrmw {operation} ptr {pointer.text}, {value.type.text} {value.text} {ordering}")

    def fence(self, ordering: str) -> None:
        self.block.lines.append(f"fence {ordering}")

    # ---- vectors ----
    def extract_element(self, vector: Value, index: Value) -> Value:
        return self._value(
            vector.type.element, f"extractelement {vector.type.text} {vector.text}, {index.type.text} {index.text}")

    def insert_element(self, vector: Value, value: Value, index: Value) -> Value:
        return self._value(vector.type, (
            f"insertelement {vector.type.text} {vector.text}, {value.type.text} {value.text}, {index.type.text} {index.text}"))

    def shuffle_vector(self, a: Value, b: Value, order: Constant) -> Value:
        return self._value(VectorType(a.type.element, order.type.count), (
            f"shufflevector {a.type.text} {a.text}, {b.type.text} {b.text}, {order.type.text} {order.text}"))

    # ---- blocks ----
    def append_basic_block(self, name: str) -> Block:
        return self.block.function.append_basic_block(name)

    def position_at_end(self, block: Block) -> None:
        self.block = block

    @contextmanager
    def goto_block(self, block: Block) -> Iterator[None]:
        """A context in which instructions go to another block."""
        here, self.block = self.block, block
        yield
        self.block = here

    def branch(self, to: Block) -> None:
        self.block.end = f"br label %{to.name}"

    def cbranch(self, condition: Value, then: Block, otherwise: Block, likely: bool | None = None) -> None:
        hint = ""
        if likely is not None:
            weights = "i32 99, i32 1" if likely else "i32 1, i32 99"
            hint = ", !prof " + self.module.add_metadata(f'!"branch_weights", {weights}')
        self.block.end = f"br i1 {condition.text}, label %{then.name}, label %{otherwise.name}{hint}"

    def ret_void(self) -> None:
        self.block.end = "ret void"

    def ret(self, value: Value) -> None:
        self.block.end = f"ret {value.type.text} {value.text}"

    def cases(self, value: Value, numbers: Iterable[int]) -> Iterator[int]:
        """`for number in cases(value, numbers):` writes the code for each of these values of an integer."""
        here, after, cases = self.block, self.append_basic_block("chosen"), []
        for number in numbers:
            self.block = self.append_basic_block("case")
            cases.append(f"{value.type.text} {number}, label %{self.block.name}")
            yield number
            self.branch(after)
        here.end = f"switch {value.type.text} {value.text}, label %{after.name} [{' '.join(cases)}]"
        self.block = after

    @contextmanager
    def if_then(self, condition: Value, likely: bool | None = None) -> Iterator[None]:
        """A context for code that runs if a condition holds."""
        then, after = self.append_basic_block("if"), self.append_basic_block("endif")
        self.cbranch(condition, then, after, likely)
        with self._side(then, after):
            yield
        self.block = after

    def replaced(
        self, condition: Value, values: Sequence[Value], instead: Callable[[], Sequence[Value]], likely: bool | None = None
    ) -> list[Phi]:
        """The values or, if a condition holds, those that the code of `instead` computes."""
        before = self.block
        with self.if_then(condition, likely):
            others, after = instead(), self.block
        found = [self.phi(value.type) for value in values]
        _join(found, (values, before), (others, after))
        return found

    @contextmanager
    def if_else(self, condition: Value) -> Iterator[tuple[AbstractContextManager[None], AbstractContextManager[None]]]:
        """Contexts for the code of either side of a condition."""
        then, otherwise, after = (self.append_basic_block(name) for name in ("if", "else", "endif"))
        self.cbranch(condition, then, otherwise)
        yield self._side(then, after), self._side(otherwise, after)
        self.block = after

    @contextmanager
    def _side(self, block: Block, after: Block) -> Iterator[None]:
        self.block = block
        yield
        if self.block.end is None:
            self.branch(after)

    # ---- loops, which carry values from round to round in registers ----
    @contextmanager
    def loop(self, starts: Sequence[Value], goes_on: Callable[..., Value]) -> Iterator[Carried]:
        """`while goes_on(*values):` around the body, which says what the values are in the next round."""
        before, (header, body, after) = self.block, [self.append_basic_block(name) for name in ("loop", "body", "after")]
        self.branch(header)
        self.block = header
        carried = Carried([self.phi(start.type) for start in starts])
        self.cbranch(goes_on(*carried.now), body, after)
        self.block = body
        yield carried
        _join(carried.now, (starts, before), (carried.following, self.block))
        self.branch(header)
        self.block = after

    def repeated(self, starts: Sequence[Value], step: Callable[..., tuple[Value, Sequence[Value]]]) -> Sequence[Value]:
        """`goes_on, values = step(*values)` until it does not go on; the last values."""
        before, (loop, after) = self.block, [self.append_basic_block(name) for name in ("repeat", "repeated")]
        self.branch(loop)
        self.block = loop
        now = [self.phi(start.type) for start in starts]
        goes_on, following = step(*now)
        _join(now, (starts, before), (following, self.block))
        self.cbranch(goes_on, loop, after)
        self.block = after
        return following


class Carried:
    """What a loop carries: the values at the beginning of a round, and those of the next, which its body sets."""

    def __init__(self, now: Sequence[Phi]) -> None:
        self.now = now
        self.following: Sequence[Value] = ()


def _join(phis: Sequence[Phi], *ways: tuple[Sequence[Value], Block]) -> None:
    """Say what the values are on each way here."""
    for values, block in ways:
        for phi, value in zip(phis, values, strict=True):
            phi.add_incoming(value, block)


def _aligned(align: int | None) -> str:
    return "" if align is None else f", align {align}"
