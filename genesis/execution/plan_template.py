"""Plan templates: plans of symbolic sizes, filled in for programs that differ from earlier ones in sizes alone.

Programs of ever new sizes, as of graphs or texts, have few *skeletons*: nodes without their integers. Once some programs of a
skeleton were planned, the next one is planned for symbolic sizes: integers that have differed are inputs of the template, or
follow from others as in all these examples. A later program is compared with that, and guards make sure that planning it would
take the same steps (`ir/symbolic_sizes.py`): so what is filled in is, word by word, the plan that would be made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from operator import add, mul, sub
from typing import Any, NamedTuple

from genesis.codegen.segment import OwnedMemory
from genesis.ir.annotations import Key
from genesis.ir.graph import Node
from genesis.ir.skeletons import Numbers, node_with_numbers, numbers_of
from genesis.ir.symbolic_sizes import NotSymbolicError, Symbols
from genesis.lower.allocate import Arena
from genesis.lower.stored import is_built_in
from genesis.runtime.groups import GROUPS
from genesis.runtime.uninterrupted import is_of_handler, uninterrupted
from genesis.tracing.trace import Trace

EXAMPLES = 3  # programs of a skeleton that are planned by themselves
COST = 3  # plans that one takes as long as to make and fill in a template
AHEAD = 2  # templates of a skeleton that are made before any has paid; of all, those of so many nodes:
NODES_AHEAD = 1200
MOST = 16  # templates of a skeleton, and
SKELETONS = 256  # skeletons that are remembered
FACTORS = 16  # inputs of a template whose products and sums other numbers may be
LITERALS = range(-1, 3)  # keys of tables of the passes

Template = Callable[[Sequence[Node], Numbers], Any]  # the plan of a graph with such numbers, or None


class Skeleton:
    """What is known of programs that differ in their numbers alone."""

    __slots__ = ("examples", "filled", "made", "templates")

    def __init__(self) -> None:
        self.examples: list[Numbers] = []
        self.templates: list[Template] = []  # the latest one first
        self.made = self.filled = 0


_skeletons: OrderedDict[Key, Skeleton] = OrderedDict()
_affordable = [NODES_AHEAD]  # nodes of templates that fillings have paid


class Program(NamedTuple):
    """A program as a skeleton with numbers."""

    skeleton: Skeleton
    nodes: Sequence[Node]
    numbers: Numbers

    def filled(self) -> Any:
        """The plan by an earlier template; None if none fits."""
        known = self.skeleton
        for template in known.templates:
            plan = template(self.nodes, self.numbers)
            if plan is not None:
                known.filled += 1
                _affordable[0] += len(self.nodes) // COST
                known.templates = [template, *[other for other in known.templates if other is not template]]
                return plan
        return None

    def planned(self, plan: Callable[[Sequence[Node]], Any]) -> Any:
        """The plan that `plan` makes of nodes, by way of a new template if that is likely to pay."""
        known = self.skeleton
        examples, known.examples = known.examples, [*known.examples[-EXAMPLES + 1 :], self.numbers]
        if len(examples) == EXAMPLES and known.made < AHEAD + known.filled // COST and _affordable[0] >= len(self.nodes):
            known.made += 1
            _affordable[0] -= len(self.nodes)
            template = uninterrupted(_template, self.nodes, [*examples, self.numbers], plan)
            if template is not None:
                known.templates = [template, *known.templates[: MOST - 1]]
                return template(self.nodes, self.numbers) or plan(self.nodes)
        return plan(self.nodes)


def program_of(trace: Trace, key: Key) -> Program | None:
    """What is to be planned under `key` of a trace; None where no template is made."""
    family = trace.step.family
    if trace.device.type != "cpu" or GROUPS or family is None:
        return None
    described = key, family, tuple([number.__class__ for number in trace.scalars])
    skeleton = _skeletons.setdefault(described, Skeleton())
    _skeletons.move_to_end(described)
    if len(_skeletons) > SKELETONS:
        _skeletons.popitem(last=False)
    return Program(skeleton, trace.nodes, numbers_of(trace.nodes))


def _template(nodes: Sequence[Node], examples: Sequence[Numbers], plan: Callable[[Sequence[Node]], Any]) -> Template | None:
    """The template for the last of the examples; None if there is none, as where a library takes no symbolic sizes."""
    try:
        return _filling(nodes, examples, plan) if is_built_in(nodes) else None
    except Exception:  # planning without symbols raises what is an error
        return None


def _filling(nodes: Sequence[Node], examples: Sequence[Numbers], plan: Callable[[Sequence[Node]], Any]) -> Template:
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
        """The plan of a graph with these numbers; None if planning it might take other steps."""
        memory = OwnedMemory()
        try:
            found = fill(numbers, Arena(), memory)
        except Exception as problem:  # what passes no guard may have no value, as a quotient by zero
            if is_of_handler(problem):
                raise
            return None
        if found is None:
            return None
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
    """An expression of the inputs that has these values in all examples; None if there is none of a few forms."""
    sizes = [each for each in inputs if each[0][0].__class__ is int]
    pairs = [(x, y) for n, x in enumerate(sizes[:FACTORS]) for y in sizes[n:FACTORS]] if values[0].__class__ is int else []
    joined = [([*map(join, a, b)], join(x, y)) for join in (mul, add) for (a, x), (b, y) in pairs]
    for of, form in [*sizes, *joined]:
        by = values[0] / of[0]
        if by >= 1 and by == int(by) and all([value == by * one for value, one in zip(values, of, strict=True)]):
            return form * (int(by) if values[0].__class__ is int else by)
    for of, form in sizes if values[0].__class__ is int else ():
        if len({*map(sub, values, of)}) == 1:
            return form + (values[0] - of[0])
    return None
