"""Flushes without Python: the checks, the program and the end of a flush as instructions, for plans that have run often.

They serve short programs of the host that read realized inputs and numbers, and compute small results. They do the work of
`flush`, or return MISSED before anything has happened, and then that runs. The GIL is held and no Python runs, so no interrupt,
finalizer or other thread comes between: what a flush drops, registers hold to the end.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

from genesis.execution.plan import Plan, collectives_of, key_of
from genesis.execution.result_pool import ResultPool
from genesis.execution.result_words import RUNS, ResultWords, fill_slots, in_turns, word_address
from genesis.runtime import determinism, number_of_threads
from genesis.runtime.counters import replayed
from genesis.runtime.instructions import HOLDING, Constant, Instructions, Register, are_possible
from genesis.runtime.memory import Buffer
from genesis.runtime.native import NativeProgram
from genesis.runtime.plan_cache import REPLAY, plan_cache
from genesis.runtime.scratch import scratch
from genesis.runtime.team import team
from genesis.runtime.timeline import timeline
from genesis.tracing.backward_state import FREED, NOTHING, BackwardState
from genesis.tracing.memory import Memory
from genesis.tracing.state import begun, thread_state
from genesis.tracing.trace import AT_END, BUSY, NO_POSITIONS, NOT_RUN, Array, Trace, critical, numbers

_ALTERNATING = 3  # plans at one place that are flushed by instructions: they differ in what somebody holds
_PLAIN = {  # what a trace has whose flush is nothing but a program
    "run": None, "done": False, "eager": False, "is_interrupting": False, "lost": NO_POSITIONS, "ran": NOT_RUN,
    "read_while_busy": None,
}


def settle(trace: Trace, plan: Plan, arrays: Sequence[Array], handles: Sequence[Array]) -> None:
    """Have the next flushes by `plan`, which has run often, done by instructions, if they can be. It has just computed
    `handles`, of the `arrays` that `trace` had."""
    if plan.native is None and _is_plain(trace, plan) and not (pool := plan.pool.for_replays(together=0)).has_large:
        plan.native = NativeFlush(trace, plan, pool, arrays, handles)
        plan.pool.idle.clear()
    elif plan.native is not None:  # it has missed: for want of memory, perhaps
        plan.native.renew()
    if plan.native is not None:
        function, plans = plan.native.function, trace.step.plans
        plans[REPLAY] = (function, *[other for other in plans.get(REPLAY, ()) if other is not function])[:_ALTERNATING]


def _is_plain(trace: Trace, plan: Plan) -> bool:
    """Whether a plan is one short program of the host whose results are in buffers of their own."""
    segment = plan.segments[0] if len(plan.segments) == 1 else None
    return (
        segment is not None and segment.program is not None and segment.host is None and trace.device.memory.is_host
        and not (plan.views or collectives_of(trace)) and (plan.keeps or trace.backward is FREED)
        and trace.variables.__class__ is dict
        and scratch.is_shared(scratch.buffer(plan.arena_bytes)) and sum(segment.program.seconds()) < HOLDING and are_possible()
    )


class _KeptRegisters(NamedTuple):
    """Registers of what a trace keeps for backward, by their positions."""

    state: Register
    inputs: Register
    saved: Register
    arrays: Mapping[int, Register]
    origins: Mapping[int, Register]  # of results that carry no gradient


class NativeFlush:
    """The function of a trace that flushes it as `trace` was flushed, or returns MISSED: if its state, the settings or the
    arrays that somebody holds differ, or others own the memory for results.
    """

    def __init__(self, trace: Trace, plan: Plan, pool: ResultPool, arrays: Sequence[Array], handles: Sequence[Array]) -> None:
        self._code = code = Instructions(1, (Array, Memory, Buffer, Trace, BackwardState))
        self._trace, self._plan = Register(0), code.keep(plan)
        self._device, self._program = trace.device, cast(NativeProgram, plan.segments[0].program)
        is_held = {*map(id, handles)}.__contains__
        self._held = [k for k, one in enumerate(arrays) if is_held(id(one))]
        self._marks = code.keep(array("Q", [len(arrays), *map(is_held, map(id, arrays))]))
        self._results = [(handle.index, handle.node.differentiable) for handle in handles]
        self._key = id(trace.step.plans), key_of(trace, tuple([handle.index for handle in handles]))
        self._variables, self._released = [*trace.variables], trace.released
        of_backward = ("backward", "input_at") if plan.keeps else ()
        self._ended = {name: getattr(trace, name) for name in AT_END if name not in of_backward}
        self._unread = [k for k, node in enumerate(trace.nodes) if node.op == "input" and k not in plan.saved_inputs]
        derived = [index for index, is_differentiable in self._results if is_differentiable and index not in plan.saved_inputs]
        self._saved = {index: trace.nodes[index] for index in (*plan.saved, *derived)} if plan.keeps else {}
        self._words = [code.keep(ResultWords(pool, trace.device, dict)) for _ in range(RUNS)]
        turn = code.keep(array("Q", [0]))
        for k in in_turns(code, turn, [[words] for words in self._words]):
            self._flush(self._words[k])
        self._words[0].renew()
        self.function = code.function()

    def renew(self) -> None:
        """Replace the memory for results that others own."""
        for words in self._words:
            if words.is_owned():
                words.renew()

    def _flush(self, words: ResultWords) -> None:
        """Flush into the memory of `words`."""
        code, program = self._code, self._program
        kept, held, ended = self._prepare(words)
        verify = getattr(program, "verify_filled", None)
        if verify is not None:  # Python, after which all may be different
            code.call(partial(verify, 0), code.call(program.copied))
            kept, held, ended = self._prepare(words)
        if kept is not None:
            self._keep(kept, words)
        run = code.emit("RUN", program.address)
        code.emit("MISS")
        code.skip_from(run)
        self._hand_out(held, words)
        if kept is not None:
            self._hand_over(kept, words)
        self._end(*ended)
        code.emit("RETURN", code.constant(None))

    def _prepare(self, words: ResultWords) -> tuple[_KeptRegisters | None, list[Register], tuple[Register, ...]]:
        """Go on if all is as it was, and fill the program's slots. Returns registers: of what the trace keeps, of the arrays
        that get memory, and for `_end`."""
        code, trace = self._code, self._trace
        kept = self._kept() if self._plan.keeps else None
        self._require_leaves()  # first, as a subclass of Tensor may run Python for an attribute
        require_settings(code)
        code.require_attribute(critical, "running", False)
        state = code.attribute(code.constant(thread_state), "__dict__")
        traces = self._require_trace(state)
        self._note_use()
        held = self._require_held()
        alone = code.emit("SKIP_ALONE", word_address(words.owned), 0, 0)
        code.emit("MISS")
        code.skip_from(alone)
        self._forget_views(words)
        self._fill(words)
        for name in AT_END:
            code.attribute(trace, name)
        return kept, held, (state, traces, code.call(next, code.constant(numbers)), code.attribute(trace, "reference"))

    def _require_trace(self, state: Register) -> Register:
        """Go on if the trace is plain, and this thread's latest one; returns the register of these."""
        code, trace = self._code, self._trace
        code.emit("IS", code.item(state, "left"), Constant(()))
        traces = code.item(state, "traces")
        code.emit("SAME", code.item(traces, self._device.name), trace)
        for name, value in {**_PLAIN, "device": self._device}.items():
            code.emit("IS", code.attribute(trace, name), Constant(value))
        backward = code.attribute(trace, "backward")
        if self._plan.keeps:
            code.emit("IS", backward, Constant(NOTHING))
        else:  # copies of flushed traces are dropped
            code.emit("SIZE", code.attribute(backward, "custom_calls"), 0)
        code.emit("IS_NOT", code.attribute(trace, "closed"), Constant(BUSY))
        released = code.attribute(trace, "released")
        code.emit("EQUAL" if self._released else "IS", released, Constant(self._released))
        return traces

    def _require_leaves(self) -> None:
        """Go on if the trace has as many variables, of leaves that are no views: the trace may refer to them when it ends."""
        code = self._code
        variables = code.attribute(self._trace, "variables")
        code.emit("SIZE", variables, len(self._variables))
        for index in self._variables:
            code.emit("IS", code.attribute(code.item(variables, index), "_base"), Constant(None))

    def _note_use(self) -> None:
        """Note in the cache of plans that the plan is used, as `find_plan` does; go on if it is still there."""
        code, cache = self._code, self._code.constant(plan_cache)
        latest = code.emit("SKIP_IS", code.attribute(cache, "latest"), self._plan, 0)
        code.call(plan_cache.entries.move_to_end, code.constant(self._key))
        code.assign(cache, "latest", code.constant(self._plan))
        code.skip_from(latest)

    def _require_held(self) -> list[Register]:
        """Go on if the same ones of the trace's arrays are held; returns their registers."""
        code = self._code
        arrays = code.attribute(self._trace, "arrays")
        code.emit("HELD", arrays, word_address(self._marks))
        held = [code.item(arrays, k) for k in self._held]
        for register, (index, _) in zip(held, self._results, strict=True):
            code.emit("EQUAL", code.attribute(register, "index"), Constant(index))
        return held

    def _forget_views(self, words: ResultWords) -> None:
        """Forget who once saw the memory for results, as `ResultPool.provide` does."""
        code = self._code
        for k in range(len(self._plan.values)):
            memory = self._memory(words, k)
            buffer = code.attribute(memory, "buffer", memory)
            for name in ("origin", "_owner"):
                none = code.emit("SKIP_IS", code.attribute(buffer, name), None, 0)
                code.assign(buffer, name, code.constant(None))
                code.skip_from(none)
            code.emit("MOVE", buffer, code.constant(None))  # reference counts tell whether others own it

    def _fill(self, words: ResultWords) -> None:
        """Fill the program's slots."""
        code, plan = self._code, self._plan
        inputs = code.attribute(self._trace, "input_at")
        shared = code.attribute(code.attribute(code.constant(scratch), "shared"), "ptr") if plan.arena_bytes else None
        slots = fill_slots(code, self._program, ((code.item(inputs, index), 0) for index in plan.reads), words, shared)
        scalars = code.attribute(self._trace, "scalars")
        for k, (slot, kind) in enumerate(slots):
            code.emit("REAL" if kind == "d" else "INTEGER", slot, code.item(scalars, k))

    def _memory(self, words: ResultWords, value: int) -> Register:
        """The register of a result's memory."""
        memory = self._code.register()
        self._code.emit("OBJECT", memory, word_address(words.results, value))
        return memory

    def _hand_out(self, held: Sequence[Register], words: ResultWords) -> None:
        """Give the arrays their memory."""
        code = self._code
        for pending, (index, is_differentiable) in zip(held, self._results, strict=True):
            code.assign(pending, "memory", self._memory(words, self._plan.number_of[index]))
            if not is_differentiable:
                code.assign(pending, "trace", code.constant(None))

    def _kept(self) -> _KeptRegisters:
        """Make what the trace will keep for backward, empty yet. Collections may run here, and so Python, but not later."""
        code, trace = self._code, self._trace
        state = code.new(BackwardState)
        for name in BackwardState.__slots__:
            code.assign(state, name, code.constant(False) if name == "graph_freed" else code.call(dict))
        inputs, saved = code.call(dict), code.attribute(state, "saved")
        arrays = {index: code.new(Array) for index in self._saved}
        reference = code.attribute(trace, "reference")
        origins = {index: code.tuple(reference, code.constant(index)) for index, is_differentiable in self._results
                   if not is_differentiable}
        return _KeptRegisters(state, inputs, saved, arrays, origins)

    def _keep(self, kept: _KeptRegisters, words: ResultWords) -> None:
        """Note what backward may read, as `_save` does."""
        code, plan = self._code, self._plan
        code.call(operator.ior, kept.inputs, code.attribute(self._trace, "input_at"))
        for index in self._unread:
            code.call(dict.pop, kept.inputs, code.constant(index))
        code.call(operator.ior, kept.saved, kept.inputs)
        for index, one in kept.arrays.items():
            memory = self._memory(words, plan.number_of[index])
            for name, value in {"trace": None, "index": -1, "node": self._saved[index]}.items():
                code.assign(one, name, code.constant(value))
            code.assign(one, "memory", memory)
            code.call(operator.setitem, kept.saved, code.constant(index), one)

    def _hand_over(self, kept: _KeptRegisters, words: ResultWords) -> None:
        """Give the trace what it keeps, and results that carry no gradient their origin in it."""
        code = self._code
        code.assign(self._trace, "backward", kept.state)
        code.assign(self._trace, "input_at", kept.inputs)
        buffers = {index: code.attribute(self._memory(words, self._plan.number_of[index]), "buffer")
                   for index in (*kept.origins, *self._plan.saved)}
        for index, origin in kept.origins.items():
            code.assign(buffers[index], "origin", origin)
        versions = code.attribute(self._trace, "versions")
        for index in self._plan.saved:
            code.call(operator.setitem, versions, code.constant(index), code.attribute(buffers[index], "version"))

    def _end(self, state: Register, traces: Register, number: Register, reference: Register) -> None:
        """End the trace, as `Trace.end` and `leave` do, with the next number; `state` is the thread's."""
        code, trace = self._code, self._trace
        code.assign(trace, "number", number)
        for name, value in self._ended.items():
            code.assign(trace, name, code.constant(value))
        code.call(dict.pop, traces, code.constant(self._device.name))
        code.call(operator.setitem, state, code.constant("trace"), code.constant(None))
        code.call(begun.discard, reference)
        code.emit("ADD", word_address(replayed), 1)


# ---- settings that plans depend on ----
def require_settings(code: Instructions) -> None:
    """Go on if no program is under way, nobody watches, and the settings are the present ones, by their values."""
    code.emit("WORD", team.under_way, 0)
    code.require_attribute(timeline, "spans", None)
    code.emit("EQUAL", code.item(code.constant(determinism.setting), 0), Constant(determinism.setting[0]))
    settings = code.constant(vars(number_of_threads))
    with code.unless_passed(settings):
        threads, planned = code.item(settings, "_threads"), number_of_threads.get_num_threads()
        unset = code.emit("SKIP_IS", threads, None, 0) if number_of_threads.default_threads() == planned else None
        code.emit("EQUAL", threads, Constant(planned))
        if unset is not None:
            code.skip_from(unset)
