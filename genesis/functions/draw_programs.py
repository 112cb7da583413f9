"""Programs of one draw, which write random numbers of the default generator straight into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast as typed

from genesis.execution.plan import Plan
from genesis.execution.result_words import word_address
from genesis.ir.annotations import Key
from genesis.ir.dtypes import DType, float32, float64
from genesis.ir.graph import Graph, Value
from genesis.ops.registry import OPERATIONS, cast
from genesis.runtime import rng
from genesis.runtime.completion import UNOBSERVED
from genesis.runtime.counters import replayed
from genesis.runtime.devices import CPU
from genesis.runtime.instructions import Instructions, Register
from genesis.runtime.native import NativeProgram
from genesis.runtime.team import team
from genesis.runtime.timeline import timeline
from genesis.tensor.known_calls.write_ir import MOST_BYTES
from genesis.tracing.memory import Memory
from genesis.tracing.trace import Trace


def draw_program(kind: str, dtype: DType, count: int) -> Callable[..., Any] | None:
    """A function of memory, a factor and a shift that draws `count` numbers into it: uniform or normal ones, times the factor
    plus the shift, or bits that are 1 with the probability `factor`. None for other dtypes, and for more numbers than one
    thread draws while it holds the GIL.

    It has done nothing unless it returns None: another program may run, or another thread draw.
    """
    if dtype not in (float32, float64) or not 0 < count * dtype.itemsize <= MOST_BYTES:
        return None
    trace = Trace()
    given = [trace.enter_scalar(value) for value in (2, 2, 2.0, 2.0)]  # no literals, so that each is a slot

    def numbers(graph: Graph, key: Key) -> Value:
        seed, start, factor, shift = map(graph.value, given)
        base: Value = OPERATIONS["uniform" if kind == "bernoulli" else kind].define(seed, start, (count,), dtype)
        return cast(base < factor, dtype) if kind == "bernoulli" else base * factor + shift

    step = trace.advance(("draw", kind, dtype, count), numbers, grad=False)
    plan = Plan(trace, trace.nodes, (step.result,), 1).finished(CPU)
    return None if plan.arena_bytes else _filling(plan, count)


def _filling(plan: Plan, count: int) -> Callable[..., Any]:
    """The function of memory and two numbers that runs a plan."""
    code, program = Instructions(3, (Memory,)), typed(NativeProgram, plan.segments[0].program)
    code.keep(plan)
    code.emit("WORD", team.under_way, 0)
    code.require_attribute(timeline, "spans", None)
    seed, counter, changing = [word_address(rng.default_generator.words, k) for k in (rng.SEED, rng.COUNTER, rng.CHANGING)]
    code.emit("WORD", changing, 0)
    completion, output, arena, *numbers = [address for address, _ in program.slots()]
    code.emit("STORE", completion, UNOBSERVED.address)
    code.emit("ADDRESS", output, code.attribute(Register(0), "pointer"), 0)
    code.emit("STORE", arena, 0)
    code.emit("COPY", numbers[0], seed)
    code.emit("COPY", numbers[1], counter)
    for number, slot in enumerate(numbers[2:], 1):
        code.emit("REAL", slot, Register(number))
    run = code.emit("RUN", program.address)
    code.emit("MISS")
    code.skip_from(run)
    code.emit("ADD", counter, count)
    code.emit("ADD", word_address(replayed), 1)
    code.emit("RETURN", code.constant(None))
    return code.function()
