"""The state of a kernel's function while it is emitted: open loops, indices of axes, values computed in each loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.lanes import Lanes
from genesis.codegen.cpu.registers import I32, I64, POINTER
from genesis.codegen.cpu.tiling import register_lanes
from genesis.codegen.cpu.vector_math import FUNCTIONS
from genesis.codegen.cpu.vector_math.random_bits import DRAWS
from genesis.codegen.cpu.vectors import counted
from genesis.codegen.cpu.word_kernel import KERNEL_TYPE
from genesis.ir.annotations import Key
from genesis.lower.kernel import REDUCTIONS, Instruction, Kernel, KernelArg

# From this much work per element on, all vectors run masked code: the mask costs little then, and a second copy of the body
# much compile time.
HEAVY = 30
LINE = 64  # bytes of a non-temporal store
MOST_STREAMS = 8  # non-temporal stores: each occupies one of a core's ten or so line fill buffers
# Uses of an elementary function or draw from which it is compiled once per kernel and called. Inlined sines and powers dominate
# the compile time.
# Measured: a kernel of 64 operations 113 to 32 ms.
CALLED_FROM = 4


class PendingStore(NamedTuple):
    """A wide store that collects the values of its points, by offset."""

    start: ir.Value
    stride: int
    instruction: Instruction
    values: dict[int, ir.Value]


class Nest:
    """A function `void name(i64 lo, i64 hi, i64* words, i64 worker)`, and the position in it where code is emitted.

    Every open loop is a scope. Invariant: a value computed in a scope is used only there and in inner scopes, as LLVM requires
    that definitions dominate uses.
    """

    share: ir.Value  # the number of the present share of partial results
    lane_range: tuple[ir.Value, ir.Value]  # the present lanes: of an item, or of a vector within the lane loop
    tiled_range: tuple[ir.Value, ir.Value]  # an item's range of a tiled kept axis
    owner: ir.Value  # the number of an item among those that share all places, see `Kernel.place`
    block_origin: tuple[ir.Value, ir.Value]  # the start of a tile's block: along the tiled axis and along lanes

    def __init__(self, kernel: Kernel, name: str, width: int, blocks: Mapping[int, int]) -> None:
        self.kernel = kernel
        self.blocks = blocks
        # The axis of rows that fill a vector together, if not blocks of a sum of products: see `tiling.py`.
        self.folded = next(iter(blocks)) if blocks and kernel.factors is None else None
        self.module = ir.Module(name)
        self.function = ir.Function(self.module, KERNEL_TYPE, name)
        self.lo, self.hi, self.block_words, self.worker = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        uses = Counter(i.name for i in kernel.instructions)
        self.whole_width = width
        self.lanes = Lanes(self.builder, width, [n for n in uses if (n in FUNCTIONS or n in DRAWS) and uses[n] >= CALLED_FROM])
        self.entry = self.builder.block
        # Sizes and strides are words, not constants: another batch size compiles nothing.
        self.words = [self._word(n, word) for n, word in enumerate(kernel.words)]
        streams = [i for i in kernel.instructions
                   if i.access is not None and "stream" in dict(i.attrs) and width * i.dtype.itemsize >= LINE]
        self.streams = {i.access.pointer: self._stream(i, i.access.pointer) for i in streams if i.access is not None
                        and len(streams) <= MOST_STREAMS}
        # By identity: the first of the strided accesses with which an instruction shares wide ones, and how far on it lies.
        self.neighbours: dict[int, tuple[int, int]] = {
            id(i): dict(i.attrs).get("neighbour", (n, 0)) for n, i in enumerate(kernel.instructions)}
        self.access_counts = Counter(i.access.strides for i in kernel.instructions if i.access is not None)
        self.scopes: list[dict[Key, ir.Value]] = [{}]
        self.entered: list[ir.Block] = [self.entry]  # for each scope, the block before its loop
        # An item's range of the lane axis, and the scope it was bound in: the whole axis, unless that is divided.
        self.item_range = I64(0), self.words[kernel.axes[kernel.lane][0]] if kernel.lane is not None else I64(0)
        self.item_level = 0
        self.index: dict[int, ir.Value] = {}  # axis -> its position; on the lane axis, the first lane's
        self.bound: set[int] = set()
        self.level: dict[int, int] = {}  # axis -> the scope it was bound in
        self.mask: ir.Value | None = None
        self.step = 0  # the number of the pass
        # Expensive values that a later pass reads again are saved in memory by the first pass that computes them.
        # Measured, with four registers in reductions: softmax of 2048 x 2048 1.64 to 1.08 ms.
        self.saved = {word.value: n for n, word in enumerate(kernel.words) if word.kind == "scratch"}
        self.saved_in: dict[int, int] = {}  # saved value -> the pass that stored it
        # Measured: pooling forward 2.3 to 0.6 ms, a CNN step 44 to 25 ms, a convolution with steps of two 69 to 37 ms.
        self.unrolled = dict(sorted({**kernel.unrolled, **(blocks if self.folded is None else {})}.items()))
        self.kept_unrolled = [axis for axis in self.unrolled if not kernel.axes[axis][1]]
        self.block_start: dict[int, ir.Value] = {}  # axis of a block -> its first position
        self.point: dict[int, int] = {}  # unrolled axis -> its present index
        self.pending_stores: dict[Key, PendingStore] = {}
        self.columns = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "column"]
        self.finals = [n for n, i in enumerate(kernel.instructions) if i.name in REDUCTIONS and i.level == "final"]

    # ---- words ----
    def _word(self, number: int, word: KernelArg) -> ir.Value:
        kind: ir.Type = I64
        if word.kind in ("pointer", "fault", "partials", "scratch", "tile", "transposition"):
            kind = POINTER
        elif word.is_double:
            kind = ir.DOUBLE
        at = self.builder.gep(self.block_words, [I64(number)], inbounds=True, source_etype=I64)
        return self.builder.load(at, typ=kind)

    def named(self, word: int | str) -> ir.Value:
        return I64(word) if isinstance(word, int) else self.words[int(word[1:])]

    def extra_words(self, instruction: Instruction, attr: str = "words") -> list[ir.Value]:
        return [self.named(w) for w in instruction.attr(attr).split(",")]

    def word_of(self, kind: str) -> int:
        return next(n for n, word in enumerate(self.kernel.words) if word.kind == kind)

    def _stream(self, store: Instruction, target: int) -> ir.Value:
        """1 if a store bypasses the caches: to a large output that is not read soon."""
        # Not where it overwrites an input of this kernel: the lines are cached already, and a non-temporal store would first
        # write them back. Only at run time is it known whether addresses coincide.
        # Measured: silu(a * b + c) 2.24 to 1.82 ms, the gradient of softmax 2.15 to 1.46 (2048 x 2048).
        b, wanted = self.builder, self.named(store.attr("stream"))
        for pointer in {i.access.pointer for i in self.kernel.instructions if i.name == "load" and i.access is not None}:
            same = b.icmp_unsigned("==", self.words[pointer], self.words[target])
            wanted = b.select(same, I64(0), wanted)
        return wanted

    # ---- loops ----
    @contextmanager
    def loop(self, start: ir.Value, end: ir.Value, step: int = 1) -> Iterator[ir.Value]:
        """`for i in range(start, end, step)`. Values of the body are invalid after it; accumulators live on the stack."""
        before = self.builder.block
        with counted(self.builder, start, end, step, flags=["nsw"]) as i:
            # In a new scope: `once` searches outer scopes, and emits before the loops entered from them.
            self.scopes.append({})
            self.entered.append(before)
            yield i
            self.scopes.pop()
            self.entered.pop()

    @contextmanager
    def branch(self, condition: ir.Value) -> Iterator[None]:
        """Conditional code, with a scope of its own."""
        before = self.builder.block
        with self.builder.if_then(condition):
            self.scopes.append({})
            self.entered.append(before)
            yield
            self.scopes.pop()
            self.entered.pop()

    def bind_here(self, axis: int, position: ir.Value) -> None:
        self.index[axis] = position
        self.level[axis] = len(self.scopes) - 1
        self.bound.add(axis)

    @contextmanager
    def bind(self, axis: int, position: ir.Value) -> Iterator[None]:
        self.bind_here(axis, position)
        yield
        self.bound.discard(axis)

    def loops(self, axes: Sequence[int], enter: Callable[[], None], body: Callable[[], None]) -> None:
        """Loops over `axes`, outermost first; `enter` runs at the top of each."""
        if not axes:
            body()
            return
        with self.loop(I64(0), self.words[self.kernel.axes[axes[0]][0]]) as i, self.bind(axes[0], i):
            enter()
            self.loops(axes[1:], enter, body)

    def lane_loop(self, start: ir.Value, end: ir.Value, body: Callable[[], None]) -> None:
        """`body` for each vector of the lane axis in [start, end)."""
        # A heavy body is emitted once, masked. A light one is emitted unmasked for whole vectors and masked for the rest. If a
        # vector spans several registers, a third copy handles a rest that fits one register, as in short rows.
        lane, b, width = self.kernel.lane, self.builder, self.lanes.width
        assert lane is not None
        if self.folded is not None:
            with self.bind(lane, start):
                body()
            return
        if self.kernel.work >= HEAVY:
            with self.loop(start, end, width) as i, self.bind(lane, i):
                left = end - i
                self._masked(b.select(left >= width, I64(width), left), body)
            self.lane_range = start, end
            return
        register = min(width, register_lanes(self.kernel))
        once = partial(self.once, self.item_level if (start, end) == self.item_range else len(self.scopes) - 1)
        whole = once(("whole", start, end), lambda: start + ((end - start) & -width))
        left = once(("left", start, end), lambda: end - whole)
        with self.loop(start, whole, width) as i, self.bind(lane, i):
            self.lane_range = i, i + width
            body()
        few = left <= register
        if register < width:
            with self.branch(~few), self.bind(lane, whole):
                self._masked(left, body)
        with self.branch((left > 0) & few), self.bind(lane, whole), self.lanes.narrowed(register):
            self._masked(left, body)
        self.lane_range = start, end

    def _masked(self, count: ir.Value, body: Callable[[], None]) -> None:
        """`body` for the first `count` lanes."""
        # A 32-bit comparison with lane numbers takes half the registers of a 64-bit one.
        assert self.kernel.lane is not None
        start = self.index[self.kernel.lane]
        self.lane_range = start, start + count
        self.mask = self.lanes.first_lanes(self.builder.trunc(count, I32))
        body()
        self.mask = None

    # ---- values ----
    def key(self, n: int) -> tuple[int, ...]:
        """The key of instruction `n`'s value: its number, and the point on the unrolled axes that it varies over."""
        varies = self.kernel.instructions[n].varies
        return (n, *[position for axis, position in self.point.items() if axis in varies])

    def is_computed(self, n: int) -> bool:
        key = self.key(n)
        # Only open scopes count: a value of a closed loop does not dominate what comes after it.
        return any(key in scope for scope in self.scopes)

    def once(self, level: int, key: Key, compute: Callable[[], ir.Value]) -> ir.Value:
        """The value of `compute`, emitted once in the scope numbered `level`, before the loop that was entered from it."""
        # This hoists addresses out of inner loops: the LLVM passes that are run have no loop-invariant code motion.
        if key not in self.scopes[level]:
            if level == len(self.scopes) - 1:
                self.scopes[level][key] = compute()
            else:
                with self.builder.goto_block(self.entered[level + 1]):
                    self.scopes[level][key] = compute()
        return self.scopes[level][key]
