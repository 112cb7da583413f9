"""Programs with one mistake each: what a plan says is changed in one place, and the program is run as that says.

Memory is the test's own: what a program should not touch is filled with a pattern before and looked at afterwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from genesis.codegen.backend import backend_of
from genesis.codegen.segment import Segment
from genesis.execution import plan as plans
from genesis.execution.host_call import call_host
from genesis.execution.verified_program import VERIFY, _bytes_of
from genesis.lower import Lowered
from genesis.lower.build import KernelCall
from genesis.lower.schedule import Location
from genesis.lower.stages import Loop, Product, parts
from genesis.runtime.devices import CPU

MARGIN = 4096  # bytes around each piece of memory
Results = list[bytes]


class Recorded(NamedTuple):
    """A program that ran, and what it was given."""

    lowered: Lowered
    saved: int
    inputs: list[bytes]
    scalars: list[float]


@contextmanager
def recorded_programs() -> Iterator[list[Recorded]]:
    """Each program that is made inside and run."""
    found: list[Recorded] = []

    def recording(lower, saved, segments, arena_bytes, device):
        lowered = lower()
        spans = [_bytes_of(lowered.nodes[value]) for value in lowered.inputs]

        def run(values, *around, **changes):
            inputs = [ctypes.string_at(pointer + low, high - low)
                      for pointer, (low, high) in zip(values, spans, strict=False)]
            outputs = sum(place.kind == "output" for place in lowered.schedule.locations.values())
            found.append(Recorded(lowered, saved, inputs, [*values[len(spans) + outputs + 1 :]]))
            return first.program.run(values, *around, **changes)

        first = segments[0]
        if first.program is None or not lowered.schedule.stages:
            return segments
        return [first._replace(program=SimpleNamespace(run=run)), *segments[1:]]

    before = VERIFY[0], plans.verified, plans.key_of
    VERIFY[0], plans.verified, plans.key_of = True, recording, lambda *given: (*before[2](*given), object())
    try:
        yield found
    finally:
        VERIFY[0], plans.verified, plans.key_of = before


class _Block:
    """Bytes with a margin on both sides."""

    def __init__(self, nbytes: int, fill: int, content: bytes = b"") -> None:
        self.fill, self.nbytes = fill, nbytes
        self.whole = np.full(nbytes + 2 * MARGIN + 64, fill, np.uint8)
        self.start = MARGIN + -(self.whole.ctypes.data + MARGIN) % 64
        self.address = self.whole.ctypes.data + self.start
        self.inside[: len(content)] = np.frombuffer(content, np.uint8)

    @property
    def inside(self) -> np.ndarray:
        return self.whole[self.start : self.start + self.nbytes]

    def is_untouched_outside(self) -> bool:
        outside = self.whole.copy()
        outside[self.start : self.start + self.nbytes] = self.fill
        return bool((outside == self.fill).all())


def assembled(program: Recorded, lowered: Lowered) -> tuple[list[Segment], int]:
    """What runs, and the bytes of its arena."""
    outputs = sum(place.kind == "output" for place in program.lowered.schedule.locations.values())
    at = len(lowered.inputs) + outputs
    slot_format = "Q" * (at + 1) + "".join("d" if isinstance(value, float) else "q" for value in program.scalars)
    return backend_of(CPU).assemble(
        lowered.nodes, lowered.schedule, slot_format, at, len(lowered.inputs), at + 1, lowered.target.threads, CPU)


def outcome(
    program: Recorded, lowered: Lowered, code: tuple[list[Segment], int], fill: int, given: Collection[int]
) -> Results:
    """All that a caller can see after a run: the results, the inputs but for those `given` away, the memory around."""
    nodes, locations = lowered.nodes, lowered.schedule.locations
    segments, arena_bytes = code
    spans = [_bytes_of(nodes[value]) for value in lowered.inputs]
    inputs = [_Block(high - low, fill, content) for (low, high), content in zip(spans, program.inputs, strict=True)]
    sizes = {place.position: nodes[value].nbytes for value, place in program.lowered.schedule.locations.items()
             if place.kind == "output"}
    outputs = [_Block(sizes[k], fill) for k in range(len(sizes))]
    donated = {output: k for k, output in lowered.donations}
    pointers = [block.address - low for block, (low, _) in zip(inputs, spans, strict=True)]
    addresses = [pointers[donated[k]] if k in donated else block.address for k, block in enumerate(outputs)]
    arena = _Block(arena_bytes, fill)
    slots = [*pointers, *addresses, arena.address, *program.scalars]
    said = []
    for segment in segments:
        if segment.host is not None:
            plan = SimpleNamespace(lowered=lowered, inputs=inputs, sizes=outputs, host_calls={})
            call_host(plan, segment.host, slots, CPU)
        else:
            said.append(repr(segment.program.run(slots)).encode())
    arena.inside[:] = fill  # nobody's after the run
    found = []
    for value, _ in lowered.outputs:
        kind, place = locations[value]
        address = {"input": pointers, "output": addresses, "arena": None}[kind]
        found.append(ctypes.string_at(address[place] if address else arena.address + place, nodes[value].nbytes))
    kept = [bytes(block.inside) for k, block in enumerate(inputs) if k not in given]
    intact = [str(block.is_untouched_outside()).encode() for block in (*inputs, *outputs, arena)]
    return [*found, *kept, *said, *intact]


def may_run_astray(program: Recorded) -> bool:
    """Whether data says where a kernel reads or writes: wrong data, and so a mutant, may then end the process."""
    return any(i.name in ("load_at", "scatter") for stage in program.lowered.schedule.stages for call in stage
               for part in parts(call) if isinstance(part, KernelCall) for i in part.kernel.instructions)


def changes_a_result(program: Recorded, mutant: Lowered) -> bool:
    """Whether anybody would notice: against the program as it is, with the same memory given away, and with none.

    Code that the generator refuses to write changes nothing.
    """
    apart, given = program.lowered._replace(donations=[]), {k for k, _ in mutant.donations}
    right = assembled(program, apart)
    try:
        wrong = assembled(program, mutant)
    except AssertionError:
        return False
    return any(outcome(program, apart, right, fill, given) != outcome(program, mutant, wrong, fill, given)
               for fill in (0, 0x7F, 0xFF))


# ---- mistakes ----


Chooser = np.random.Generator
Mistake = Callable[[Chooser, Lowered], Lowered | None]


def _one_of(choose: Chooser, options: Sequence):
    return options[choose.integers(len(options))] if len(options) else None


def _placed(lowered: Lowered, places: dict[int, Location]) -> Lowered:
    return lowered._replace(schedule=lowered.schedule._replace(locations=lowered.schedule.locations | places))


def a_donation(choose: Chooser, lowered: Lowered) -> Lowered | None:
    """An input gives its memory to some output of its size."""
    nodes, places = lowered.nodes, lowered.schedule.locations
    pairs = [(places[v].position, places[w].position) for v in lowered.inputs for w in places
             if places[w].kind == "output" and nodes[v].nbytes == nodes[w].nbytes > 0 and not nodes[v].attrs.get("strides")]
    pair = _one_of(choose, [pair for pair in pairs if pair not in lowered.donations])
    if pair is None:
        return None
    return lowered._replace(donations=[pair, *[(k, o) for k, o in lowered.donations if k != pair[0] and o != pair[1]]])


def an_offset(choose: Chooser, lowered: Lowered) -> Lowered | None:
    """A value lies elsewhere in the arena."""
    places = {v: place for v, place in lowered.schedule.locations.items() if place.kind == "arena"}
    value = _one_of(choose, [*places])
    if value is None:
        return None
    moved = places[value].position + int(_one_of(choose, [-128, -64, -8, 8, 32, 64, 256]))
    other = _one_of(choose, [place.position for place in places.values() if place != places[value]] or [moved])
    return _placed(lowered, {value: Location("arena", int(_one_of(choose, [moved, other])))})


def a_home(choose: Chooser, lowered: Lowered) -> Lowered | None:
    """A value lies where another one does, or both change places."""
    nodes, places = lowered.nodes, lowered.schedule.locations
    one = _one_of(choose, [v for v in places if nodes[v].op != "input" and nodes[v].nbytes])
    others = [v for v in places if one is not None and nodes[v].nbytes >= nodes[one].nbytes and places[v] != places[one]]
    other = _one_of(choose, others)
    if other is None:
        return None
    both = choose.integers(2) and nodes[other].op != "input" and nodes[other].nbytes == nodes[one].nbytes
    return _placed(lowered, {one: places[other], **({other: places[one]} if both else {})})


def an_order(choose: Chooser, lowered: Lowered) -> Lowered | None:
    """A stage comes earlier, later, twice, or not at all; or so does a call within one."""
    stages = [*lowered.schedule.stages]
    nested = [n for n, stage in enumerate(stages) if isinstance(stage[0], Loop) or getattr(stage[0], "epilogue", ())]
    number = _one_of(choose, nested if nested and choose.integers(2) else range(len(stages)))
    call = stages[number][0]
    if number in nested and choose.integers(4):
        calls = [*(call.calls if isinstance(call, Loop) else call.epilogue)]
        calls.insert(int(choose.integers(len(calls))), calls.pop(int(choose.integers(len(calls)))))
        if len(calls) < 2:
            return None
        stages[number] = [call._replace(**{"calls" if isinstance(call, Loop) else "epilogue": tuple(calls)})]
    else:
        stage = stages.pop(number)
        if choose.integers(4) or not stages:
            stages.insert(int(choose.integers(len(stages) + 1)), stage)
            if not choose.integers(4):
                stages.insert(int(choose.integers(len(stages) + 1)), stage)
    if stages == lowered.schedule.stages:
        return None
    return lowered._replace(schedule=lowered.schedule._replace(stages=stages))


def a_size(choose: Chooser, lowered: Lowered) -> Lowered | None:
    """The arena is smaller, or a launch goes through less of an axis."""
    schedule = lowered.schedule
    if not choose.integers(4) and schedule.arena_bytes:
        return lowered._replace(schedule=schedule._replace(arena_bytes=schedule.arena_bytes - 64 * int(choose.integers(1, 4))))
    return _with_call(choose, lowered, _shorter)


def an_access(choose: Chooser, lowered: Lowered) -> Lowered | None:
    """A launch writes to other elements."""
    return _with_call(choose, lowered, _astray)


def a_stage(choose: Chooser, lowered: Lowered) -> Lowered | None:
    """Two calls run side by side that did not."""
    stages = [*lowered.schedule.stages]
    alike = [n for n in range(len(stages) - 1) if isinstance(stages[n][0], KernelCall)
             and isinstance(stages[n + 1][0], KernelCall) and stages[n][0].kernel.text == stages[n + 1][0].kernel.text]
    number = _one_of(choose, alike)
    if number is None:
        return None
    stages[number : number + 2] = [[*stages[number], *stages[number + 1]]]
    return lowered._replace(schedule=lowered.schedule._replace(stages=stages))


def _with_call(choose: Chooser, lowered: Lowered, change: Callable) -> Lowered | None:
    stages = [[*stage] for stage in lowered.schedule.stages]
    stage = stages[choose.integers(len(stages))]
    at = int(choose.integers(len(stage)))
    call = stage[at]
    if isinstance(call, Loop):
        inside = int(choose.integers(len(call.calls)))
        changed = change(choose, call.calls[inside])
        stage[at] = call._replace(calls=(*call.calls[:inside], changed, *call.calls[inside + 1 :]))
    elif isinstance(call, Product) and call.epilogue and choose.integers(2):
        changed = change(choose, call.epilogue[0])
        stage[at] = call._replace(epilogue=(changed, *call.epilogue[1:]))
    else:
        changed = stage[at] = change(choose, call)
    return None if changed is None else lowered._replace(schedule=lowered.schedule._replace(stages=stages))


def _shorter(choose: Chooser, call):
    if isinstance(call, KernelCall):
        axes = [a for a, extent in enumerate(call.extents) if extent > 1 and a not in call.kernel.unrolled
                and not call.kernel.axes[a][1]]
        axis = _one_of(choose, axes)
        if axis is None:
            return None
        words = [*call.kernel.words]
        number = call.kernel.axes[axis][0]
        words[number] = words[number]._replace(value=words[number].value - 1)
        extents = tuple(extent - (a == axis) for a, extent in enumerate(call.extents))
        return call._replace(kernel=call.kernel.filled(words), extents=extents)
    if not isinstance(call, Product) or not call.is_plain or call.extents[0] == 1:
        return None
    return call.resized("m", call.extents[0] - 1)


def _astray(choose: Chooser, call):
    if isinstance(call, KernelCall):
        stores = [i for i in call.kernel.instructions if i.name in ("store", "scan", "scatter")]
        access = stores[choose.integers(len(stores))].access
        number = _one_of(choose, [access.pointer, *[int(s[1:]) for s in access.strides if isinstance(s, str)]])
        words = [*call.kernel.words]
        word, step = words[number], int(_one_of(choose, [-1, 1, 2]))
        words[number] = (word._replace(extra=word.extra + step * access.dtype.itemsize) if word.kind == "pointer"
                         else word._replace(value=word.value + step))
        return call._replace(kernel=call.kernel.filled(words))
    if not isinstance(call, Product):
        return None
    at = call.c.layout
    return call._replace(c=call.c._replace(layout=at._replace(offset=at.offset + int(_one_of(choose, [-1, 1, 2])))))


MISTAKES: list[Mistake] = [a_donation, an_offset, a_home, an_order, a_size, an_access, a_stage]
