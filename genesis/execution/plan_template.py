"""Plan templates: plans of symbolic sizes, filled in for programs that differ from earlier ones in sizes alone.

Programs of ever new sizes, as of graphs or texts, have few *skeletons*: nodes without their integers. Once some programs of a
skeleton were planned, the next one is planned for symbolic sizes: integers that have differed are inputs of the template, or
follow from others as in all these examples. A later program is compared with that, and guards make sure that planning it would
take the same steps (`ir/symbolic_sizes.py`): so what is filled in is, word by word, the plan that would be made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import chain
from operator import add, mul
from typing import Any, NamedTuple

from genesis.codegen.segment import OwnedMemory
from genesis.ir.annotations import Key
from genesis.ir.graph import Node
from genesis.ir.skeletons import Numbers, node_with_numbers
from genesis.ir.symbolic_sizes import NotSymbolicError, Symbols
from genesis.lower.allocate import Arena
from genesis.lower.stored import is_built_in
from genesis.runtime.groups import GROUPS
from genesis.tracing.families import Known
from genesis.tracing.trace import Trace

SKELETONS = 256  # that are remembered
FACTORS = 16  # inputs of a template whose products and sums other numbers may be
LITERALS = range(-1, 3)  # keys of tables of the passes

_skeletons: OrderedDict[Key, Known] = OrderedDict()


class Program(NamedTuple):
    """A program as what is known of its skeleton, and numbers."""

    known: Known
    nodes: Sequence[Node]
    numbers: Numbers

    def filled(self) -> Any:
        """The plan by an earlier template; None if none fits."""
        return self.known.fill(self.nodes, self.numbers)

    def planned(self, plan: Callable[[Sequence[Node]], Any]) -> Any:
        """The plan that `plan` makes of nodes, by way of a new template if that is likely to pay."""
        made = None
        if self.known.is_due(self.numbers):
            self.known.make(_template, self.nodes, plan)
            made = self.filled()
        return plan(self.nodes) if made is None else made


def program_of(trace: Trace, key: Key) -> Program | None:
    """What is to be planned under `key` of a trace; None where no template is made."""
    family = trace.step.family
    if trace.device.type != "cpu" or GROUPS or family is None:
        return None
    described = family, key, *[number.__class__ for number in trace.scalars]
    known = _skeletons.setdefault(described, Known())
    _skeletons.move_to_end(described)
    if len(_skeletons) > SKELETONS:
        _skeletons.popitem(last=False)
    parts, before = [], trace.step.numbers
    while before is not None:
        before, numbers = before
        parts.append(numbers)
    return Program(known, trace.nodes, [*chain.from_iterable(reversed(parts))])


def _template(examples: Sequence[Numbers], nodes: Sequence[Node], plan: Callable[[Sequence[Node]], Any]) -> Callable[..., Any]:
    """The function of nodes and numbers that returns their plan, by way of the last of the examples."""
    if not is_built_in(nodes):
        raise NotSymbolicError("an operation of a user's own")
    symbols = Symbols()
    numbers = _unified(symbols, examples)
    if not symbols.values:
        raise NotSymbolicError("nothing differs")
    following = iter(numbers)
    symbolic = plan([node_with_numbers(node, lambda text, number: next(following)) for node in nodes])
    if any([segment.host for segment in symbolic.segments]):
        raise NotSymbolicError("a call into Python, which reads the lowered graph")
    varying = [segment.program.varying for segment in symbolic.segments]
    result = symbols.text([varying, symbolic.outputs, symbolic.sizes, symbolic.arena_bytes])
    check = f"numbers == {symbols.text(numbers)}"
    known = [*LITERALS, *[number for number in numbers if number.__class__ in (int, float)]]
    fill = symbols.compiled("numbers", "arena", "memory", beside=known, check=check, result=result)
    symbolic.forget_graph()

    def filled(nodes: Sequence[Node], numbers: Numbers) -> Any:
        """The plan of a graph with these numbers; the number of a guard if planning it might take other steps."""
        memory = OwnedMemory()
        found = fill(numbers, Arena(), memory)
        if found.__class__ is int:
            return found
        varying, *sizes = found
        segments = [segment._replace(program=segment.program.filled(values, memory.keep))
                    for segment, values in zip(symbolic.segments, varying, strict=True)]
        return symbolic.filled(nodes, segments, *sizes)

    return filled


def _unified(symbols: Symbols, examples: Sequence[Numbers]) -> Numbers:
    """The numbers of the last example, those that differ among the examples as expressions of few: the least come first."""
    columns = [(values[0].__class__, values) for values in zip(*examples, strict=True)]
    places = {column: place for place, column in reversed([*enumerate(columns)])}
    known: dict[Key, Any] = {}
    inputs: list[tuple[tuple[Any, ...], Any]] = []
    for column in sorted(places, key=lambda column: (column[0] is float, [*map(abs, column[1])])):
        _, values = column
        known[column] = values[-1] if len({*values}) == 1 else _expression(values, inputs)
        if known[column] is None:
            known[column] = symbols.input(f"numbers[{places[column]}]", values[-1], *values)
            inputs.append((values, known[column]))
    return [known[column] for column in columns]


def _expression(values: tuple[Any, ...], inputs: Sequence[tuple[tuple[Any, ...], Any]]) -> Any:
    """A multiple of an input, or of a product or a sum of two, perhaps with a number added, that has these values in all
    examples; None if there is none.
    """
    sizes = [each for each in inputs if each[0][0].__class__ is int]
    pairs = [(x, y) for n, x in enumerate(sizes[:FACTORS]) for y in sizes[n:FACTORS]] if values[0].__class__ is int else []
    for of, form in [*sizes, *[([*map(join, a, b)], join(x, y)) for join in (mul, add) for (a, x), (b, y) in pairs]]:
        least, most = of.index(min(of)), of.index(max(of))
        slope, rest = divmod(values[most] - values[least], of[most] - of[least]) if least != most else (0, 0)
        start = values[0] - slope * of[0]
        if slope and not rest and all([value == slope * one + start for value, one in zip(values, of, strict=True)]):
            return form * slope + start
    return None
