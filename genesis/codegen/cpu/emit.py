"""From a Kernel to LLVM IR: one function `void kernel(i64 lo, i64 hi, i64* words, i64 worker)` of explicit vectors.

An item is one point of the outer axes, and a block of the lane axis where that axis is kept. Where the lane axis is
reduced, lanes run along a row and are folded at its end; where it is kept, each lane is a row of its own. Either way a
kernel makes as many passes over the reduced axes as its reductions are deep, and computes a value in the outermost
loop that has bound all it varies over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

from llvmlite import ir

from genesis.codegen.cpu import column_sums
from genesis.codegen.cpu.arithmetic import Arithmetic
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.reductions import Accumulator
from genesis.codegen.cpu.registers import I32, I64, POINTER, is_varying
from genesis.codegen.cpu.taps import Unwritten, at_each_point, read_tap, write_tap
from genesis.codegen.cpu.vector_math import FUNCTIONS, random_bits
from genesis.lower.kernel import REDUCTIONS, Access, Instruction, Kernel, Word
from genesis.ops.registry import PRIMITIVES

__all__ = ["Emitter", "emit_finish", "emit_kernel"]

HEAVY = 30  # work per element from which a kernel's last vector takes the same code as the others
LINE = 64  # bytes that go past the caches at once
KERNEL_TYPE = ir.FunctionType(ir.VoidType(), [I64, I64, POINTER, I64])


CALLED_FROM = 4  # uses of one elementary function in a kernel: code that is compiled once, for a call at each


def emit_kernel(kernel: Kernel, width: int, blocks: Mapping[int, int] = MappingProxyType({})) -> str:
    """The module of a kernel's main function, named as the kernel; `blocks` are the kept axes of which one item takes
    several neighbours, and how many.
    """
    return Emitter(kernel, kernel.name, width, blocks).main()


def emit_finish(kernel: Kernel, width: int) -> str:
    """The module of the function that joins the workers' partial results and computes what depends on them."""
    return Emitter(kernel, kernel.name + "_finish", width, {}).finish()


class Emitter:
    def __init__(self, kernel: Kernel, name: str, width: int, blocks: Mapping[int, int]) -> None:
        self.kernel = kernel
        self.blocks = blocks
        self.module = ir.Module(name)
        self.function = ir.Function(self.module, KERNEL_TYPE, name)
        self.lo, self.hi, self.block_words, self.worker = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        uses = Counter(i.name for i in kernel.instructions)
        self.lanes = Lanes(self.builder, width, [n for n in uses if n in FUNCTIONS and uses[n] >= CALLED_FROM])
        self.entry = self.builder.block
        self.words = [self._word(n, word) for n, word in enumerate(kernel.words)]
        self.streams = {i.access.pointer: self._stream(i, i.access.pointer) for i in kernel.instructions
                        if i.access is not None and "stream" in dict(i.attrs) and width * i.dtype.itemsize >= LINE}
        self.scopes: list[dict[Any, Any]] = [{}]
        self.entered: list[ir.Block] = [self.entry]  # for each scope, the block before its loop
        self.index: dict[int, ir.Value] = {}  # axis -> its position; of the lane axis, the first lane's
        self.bound: set[int] = set()
        self.level: dict[int, int] = {}  # axis -> the scope it was bound in
        self.mask: ir.Value | None = None
        self.step = 0
        self.kept = {word.value: n for n, word in enumerate(kernel.words) if word.kind == "scratch"}
        self.kept_since: dict[int, int] = {}  # kept value -> the pass that stored it
        self.spelled = {axis: {**kernel.taps, **blocks}[axis] for axis in sorted({*kernel.taps, *blocks})}
        self.first: dict[int, ir.Value] = {}  # where a block begins
        self.places: dict[int, int] = {}  # which point of the spelled-out axes the code at hand is for
        self.unwritten: dict[Any, Unwritten] = {}  # what taps store
        self.columns = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "column"]
        self.finals = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "final"]

    # ---- words ----

    def _word(self, number: int, word: Word) -> ir.Value:
        kind: ir.Type = I64
        if word.kind in ("pointer", "fault", "partials", "scratch"):
            kind = POINTER
        elif word.is_double:
            kind = ir.DoubleType()
        at = self.builder.gep(self.block_words, [I64(number)], inbounds=True, source_etype=I64)
        return self.builder.load(at, typ=kind)

    def _named(self, word: int | str) -> ir.Value:
        return I64(word) if isinstance(word, int) else self.words[int(word[1:])]

    def _extra_words(self, instruction: Instruction) -> list[ir.Value]:
        return [self._named(w) for w in instruction.attr("words").split(",")]

    def _stream(self, store: Instruction, target: int) -> ir.Value:
        """1 if a store goes past the caches: it is meant to, and it is not what it writes over that was read just now."""
        b, wanted = self.builder, self._named(store.attr("stream"))
        for pointer in {i.access.pointer for i in self.kernel.instructions if i.name == "load" and i.access is not None}:
            same = b.icmp_unsigned("==", self.words[pointer], self.words[target])
            wanted = b.select(same, I64(0), wanted)
        return wanted

    # ---- loops ----

    @contextmanager
    def loop(self, start: ir.Value, end: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """`for i in range(start, end, step)`; what the body computes stays inside, but for accumulators."""
        b = self.builder
        before = b.block
        header, body, after = (self.function.append_basic_block(n) for n in ("loop", "body", "after"))
        b.branch(header)
        b.position_at_end(header)
        i = b.phi(I64)
        i.add_incoming(start, before)
        b.cbranch(b.icmp_signed("<", i, end), body, after)
        b.position_at_end(body)
        self.scopes.append({})
        self.entered.append(before)
        yield i
        self.scopes.pop()
        self.entered.pop()
        i.add_incoming(b.add(i, I64(step), flags=["nsw"]), b.block)
        b.branch(header)
        b.position_at_end(after)

    def bind_here(self, axis: int, position: ir.Value) -> None:
        self.index[axis] = position
        self.level[axis] = len(self.scopes) - 1
        self.bound.add(axis)

    @contextmanager
    def bind(self, axis: int, position: ir.Value) -> Iterator[None]:
        self.bind_here(axis, position)
        yield
        self.bound.discard(axis)

    def nest(self, axes: Sequence[int], enter: Callable[[], None], body: Callable[[], None]) -> None:
        """Loops over `axes`, outermost first; `enter` runs at the top of each."""
        if not axes:
            body()
            return
        with self.loop(I64(0), self.words[self.kernel.axes[axes[0]][0]]) as i, self.bind(axes[0], i):
            enter()
            self.nest(axes[1:], enter, body)

    def lane_loop(self, start: ir.Value, end: ir.Value, body: Callable[[], None]) -> None:
        """`body` for each vector of the lane axis in [start, end).

        The last vector is masked. A light body is emitted twice, with and without a mask; for a heavy one a mask costs
        next to nothing, and a second copy a good part of the compile time.
        """
        lane, b, width = self.kernel.lane, self.builder, self.lanes.width
        assert lane is not None
        whole = start
        if self.kernel.work < HEAVY:
            whole = b.add(start, b.and_(b.sub(end, start), I64(-width)))
            with self.loop(start, whole, width) as i, self.bind(lane, i):
                body()
        with self.loop(whole, end, width) as i, self.bind(lane, i):
            left = b.sub(end, i)
            left = b.select(b.icmp_signed("<", left, I64(width)), left, I64(width))
            self.mask = self.lanes.first_lanes(b.trunc(left, I32))
            body()
            self.mask = None

    # ---- the main function ----

    def main(self) -> str:
        if self.kernel.has_totals:
            with self.loop(self.lo, self.hi) as share:
                self._share(share)
        else:
            self._items(self.lo, self.hi, {})
        if self.streams:
            self.builder.fence("seq_cst")  # what went past the caches is seen before the launch is reported done
        self.builder.ret_void()
        return str(self.module)

    def _share(self, share: ir.Value) -> None:
        """A part of the items, with results of its own among the partial ones: whoever does it, they are the same."""
        b = self.builder
        self.share = share
        items, shares = (self.words[self.word_of(kind)] for kind in ("items", "shares"))
        first, last = (b.udiv(b.mul(items, s), shares) for s in (share, b.add(share, I64(1))))
        totals = {n: self._accumulator(n) for n in self.finals}
        column_sums.clear(self)
        self._items(first, last, totals)
        for position, n in enumerate(self.finals):
            slot = b.add(b.mul(share, I64(len(self.finals))), I64(position))
            at = b.gep(self.words[self.word_of("partials")], [slot], inbounds=True, source_etype=I64)
            b.store(totals[n].folded(), at)

    def _items(self, first: ir.Value, last: ir.Value, totals: dict[int, Accumulator]) -> None:
        """One item after the other; what they reduce altogether goes into `totals`."""
        kernel = self.kernel
        with self.loop(first, last) as item:
            start, end = self._decode(item)
            if kernel.lane is None or kernel.lane_is_reduced:
                self._row(totals, start, end)
            else:
                held = {n: self._accumulator(n) for n in self.finals}
                self.hoist(kernel.needed(kernel.targets()))
                self.lane_loop(start, end, lambda: self._row(held, start, end))
                for n, total in held.items():
                    totals[n].join(total)
            for axis in kernel.outer:
                self.bound.discard(axis)

    def word_of(self, kind: str) -> int:
        return next(n for n, word in enumerate(self.kernel.words) if word.kind == kind)

    def _decode(self, item: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Bind the outer axes from an item's number; returns the item's range of the lane axis."""
        kernel, b = self.kernel, self.builder
        rest, start, end = item, I64(0), I64(0)
        if kernel.lane is not None:
            end = self.words[kernel.axes[kernel.lane][0]]
            if not kernel.lane_is_reduced:
                size, blocks = self.words[self.word_of("block")], self.words[self.word_of("blocks")]
                block = b.urem(item, blocks) if kernel.outer else item
                rest = b.udiv(item, blocks) if kernel.outer else item
                start = b.mul(block, size)
                limit = b.add(start, size)
                end = b.select(b.icmp_signed("<", limit, end), limit, end)
        for n, axis in enumerate(reversed(kernel.outer)):
            extent = self.words[kernel.axes[axis][0]]
            last = n == len(kernel.outer) - 1
            size = self.blocks.get(axis, 1)
            count = extent if size == 1 else b.udiv(b.add(extent, I64(size - 1)), I64(size))
            place = rest if last else b.urem(rest, count)
            if axis in self.blocks:  # the last one begins earlier, if it must
                place, latest = b.mul(place, I64(size)), b.sub(extent, I64(size))
                self.first[axis] = b.select(b.icmp_signed("<", place, latest), place, latest)
                self.level[axis] = len(self.scopes) - 1
            else:
                self.bind_here(axis, place)
            rest = rest if last else b.udiv(rest, count)
        return start, end

    def hoist(self, needed: Sequence[int]) -> None:
        """Compute here what varies over no loop further in."""
        for n in needed:
            i = self.kernel.instructions[n]
            if i.name not in REDUCTIONS and i.varies <= self.bound and not self._held(n) and all(
                self._held(a) for a in i.args
            ):
                self.value(n)

    def _row(self, totals: dict[int, Accumulator], start: ir.Value, end: ir.Value) -> None:
        """One point of the kept axes (or a vector of them): the passes, then what depends on them."""
        kernel = self.kernel
        lanes_inside = kernel.lane_is_reduced
        kept = [axis for axis in self.spelled if not kernel.axes[axis][1]]
        for step in kernel.steps:
            self.step = step
            targets = kernel.targets(step)
            held: dict[Any, Accumulator] = {}
            reductions = [n for n in targets if kernel.instructions[n].name in REDUCTIONS and n not in self.columns]
            at_each_point(self, kept, lambda: held.update(  # noqa: B023
                {self.key(n): self._accumulator(n) for n in reductions if self.key(n) not in held}))  # noqa: B023
            needed = kernel.needed(targets)

            def body(targets: Sequence[int] = targets, held: dict[Any, Accumulator] = held) -> None:
                for n in targets:
                    i = kernel.instructions[n]
                    if i.name not in REDUCTIONS:
                        self.effect(i)
                    elif n in self.columns:
                        column_sums.add(self, n)
                    elif i.level == "final" or not any(self.places.get(axis) for axis in kept if axis not in i.varies):
                        self._reduce(held[self.key(n)], i)

            def innermost(needed: Sequence[int] = needed, body: Callable[[], None] = body) -> None:
                self.hoist(needed)
                if lanes_inside:
                    self.lane_loop(start, end, lambda: self._points(needed, body))
                else:
                    self._points(needed, body)

            self.hoist(needed)
            self.nest(kernel.inner, partial(self.hoist, needed), innermost)
            for key, accumulator in held.items():
                i = kernel.instructions[key[0]]
                if i.level == "final":
                    totals[key[0]].join(accumulator, self.mask)
                else:
                    value = accumulator.folded() if lanes_inside else accumulator.value()
                    self.scopes[-1][key] = self.lanes.round_to(i.dtype.name, value)

        def after() -> None:
            for n, i in enumerate(kernel.instructions):
                if i.name == "store" and i.level in ("row", "uniform"):
                    self.effect(i)
                elif i.name in REDUCTIONS and i.attr("over") == "row":
                    totals[n].add(self.value(i.args[0]), None, self.mask)

        at_each_point(self, kept, after)

    def _points(self, needed: Sequence[int], body: Callable[[], None]) -> None:
        """`body` at each point of all axes that are spelled out: what is read at one of those reduced serves all others."""
        if self.spelled:
            self.hoist(needed)
        at_each_point(self, sorted(self.spelled, key=lambda axis: not self.kernel.axes[axis][1]), body)

    def _reduce(self, accumulator: Accumulator, i: Instruction) -> None:
        """Take in the value of reduction `i` at the point at hand; in blocks, a product without rounding it first."""
        source = self.kernel.instructions[i.args[0]]
        if self.blocks and i.name == "sum" and source.name == "mul" and i.dtype.name in ("float32", "float64"):
            accumulator.add_product(self.value(source.args[0]), self.value(source.args[1]), self.mask)
        else:
            accumulator.add(self.value(i.args[0]), self._reduced_position(i), self.mask)

    def _accumulator(self, n: int) -> Accumulator:
        i = self.kernel.instructions[n]
        source = self.kernel.instructions[i.args[0]]
        of_rows = i.attr("over") == "row" and self.kernel.lane_is_reduced
        varying = self.kernel.lane is not None and not of_rows
        return Accumulator(self.lanes, i.name, source.dtype.name, self.entry, varying)

    def _reduced_position(self, i: Instruction) -> ir.Value | None:
        """For argmax and argmin: the position along the reduced axes."""
        if not i.name.startswith("arg"):
            return None
        kernel, b = self.kernel, self.builder
        position: Any = I64(0)
        reduced = [a for a, (_, r) in enumerate(kernel.axes) if r]
        for axis in reduced:
            extent = I64(self.spelled[axis]) if axis in self.spelled else self.words[kernel.axes[axis][0]]
            position = b.add(b.mul(position, extent), self.index[axis])
        return self.lanes.add(position, self.lanes.lane_index()) if kernel.lane_is_reduced else position

    # ---- the finishing function ----

    def finish(self) -> str:
        b, kernel = self.builder, self.kernel
        if self.columns:
            column_sums.finish(self)
            return str(self.module)
        shares, partials = self.words[self.word_of("shares")], self.words[self.word_of("partials")]
        self.lanes = Lanes(b, self.lanes.width)
        joined = {}
        for n in self.finals:
            i = kernel.instructions[n]
            joined[n] = Accumulator(self.lanes, i.name, kernel.instructions[i.args[0]].dtype.name, self.entry, False)
        with self.loop(I64(0), shares) as share:
            for position, n in enumerate(self.finals):
                slot = b.add(b.mul(share, I64(len(self.finals))), I64(position))
                at = b.gep(partials, [slot], inbounds=True, source_etype=I64)
                joined[n].add(b.load(at, typ=joined[n].type), None, None)
        for n in self.finals:
            self.scopes[-1][self.key(n)] = self.lanes.round_to(kernel.instructions[n].dtype.name, joined[n].value())
        stores = [i for i in kernel.instructions if i.name == "store" and i.level == "final"]
        for i in stores:
            self.value(i.args[0])  # all is read before anything is written: a result may lie where an input lay
        for i in stores:
            self.effect(i)
        b.ret_void()
        return str(self.module)

    # ---- values ----

    def key(self, n: int) -> tuple[int, ...]:
        """What tells instruction `n`'s value apart from its values elsewhere on the axes that are spelled out."""
        varies = self.kernel.instructions[n].varies
        return (n, *[place for axis, place in self.places.items() if axis in varies])

    def _held(self, n: int) -> bool:
        key = self.key(n)
        return any(key in scope for scope in self.scopes)

    def value(self, n: int) -> ir.Value:
        """The register that holds instruction `n`'s value, computed here if nothing further out has."""
        key = self.key(n)
        for scope in reversed(self.scopes):
            if key in scope:
                found: ir.Value = scope[key]
                return found
        if n in self.kept_since and self.kept_since[n] < self.step:
            result = self.lanes.load(self._scratch(n), self._scratch_dtype(n), self.mask)
        else:
            for a in self.kernel.instructions[n].args:
                self.value(a)
            result = self._compute(self.kernel.instructions[n])
            if n in self.kept:
                self.kept_since[n] = self.step
                self.lanes.store(result, self._scratch(n), self._scratch_dtype(n), self.mask)
        self.scopes[-1][key] = result
        return result

    def _scratch_dtype(self, n: int) -> str:
        return self.kernel.words[self.kept[n]].extra.name

    def _scratch(self, n: int) -> ir.Value:
        """Where this worker keeps the present lanes of value `n` for the next pass."""
        lane, b = self.kernel.lane, self.builder
        assert lane is not None
        row = b.mul(self.worker, self.words[self.kernel.axes[lane][0]])
        return self.lanes.element_pointer(self.words[self.kept[n]], b.add(row, self.index[lane]), self._scratch_dtype(n))

    def _compute(self, i: Instruction) -> ir.Value:
        lanes = self.lanes
        args = [self.value(a) for a in i.args]
        dtype = i.dtype.name
        if i.name == "word":
            (word,) = self._extra_words(i)
            return lanes.convert(word, "float64" if word.type == ir.DoubleType() else "int64", dtype)
        if i.name == "load":
            assert i.access is not None
            apart = self._apart(i.access)
            return read_tap(self, i, apart) if apart > 1 else self._read(i.access, dtype, None)
        if i.name == "load_at":
            assert i.access is not None
            (stride,) = self._extra_words(i)
            return self._read(i.access, dtype, lanes.multiply(args[0], stride))
        if i.name == "index":
            return lanes.convert(self._flat(i), "int64", dtype)
        if i.name in ("uniform", "normal"):
            return self._random(i, *args)
        if i.name == "cast":
            return lanes.convert(args[0], i.attr("source"), dtype)
        if i.name == "check_index":
            return self._checked(i, args[0])
        operand = dict(i.attrs).get("operand")
        return Arithmetic(lanes, dtype, operand).apply(i.name, PRIMITIVES[i.name].emit, args)

    def _offset(self, access: Access) -> ir.Value:
        """The part of an index that is the same for all lanes."""
        b = self.builder
        total: Any = None
        for axis, stride in enumerate(access.strides):
            if stride == 0:
                continue
            term = self.index[axis] if stride == 1 else b.mul(self.index[axis], self._named(stride))
            total = term if total is None else b.add(total, term)
        return I64(0) if total is None else total

    def start(self, access: Access, without: Collection[int] = ()) -> ir.Value:
        """The address of an access' element for the first lane, `without` what the index on some axes adds.

        What each loop adds is added where its index is known, outside the loops within.
        """
        pointer = self.words[access.pointer]
        terms: dict[int, list[tuple[ir.Value, int | str]]] = {}
        for axis, stride in enumerate(access.strides):
            if stride != 0 and axis not in without and (axis not in self.places or axis in self.first):
                index = self.first[axis] if axis in self.places else self.index[axis]
                terms.setdefault(self.level[axis], []).append((index, stride))
        for level in sorted(terms):
            pointer = self._once(level, ("start", id(access)), partial(self._moved, pointer, terms[level], access))
        for axis, place in self.places.items():
            stride = access.strides[axis]
            if place and stride != 0 and axis not in without:
                pointer = self._moved(pointer, [(I64(place), stride)], access)
        return pointer

    def _moved(self, pointer: ir.Value, terms: Sequence[tuple[ir.Value, int | str]], access: Access) -> ir.Value:
        """`pointer` moved on by index times stride for each of `terms`."""
        for index, stride in terms:
            offset = index
            if isinstance(index, ir.Constant):
                offset = self._once(0, ("times", stride, index.constant), lambda: self.builder.mul(self._named(stride), index))  # noqa: B023
            elif stride != 1:
                offset = self.builder.mul(index, self._named(stride))
            pointer = self.lanes.element_pointer(pointer, offset, access.dtype.name)
        return pointer

    def _once(self, level: int, key: Any, compute: Callable[[], ir.Value]) -> ir.Value:
        """What `compute` gives, computed once in the scope numbered `level`: before the loop that was entered from it."""
        if key not in self.scopes[level]:
            if level == len(self.scopes) - 1:
                self.scopes[level][key] = compute()
            else:
                with self.builder.goto_block(self.entered[level + 1]):
                    self.scopes[level][key] = compute()
        found: ir.Value = self.scopes[level][key]
        return found

    def _lane_stride(self, access: Access) -> int | str:
        lane = self.kernel.lane
        return 0 if lane is None or lane not in self.bound else access.strides[lane]

    def _read(self, access: Access, dtype: str, indirect: ir.Value | None) -> ir.Value:
        lanes = self.lanes
        start, stride = self.start(access), self._lane_stride(access)
        if indirect is not None and not is_varying(indirect):
            start, indirect = lanes.element_pointer(start, indirect, dtype), None
        if indirect is not None:
            places = indirect if stride == 0 else lanes.add(indirect, self._lane_offsets(stride))
            return lanes.gather(start, places, dtype, self.mask)
        if stride == 0:
            return lanes.load_uniform(start, dtype)
        if stride == 1:
            return lanes.load(start, dtype, self.mask)
        return lanes.gather(start, self._lane_offsets(stride), dtype, self.mask)

    def _apart(self, access: Access) -> int:
        """How many elements lie from one lane's to the next one's, if that is known; 0 if not."""
        stride = self._lane_stride(access)
        return stride if isinstance(stride, int) else 0

    def _lane_offsets(self, stride: int | str) -> ir.Value:
        return self.lanes.multiply(self.lanes.lane_index(), self._named(stride))

    def _flat(self, i: Instruction) -> ir.Value:
        assert i.access is not None
        first = self.builder.add(self.words[i.access.pointer], self._offset(i.access))
        stride = self._lane_stride(i.access)
        return first if stride == 0 else self.lanes.add(first, self._lane_offsets(stride))

    def _random(self, i: Instruction, seed: ir.Value, start: ir.Value) -> ir.Value:
        lanes = self.lanes
        counter = lanes.add(start, self._flat(i))
        halves = [self._halves(seed), self._halves(counter)]
        bits = random_bits.threefry2x32(lanes, *halves[0], *halves[1])
        if i.dtype.name == "float32":
            return random_bits.uniform_float32(lanes, bits[0]) if i.name == "uniform" else \
                random_bits.normal_float32(lanes, *bits)
        if i.name == "uniform":
            return random_bits.uniform_float64(lanes, *bits)
        upper = lanes.logical_xor(halves[1][1], lanes.constant("int32", -(1 << 31)))
        return random_bits.normal_float64(lanes, *bits, *random_bits.threefry2x32(lanes, *halves[0], halves[1][0], upper))

    def _halves(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        lanes = self.lanes
        return (lanes.convert(x, "int64", "int32"),
                lanes.convert(lanes.shift_right_logical(x, 32), "int64", "int32"))

    def _checked(self, i: Instruction, index: ir.Value) -> ir.Value:
        """An index known to be in range; another is noted in the fault record, and 0 taken for it."""
        b, lanes = self.builder, self.lanes
        extent, site, fault = self._extra_words(i)
        wrap = i.attr("wrap")
        lowest = b.neg(extent) if wrap else I64(0)
        bad = lanes.logical_or(lanes.compare("<", index, lowest, "int64"), lanes.compare(">=", index, extent, "int64"))
        if self.mask is not None and is_varying(bad):
            bad = lanes.logical_and(bad, self.mask)
        with b.if_then(lanes.any_lane(bad) if is_varying(bad) else bad, likely=False):
            seen = index
            if is_varying(index):
                seen = lanes.reduce_maximum(lanes.select(bad, index, lanes.constant("int64", -(1 << 63))), "int64")
            for position, value in enumerate((I64(1), site, seen, extent)):
                b.store(value, b.gep(fault, [I64(position)], inbounds=True, source_etype=I64))
        within = lanes.select(bad, 0, index) if not is_varying(index) else lanes.select(bad, lanes.splat(I64(0)), index)
        if not wrap:
            return within
        return lanes.select(lanes.compare("<", within, 0, "int64"), lanes.add(within, extent), within)

    # ---- effects ----

    def effect(self, i: Instruction) -> None:
        assert i.access is not None
        if i.name == "scatter":
            self._scatter(i)
            return
        lanes, dtype = self.lanes, i.dtype.name
        value = self.value(i.args[0])
        stride = self._lane_stride(i.access)
        if (apart := self._apart(i.access)) > 1:
            write_tap(self, i, value, apart)
            return
        start = self.start(i.access)
        if stride == 0:
            lanes.store_uniform(value, start, dtype)
        elif stride == 1:
            self._store(i, lanes.splat(value), start)
        else:
            lanes.scatter_store(lanes.splat(value), start, self._lane_offsets(stride), dtype, self.mask)

    def _store(self, i: Instruction, value: ir.Value, start: ir.Value) -> None:
        """A vector to neighbouring elements, past the caches if so wanted of a whole and aligned one."""
        b, lanes, dtype = self.builder, self.lanes, i.dtype.name
        assert i.access is not None
        if i.access.pointer not in self.streams:
            lanes.store(value, start, dtype, self.mask)
            return
        unaligned = b.and_(b.ptrtoint(start, I64), I64(LINE - 1))
        if self.mask is not None:
            unaligned = b.or_(unaligned, b.zext(b.not_(lanes.extract(self.mask, lanes.width - 1)), I64))
        with b.if_else(b.icmp_unsigned(">", self.streams[i.access.pointer], unaligned)) as (past, through):
            with past:
                lanes.store(value, start, dtype, past_caches=True)
            with through:
                lanes.store(value, start, dtype, self.mask)

    def _scatter(self, i: Instruction) -> None:
        assert i.access is not None
        lanes, dtype = self.lanes, i.dtype.name
        position, value = (self.value(a) for a in i.args)
        (stride_word,) = self._extra_words(i)
        moved = lanes.multiply(position, stride_word)
        start, stride = self.start(i.access), self._lane_stride(i.access)
        if not is_varying(moved):
            start = lanes.element_pointer(start, moved, dtype)
        add = Arithmetic(lanes, dtype).add if i.attr("mode") == "add" else None
        if is_varying(moved) or stride not in (0, 1):
            places = lanes.splat(moved) if is_varying(moved) else self._lane_offsets(stride)
            if is_varying(moved) and stride != 0:
                places = lanes.add(places, self._lane_offsets(stride))
            old = lanes.gather(start, places, dtype, self.mask) if add else None
            lanes.scatter_store(lanes.splat(add(old, value) if add else value), start, places, dtype, self.mask)
        elif stride == 1:
            new = add(lanes.load(start, dtype, self.mask), value) if add else value
            lanes.store(lanes.splat(new), start, dtype, self.mask)
        else:
            lanes.store_uniform(add(lanes.load_uniform(start, dtype), value) if add else value, start, dtype)


