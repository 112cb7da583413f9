"""The trace: recorded calls that have not run yet.

A repeated call is one dictionary look-up. The calls so far are a path in a trie. Each `TrieNode` has its call's nodes, made
once by running the operation's definition, and the next steps by key. A repeated program follows the same path, infers nothing
again, and finds at its end the plan that ran last time.

An `Array` is an immutable value: pending at a position of a trace, or realized in memory.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import weakref
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from genesis.ir.dtypes import DType, dtype_of_scalar, get_default_dtype
from genesis.ir.graph import Node
from genesis.ir.shapes import Shape
from genesis.ops.layout import Layout
from genesis.runtime.devices import CPU, Device
from genesis.runtime.fork import fork_safe_lock
from genesis.runtime.memory import Buffer
from genesis.tracing.backward_state import FREED, NOTHING, BackwardState
from genesis.tracing.families import Build, Form, Step
from genesis.tracing.memory import Memory, kernel_strides
from genesis.tracing.scopes import Scope, ScopeNames
from genesis.tracing.source_line import CallLine, call_at, line_name, line_of, user_line
from genesis.tracing.thread import thread_state
from genesis.tracing.trie import LOOP_LIMIT, Key, TrieNode, new_root, roots, variable_of

LOCK = fork_safe_lock(outermost=True)
ENTERED = frozenset({"input", "scalar", "variable"})  # nodes entered before the call that reads them
BUSY = 2  # `Trace.closed` while a call is recorded or the trace is flushed: other code of this thread has interrupted that


class Change(NamedTuple):
    """An in-place write: its trace and call."""

    trace: Callable[[], Trace | None]
    call: CallLine

    def again(self) -> Change:
        """The same write by a replay of the call, without the trace that it was recorded in."""
        return self._replace(trace=nowhere)


def nowhere() -> None:
    """The trace of a write that none has recorded, as one by a replay."""


class _Critical:
    """Whether the holder of LOCK runs a program. An interrupting signal handler or finalizer then records in a separate trace,
    which is computed at once, because the program's overwrites are already decided."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        self.running = False


critical = _Critical()


class Array:
    """An immutable value: `node` describes it, `memory` has it once it is computed."""

    __slots__ = ("index", "memory", "node", "trace")

    def __init__(self, trace: Trace | None, index: int, node: Node, memory: Memory | None = None) -> None:
        self.trace = trace
        self.index = index
        self.node = node
        self.memory = memory

    @property
    def device(self) -> Device:
        """The device of the value."""
        memory, trace = self.memory, self.trace  # in this order: another thread that computes it drops the trace last
        return memory.buffer.device if memory is not None else self.device if trace is None else trace.device

    @classmethod
    def realized(cls, buffer: Buffer, layout: Layout, dtype: DType) -> Array:
        """An array over memory with computed values."""
        return cls.laid(buffer, layout, *in_memory(layout, dtype))

    @classmethod
    def laid(cls, buffer: Buffer, layout: Layout, node: Node, start: int, strides: Shape | None) -> Array:
        """`realized`, with what `in_memory` returns."""
        return cls(None, -1, node, Memory.laid(buffer, layout, start, strides))

    @classmethod
    def over(cls, memory: Memory, dtype: DType) -> Array:
        """An array over the memory of computed values."""
        return cls(None, -1, in_memory(memory.layout, dtype)[0], memory)


@functools.lru_cache(maxsize=4096)
def in_memory(layout: Layout, dtype: DType) -> tuple[Node, int, Shape | None]:
    """What all arrays with a layout in memory share: the node, the start in bytes, and the strides for kernels."""
    node = Node("input", (), {}, layout.shape, dtype)
    return node, layout.offset * dtype.itemsize, kernel_strides(layout)


def _key_of_input(array: Array, leaf: Any) -> Key:
    node = array.node
    return node.shape, node.dtype, array.memory.strides, node.differentiable, leaf is not None  # type: ignore[union-attr]


_new = object.__new__
numbers = itertools.count()
_OPEN = math.inf  # the number of a trace that has not ended
NO_POSITIONS: frozenset[int] = frozenset()
NOT_RUN: Mapping[int, Array] = MappingProxyType({})
_EMPTY: Any = MappingProxyType({})  # of traces that have ended: nobody adds to them
AT_END = "closed", "done", "arrays", "entered", "written", "run", "backward", "input_at"  # what `end` sets, with `number`


class Trace:
    """A path in the trie and the data of its placeholders: one thread's calls on one device."""

    __slots__ = (
        "__weakref__", "arrays", "backward", "backward_done", "backwards", "changed", "closed", "device", "done", "eager",
        "entered", "failure", "input_at", "is_interrupting", "limit", "lines", "lost", "memory_order", "nodes", "number",
        "part", "ran", "read_while_busy", "reference", "released", "run", "scalars", "step", "variables", "versions", "weight",
        "written",
    )

    def __init__(self, device: Device = CPU, eager: bool = False, weight: float = 0) -> None:
        self.closed: int = False  # True or BUSY: it takes no more calls
        self.done = False  # flushed: every live handle has memory
        self.number = _OPEN  # traces are numbered as they end: other traces read a value only after that
        self.backward = NOTHING  # for reading; `backward_state()` for writing
        self.backward_done = False  # the next forward begins another trace
        self.backwards = 0  # that have run into it: the second flushes it
        self.released = NO_POSITIONS  # positions whose graph an earlier backward freed
        self.run: Any = None  # the flush under way, if one was interrupted
        self.is_interrupting = False  # belongs to an interrupting signal handler or finalizer
        self.read_while_busy: dict[int, Any] | None = None  # position -> memory, of values that interrupting code has read
        self.failure: BaseException | None = None
        self.lost = NO_POSITIONS  # positions lost by the failure
        self.ran = NOT_RUN  # position -> result, of collectives that ran before the failure
        self.device = device
        self.eager = eager  # compute its nodes by their references
        self.reference = weakref.ref(self)
        self.nodes: list[Node] = []
        self.arrays: list[Array] = []  # handles on pending values, for the liveness check
        self.input_at: dict[int, Array] = {}  # position -> the array of that input, in order
        self.versions: dict[int, int] = {}  # position -> version of the memory that backward will read it from
        self.entered: dict[Any, Any] = {}  # Array -> position of its input; Tensor -> positions of its input and its variable
        self.scalars: list[float] = []
        self.lines: list[CallLine] = []
        self.variables: MutableMapping[int, Any] = {}  # position -> the leaf Tensor whose gradient ends there
        self.changed: dict[int, Change | None] = {}  # position -> the in-place write that replaced it
        # (tensor, its array, and changes before): restored if the flush fails; of what was pending here, a weak reference and
        # the position.
        self.written: list[tuple[Any, Array | int, int]] = []
        self.weight, self.limit = weight, LOOP_LIMIT  # above which a flush is considered
        self.part: Any = None  # what `tensor/new_programs.py` knows of it, and
        self.memory_order: Any = None  # `tracing/pytorch_strides.py`: a table by traces would swallow interrupts as they die
        dtype = get_default_dtype()
        self.step = roots.get(dtype) or new_root(dtype)

    def backward_state(self) -> BackwardState:
        """`backward`, for writing."""
        state = self.backward
        if state is NOTHING or state is FREED:
            state = self.backward = BackwardState(state.graph_freed)
        return state

    @property
    def inputs(self) -> list[Array]:
        """The arrays of its inputs, in order."""
        return [*self.input_at.values()]

    def end(self, keeps: bool) -> None:
        """Mark the trace as flushed, and drop what only an open trace needs. Unless it `keeps` values for backward, that is
        impossible; `grad_fn` still shows custom calls.
        """
        self.number = next(numbers)
        self.closed = self.done = True
        self.arrays, self.entered, self.written, self.run = (), _EMPTY, (), None  # type: ignore[assignment]
        backward = self.backward
        if not keeps:
            self.backward, self.input_at = FREED, _EMPTY
        if backward is not NOTHING:
            if backward.copies:
                backward.copies = {key: copied for key, copied in backward.copies.items() if copied.origins}
            if not keeps and (customs := backward.custom_calls):
                for custom in customs.values():
                    custom.end()
                self.backward_state().custom_calls = customs
        if self.ran or self.read_while_busy:
            self.ran, self.read_while_busy = NOT_RUN, None

    def without_data(self) -> Trace:
        """A copy with only the calls, for reports, without references to values, tensors and modules."""
        bare = calls_alone(self.device, self.nodes, self.lines)
        if self.backward.copies:
            bare.backward_state().copies = {
                (source.without_data(), create_graph): copied
                for (source, create_graph), copied in self.backward.copies.items()}
        return bare

    def twin(self, key: Key, nodes: list[Node], inputs: dict[int, Array]) -> Trace:
        """A trace with `nodes` instead of the first ones here; its plans are found under `key`."""
        twin = Trace(self.device, self.eager)
        twin.nodes, twin.input_at = nodes, inputs
        twin.step = self.step.children.setdefault(key, TrieNode(Step((), None)))
        twin.scalars = self.scalars[: sum(node.op == "scalar" for node in nodes)]
        twin.lines = [line for line in self.lines if line[0] < len(nodes)]
        return twin

    def append(self, step: TrieNode) -> None:
        """Append `step`, a child of the last one."""
        self.step = step
        self.nodes += step.nodes
        self.weight += step.weight

    def advance(self, key: Key, build: Build, *, grad: bool = True, form: Form | None = None) -> TrieNode:
        """Append the step `key`; if it is new, as `TrieNode.grow` makes it."""
        step = self.step.children.get(key) or self.step.grow(key, self.nodes, build, grad, form)
        self.step = step
        self.nodes += step.nodes
        self.weight += step.weight
        return step

    def record(self, key: Key, build: Build, *, grad: bool = True, form: Form | None = None) -> TrieNode:
        """`advance`, as a call at the user's line."""
        code, offset = user_line()
        self.lines.append((len(self.nodes), code, offset, thread_state.scope, key))
        try:
            return self.advance(key, build, grad=grad, form=form)
        except BaseException:
            self.lines.pop()
            raise

    # Invariant: no Python call, and so no interrupt, between appending a step and storing the data of its placeholders.

    def enter_array(self, array: Array, leaf: Any = None) -> int:
        """The position of `array` in this trace; a realized one becomes an input. With `leaf`, a tensor that requires
        a gradient and has this array: the position of its variable.
        """
        index: Any = array.index if array.trace is self else self.entered.get(array)
        if index is None:
            memory, nodes = array.memory, self.nodes
            index = len(nodes)
            key = _key_of_input(array, leaf)
            self.step = step = self.step.children.get(key) or self.step.grow_input(key, nodes)
            nodes += step.nodes
            self.weight += step.weight
            self.input_at[index] = array
            self.versions[index] = memory.buffer.version  # type: ignore[union-attr]
            self.entered[array] = index
            if leaf is not None:
                self.variables[index + 1] = leaf
                self.entered[leaf] = index, index + 1
                return index + 1
        return index if leaf is None else self._enter_variable(leaf, index)  # type: ignore[no-any-return]

    def is_new_input(self, array: Array, leaf: Any = None) -> bool:
        """Whether no trace so far had an input like `array` here."""
        return array not in self.entered and _key_of_input(array, leaf) not in self.step.children

    def _enter_variable(self, leaf: Any, source: int) -> int:
        """The position of the variable of `leaf`, whose value entered before."""
        known = self.entered.get(leaf)
        if known is not None and known[0] == source:
            return known[1]  # type: ignore[no-any-return]
        index = len(self.nodes)
        self.advance(("variable", source), lambda graph, key: variable_of(graph, source))
        self.variables[index] = leaf
        self.entered[leaf] = source, index
        return index

    def enter_scalar(self, value: bool | int | float, dtype: DType | None = None) -> int:
        """The position of a Python number that is an argument of the program."""
        kind, nodes, scalars = value.__class__, self.nodes, self.scalars
        if kind is int and not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"the Python number {value} does not fit into int64")
        index, key = len(nodes), ("scalar", dtype or dtype_of_scalar(value), kind)
        self.step = step = self.step.children.get(key) or self.step.grow_scalar(key, nodes, len(scalars))
        nodes += step.nodes
        self.weight += step.weight
        scalars.append(value)
        return index

    def handle(self, index: int) -> Array:
        """A new handle on the value at `index`: the value is computed if the handle is alive at the flush."""
        array = Array(self, index, self.nodes[index])
        self.arrays.append(array)
        return array

    def handles(self, indices: Iterable[int]) -> list[Array]:
        """New handles on the values at `indices`."""
        nodes, made = self.nodes, []
        for index in indices:
            array = _new(Array)
            array.trace, array.index, array.node, array.memory = self, index, nodes[index], None
            made.append(array)
        self.arrays += made
        return made

    def call_at(self, index: int) -> CallLine | None:  # the functions of these names, of its lines
        return call_at(self.lines, index)

    def line_of(self, index: int) -> tuple[str, int] | None:
        return line_of(self.lines, index)

    def location_of(self, index: int) -> str:
        """The user's line and module of the value at `index`, for errors: `file:line, in GPT.head`."""
        line, module = self.line_of(index), ScopeNames().path(self.scope_of(index))
        return "" if line is None else line_name(line) + f", in {module}" * bool(module)

    def scope_of(self, index: int) -> Scope | None:
        """The scope of the call that computed the value at `index`; a gradient has that of its forward call, an entered node
        that of its reader."""
        trace, index = self.derived_from(index)
        following = bisect.bisect_right(trace.lines, index, key=itemgetter(0))
        number = following if trace.nodes[index].op in ENTERED else following - 1
        return trace.lines[number][3] if 0 <= number < len(trace.lines) else None

    def derived_from(self, index: int) -> tuple[Trace, int]:
        """The trace and position of the value whose gradient rule added the node at `index`; other nodes return their own.

        A value copied here from a flushed trace for backward is looked up there while this trace is open.
        """
        while (origin := self.nodes[index].origin) >= 0:
            index = origin
        for (source, _), copied in self.backward.copies.items():
            for there, here in copied.positions.items():
                if here == index:
                    return source, there
        return self, index


def calls_alone(device: Device, nodes: list[Node], lines: Sequence[CallLine]) -> Trace:
    """A trace of only calls for reports, which may outlive modules: names are resolved now."""
    bare, named = Trace(device), ScopeNames().named
    bare.nodes, bare.closed = nodes, True
    bare.lines = [(start, code, offset, named(scope), key) for start, code, offset, scope, key in lines]
    return bare
