"""CTC's recursions over time: a worker takes a sequence, and vectors of its states, in logarithms of float64.

Log-probabilities of prefixes go from a state to itself, the next and the one behind it, of suffixes the other way round. Both
are written over what they are computed from, prefixes from the last state on: the posterior's lie in a row for each time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from genesis.codegen.cpu import ir
from genesis.codegen.cpu.registers import DOUBLE, I64
from genesis.codegen.cpu.tiling import lanes_of
from genesis.codegen.cpu.vector_math.exponential import exp
from genesis.codegen.cpu.vector_math.logarithm import log
from genesis.codegen.cpu.vector_math.number import Number, where
from genesis.codegen.cpu.word_kernel import WordKernel, word_types
from genesis.codegen.segment import SlotMap
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.stages import PARALLEL_COST, HostCall
from genesis.ops.ctc import Misfit
from genesis.runtime.kernel_cache import KernelSource
from genesis.runtime.native import FAULT, Addresses, Block, NativeLaunch

OPERANDS = "log_probs", "targets", "input_lengths", "target_lengths"
POINTERS = (*OPERANDS, "out", "scratch", "fault")
TYPES = word_types(
    (*POINTERS, "site", "time", "sequences", "classes", "targets_each", "joined", "blank", "states", "pitch"), POINTERS)
STATE = 100  # simple operations for a state at a time
NONE = -math.inf  # the logarithm of 0


def sources(nodes: Sequence[Node], call: HostCall) -> list[KernelSource]:
    """The kernel of losses or posteriors of a dtype."""
    node, width = nodes[call.node], lanes_of("float64")
    name = f"genesis_{node.op}_{node.dtype.name}"
    return [KernelSource(name, f"{name} {width}", partial(_text, name, node.dtype.name, width, node.op == "ctc_posterior"))]


def launches(nodes: Sequence[Node], call: HostCall, slots: SlotMap, addresses: Addresses, threads: int) -> list[NativeLaunch]:
    """The launch of a call, whose operands are contiguous."""
    node, width = nodes[call.node], lanes_of("float64")
    operands = [slots.address(base, layout.offset * nodes[base].dtype.itemsize) for base, layout in call.operands]
    *lead, time, sequences, classes = call.operands[0][1].shape
    each = call.operands[1][1].shape[-1]
    joined = int(node.attrs["concatenated"])
    states = -(-(2 * min(each, time) + 1) // width) * width
    rows = time + 1 if node.op == "ctc_posterior" else 1
    pitch = 8 * ((rows + 4) * (states + width) + classes + width)
    workers = threads if STATE * numel(lead) * sequences * time * states > PARALLEL_COST else 1
    items = numel(lead) * sequences
    words = (*operands, slots.address(call.node), slots.workspace(pitch * min(workers, max(1, items))), FAULT, call.node, time,
             sequences, classes, each, joined, node.attrs["blank"], states, pitch)
    return [NativeLaunch(addresses[sources(nodes, call)[0].symbol], [Block(words, items)], workers)]


def _text(name: str, dtype: str, width: int, posterior: bool) -> str:
    kernel = _Kernel(name, dtype, width, posterior)
    with kernel.items() as item:
        kernel.sequence(item)
    return kernel.text()


class _Kernel(WordKernel):
    def __init__(self, name: str, dtype: str, width: int, posterior: bool) -> None:
        super().__init__(name, TYPES, width)
        self.dtype, self.posterior = dtype, posterior
        row = self.words["states"] + width
        rows = self.words["time"] + 1 if posterior else I64(1)
        start = self.at(self.words["scratch"], self.worker * self.words["pitch"])
        buffers = [self.at(start, row * n, 8) for n in range(5)]
        # The states behind the last one, and in `leads` before the first one, are impossible.
        self.labels, self.skips, self.follows, self.weights, leads = buffers
        self.leads, self.step = self.at(leads, width, 8), row if posterior else I64(0)
        self.sums = self.at(leads, row * rows, 8)

    def sequence(self, item: ir.Value) -> None:
        """Check a sequence's lengths, and compute its result."""
        builder, words = self.builder, self.words
        length, count = self.get(words["input_lengths"], item), self.get(words["target_lengths"], item)
        batch = builder.sdiv(item, words["sequences"])
        number = item - batch * words["sequences"]
        first, all_first = self.variable(0), batch * words["sequences"]
        total, each = self.variable(words["targets_each"]), words["targets_each"]
        with builder.if_then(words["joined"].differs(0)):
            total.set(I64(0))
            with self.count(0, words["sequences"]) as other:
                first.set(builder.select(other.equals(number), total.get(), first.get()))
                total.set(total.get() + self.get(words["target_lengths"], all_first + other))
        fits = builder.icmp_unsigned("<=", count, each) & builder.icmp_unsigned("<=", first.get(), each - count)
        self._refuse(fits, Misfit.TARGET_LENGTH, count)
        self._refuse(total.get().equals(each), Misfit.TOTAL, total.get())
        in_time = builder.icmp_unsigned("<=", length, words["time"])
        self._refuse(in_time, Misfit.INPUT_LENGTH, length)
        row = builder.select(words["joined"].differs(0), batch, item)
        with builder.if_then(fits & in_time):
            possible = Number(self, count <= length, "bool")  # each label takes a step
            count = self.least(count, length)
            self._states(self.at(words["targets"], row * each + first.get(), 8), count)
            x = batch * words["time"] * words["sequences"] + number
            self._forward(x, length)
            last = count * 2
            ends = [self._double(self.leads, self._prefix(length, last - n)) for n in range(2)]
            loss = -_added(*ends)
            loss = where(possible, loss, abs(loss) + math.inf)
            if self.posterior:
                self._backward(x, last, length, loss)
            else:
                rounded = self.convert(loss.value, "float64", self.dtype)
                self.store_uniform(rounded, self.element("out", item, self.dtype), self.dtype)

    def _refuse(self, fits: ir.Value, reason: Misfit, value: ir.Value) -> None:
        with self.builder.if_then(~fits):
            self.report(value, I64(reason))

    # ---- memory ----
    def _prefix(self, time: ir.Value, state: ir.Value) -> ir.Value:
        """Where the prefix of so many steps that ends in a state is in `leads`."""
        return time * self.step + state

    def _double(self, buffer: ir.Value, index: ir.Value) -> Number:
        return Number(self, self.load_uniform(self.at(buffer, index, 8), "float64"), "float64")

    def _doubles(self, buffer: ir.Value, index: ir.Value, ahead: int = 0) -> Number:
        return Number(self, self.load(self.at(buffer, index + ahead, 8), "float64"), "float64")

    def _put(self, value: Number | float, buffer: ir.Value, index: ir.Value) -> None:
        found = value.value if isinstance(value, Number) else DOUBLE(value)
        self.store(found, self.at(buffer, index, 8), "float64")

    def _row(self, x: ir.Value, time: ir.Value) -> ir.Value:
        """The first class of a sequence at a time, in `log_probs` and in the posterior."""
        place = x + time * self.words["sequences"]
        return place * self.words["classes"]

    def _emitted(self, row: ir.Value, state: ir.Value) -> Number:
        labels = self.load(self.at(self.labels, state, 8), "int64")
        found = self.gather(self.element("log_probs", row, self.dtype), labels, self.dtype)
        return Number(self, self.convert(found, self.dtype, "float64"), "float64")

    # ---- the recursions ----
    def _states(self, targets: ir.Value, count: ir.Value) -> None:
        """The label of each state, and 0 where the blank before it may be skipped; nothing precedes the first state."""
        builder, words, before = self.builder, self.words, self.variable(blank := self.words["blank"])
        with self.count(0, words["states"] + self.width, self.width) as state:
            self.store(self.splat(blank), self.at(self.labels, state, 8), "int64")
            for buffer in (self.skips, self.follows):
                self._put(NONE, buffer, state)
            self._put(NONE, self.leads, state - self.width)
        self.store_uniform(DOUBLE(0.0), self.leads, "float64")
        with self.count(0, count) as k:
            label, state = self.get(targets, k), k * 2 + 1
            fits = builder.icmp_unsigned("<", label, words["classes"])
            self._refuse(fits, Misfit.TARGET, label)
            self.put(builder.select(fits, label, I64(0)), self.labels, state)
            skipped = label.differs(before.get()) & k.differs(0)
            self.store_uniform(builder.select(skipped, DOUBLE(0.0), DOUBLE(NONE)), self.at(self.skips, state, 8), "float64")
            before.set(label)

    def _forward(self, x: ir.Value, length: ir.Value) -> None:
        states = self.words["states"]
        with self.count(0, length) as time:
            row, after = self._row(x, time), time + 1
            with self.count(self.width, states + self.width, self.width) as left:
                state = states - left
                here, there = self._prefix(time, state), self._prefix(after, state)
                skipping = self._doubles(self.leads, here, -2) + self._doubles(self.skips, state)
                found = _added(self._doubles(self.leads, here), self._doubles(self.leads, here, -1), skipping)
                self._put(self._emitted(row, state) + found, self.leads, there)
            self._put(NONE, self.leads, self._prefix(after, I64(-self.width)))

    def _backward(self, x: ir.Value, last: ir.Value, length: ir.Value, loss: Number) -> None:
        """A class at a time is as probable as all alignments through its states there."""
        words = self.words
        self.store_uniform(DOUBLE(0.0), self.at(self.follows, last, 8), "float64")  # so alignments end in the last two states
        possible = abs(loss * 0.0)
        with self.count(0, length) as gone:
            time = length - gone - 1
            row = self._row(x, time)
            with self.count(0, words["states"], self.width) as state:
                skipping = self._doubles(self.follows, state, 2) + self._doubles(self.skips, state, 2)
                found = _added(self._doubles(self.follows, state), self._doubles(self.follows, state, 1), skipping)
                lead = self._doubles(self.leads, self._prefix(time + 1, state))
                self._put(exp(lead + found + loss), self.weights, state)
                self._put(found + self._emitted(row, state), self.follows, state)
            self._write(row, possible, last + 1)
        with self.count(length, words["time"]) as time:
            self._write(self._row(x, time), Number(self, DOUBLE(0.0), "float64"), I64(0))

    def _write(self, row: ir.Value, start: Number, states: ir.Value) -> None:
        """The classes at a time: `start` and the weights of their states."""
        classes = self.words["classes"]
        with self.count(0, classes, self.width) as of:
            self.store(self.splat(start.value), self.at(self.sums, of, 8), "float64")
        with self.count(0, states) as state:
            of = self.get(self.labels, state)
            total = self._double(self.sums, of) + self._double(self.weights, state)
            self.store_uniform(total.value, self.at(self.sums, of, 8), "float64")
        with self.count(0, classes, self.width) as of:
            rounded = self.convert(self._doubles(self.sums, of).value, "float64", self.dtype)
            to = self.element("out", row + of, self.dtype)
            self.store(rounded, to, self.dtype, self.first_lanes(classes - of))


def _added(*terms: Number) -> Number:
    """log(sum of exp)."""
    first, *rest = terms
    most = first.constant(-1e300)  # finite, so that nothing is inf - inf
    for term in terms:
        most = first.like(first.lanes.maximum(most.value, term.value))
    total = exp(first - most)
    for term in rest:
        total = total + exp(term - most)
    return most + log(total)
