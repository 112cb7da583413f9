"""Families: paths of the trie that differ in numbers alone. Their steps are filled in from templates.

What a call or a derivation adds to a path is a function of its key and of earlier nodes. Where a step's form, its key without
numbers, is new again and again, the function is run on symbolic sizes: the numbers of the key, and of each node that it
reads. Guards make sure that for others it would take the same steps (`ir/symbolic_sizes.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from genesis.ir.annotations import Key
from genesis.ir.graph import Graph, Node, Value
from genesis.ir.skeletons import Numbers, described, node_with_numbers
from genesis.ir.symbolic_sizes import LEAST, NotSymbolicError, Size, Symbols
from genesis.runtime.uninterrupted import is_of_handler, uninterrupted

EXAMPLES = 4  # programs or steps of a form that are made by themselves before a template is, of these
OFTEN = 2  # templates of a form for which one example more must fail the same guards before the next, which takes as long as
# three plans: those that never fit become rare
MOST = 16  # templates of a form
LITERALS = range(1 - LEAST, LEAST)  # numbers that are part of forms

Build = Callable[..., Any]  # (graph, key, *sources): adds a step's nodes, and returns its results


class Form(NamedTuple):
    """A step's key but for its numbers, those, and the graphs that its nodes follow from besides the one that it belongs to. No
    numbers (None) if its key determines the step, after all paths of a family."""

    key: Key
    numbers: Numbers | None = None
    sources: Sequence[Sequence[Node]] = ()


class Step(NamedTuple):
    """What a step adds: its nodes, the positions of its results, the family of the paths with it, and the nodes' numbers."""

    nodes: Sequence[Node]
    result: Any
    family: Family | None = None
    numbers: Sequence[Any] = ()


class Known:
    """What is known of the steps, or the plans, of a form: the numbers of the latest examples, templates, and how many examples
    have failed which guards of these since the last was made."""

    __slots__ = ("_failed", "_failing", "examples", "made", "templates")

    def __init__(self) -> None:
        self.examples: tuple[Numbers, ...] = ()
        self.templates: tuple[Callable[..., Any], ...] = ()  # the latest one that fitted first
        self.made = 0
        self._failing = 0  # a hash of the guards that the latest example failed
        self._failed: Counter[int] = Counter()

    def fill(self, *given: Any) -> Any:
        """What the first template that fits returns; None if none does."""
        failed: list[Key] = []
        for place, template in enumerate(self.templates):
            try:
                found = template(*given)
            except Exception as problem:  # what passes no guard may have no value, as a quotient by zero
                if is_of_handler(problem):
                    raise
                found = -1
            if found.__class__ is not int:
                if place:
                    self.templates = (template, *[other for other in self.templates if other is not template])
                return found
            failed.append((template, found))
        self._failing = hash(frozenset(failed))
        return None

    def is_due(self, numbers: Numbers) -> bool:
        """Note one more example; returns whether a template is likely to pay: not for sizes that coincide by chance, which fail
        guards that others seldom fail."""
        self.examples = (*self.examples[1 - EXAMPLES :], numbers)
        self._failed[self._failing] += 1
        return len(self.examples) == EXAMPLES and self._failed[self._failing] > (self.made + 1) // OFTEN

    def make(self, template: Callable[..., Any], *given: Any) -> None:
        """Add the template that a function makes of the examples, unless it fails, as where a rule takes no symbolic sizes."""
        self.made += 1
        made = uninterrupted(_made, template, self.examples, *given)
        self.templates = (*made, *self.templates[: MOST - 1])
        self._failed.clear()


def _made(template: Callable[..., Any], *given: Any) -> list[Any]:
    try:
        return [template(*given)]
    except Exception:  # an error of the program's is raised where no symbols are
        return []


class Family:
    """Paths that differ in numbers alone."""

    __slots__ = ("_following", "_known")

    def __init__(self) -> None:
        self._following: dict[Key, Family] = {}
        self._known: dict[Key, Known | Step] = {}

    def following(self, nodes: Sequence[Node], result: Any) -> Step:
        """The step that adds nodes: of no family if an attribute has no hash."""
        numbers: Numbers = []
        try:
            return Step(nodes, result, self._following.setdefault((*described(nodes, numbers),), Family()), numbers)
        except TypeError:
            return Step(nodes, result)

    def filled(self, form: Form, nodes: Sequence[Node]) -> Step | None:
        """The step of a form after `nodes`, by a template; None if none fits."""
        known = self._known.get(form.key)
        return known.fill(form.numbers, nodes, *form.sources) if known.__class__ is Known else known  # type: ignore

    def note(self, form: Form, key: Any, nodes: Sequence[Node], step: Step, build: Build, grad: bool) -> None:
        """Note a step that no template filled in; make one of it where that is likely to pay."""
        known: Any = self._known.setdefault(form.key, step if form.numbers is None else Known())
        if form.numbers is not None and known.is_due(form.numbers) and step.family is not None:
            known.make(_template, form, key, nodes, step, build, grad)


def _template(
    examples: Sequence[Numbers], form: Form, key: Any, nodes: Sequence[Node], step: Step, build: Build, grad: bool
) -> Callable[..., Any]:
    """The function of the numbers and graphs of a form that returns its step, as it does for the last example."""
    symbols = Symbols()
    inputs = _Inputs(symbols)
    path, *sources = graphs = [_Path(inputs, f"graph{k}", given) for k, given in enumerate((nodes, *form.sources))]
    numbers = iter([inputs.number(f"numbers[{k}]", values[-1], len({*values}) > 1)
                    for k, values in enumerate(zip(*examples, strict=True))])
    given = _with_numbers(key, lambda number: next(numbers)) if form.numbers else key
    result = positions_of(build(Graph(path, grad), given, *sources))  # type: ignore[arg-type]
    others: Numbers = []
    tuple(described(path.added, others))
    added = [f"{symbols.name(Node)}{symbols.text(_facts(node))}" for node in path.added]
    rest = symbols.name(result), symbols.name(step.family), symbols.text(others)
    names, beside = [graph.name for graph in graphs], [*LITERALS, *[n for n in others if n.__class__ in (int, float)]]
    text = f"{symbols.name(Step)}([{', '.join(added)}], {', '.join(rest)})"
    fill = symbols.compiled("numbers", *names, beside=beside, is_checked=True, result=text)
    found = fill(form.numbers, nodes, *form.sources)
    same = [(made.result, made.numbers, [repr(_facts(node)) for node in made.nodes]) for made in (found, step)]
    if same[0] != same[1]:
        raise NotSymbolicError("a step of other nodes")
    return fill


def _facts(node: Node) -> Key:
    return node.op, node.inputs, node.attrs, node.shape, node.dtype, node.differentiable, node.origin


class _Inputs:
    """The inputs of a template: equal numbers of the example are one symbol, and must be equal."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._known: dict[Key, Any] = {}

    def number(self, text: str, value: Any, varies: bool = True) -> Any:
        """The symbol of a number that `text` reads; small integers, and what has not varied, are themselves."""
        key = value.__class__, value
        if not varies or (value.__class__ is int and value in LITERALS):
            self.symbols.ask(f"{text} == {value}", True)
            return value
        if key not in self._known:
            self._known[key] = self.symbols.input(text, value)
        else:
            self.symbols.ask(f"{text} == {self.symbols.text(self._known[key])}", True)
        return self._known[key]


class _Path(Sequence[Node]):
    """A path's nodes, symbolic where they are read, and those that a step adds."""

    def __init__(self, inputs: _Inputs, name: str, nodes: Sequence[Node]) -> None:
        self.name, self.added = name, list[Node]()
        self._inputs, self._nodes, self._read = inputs, nodes, dict[int, Node]()

    def __len__(self) -> int:
        return len(self._nodes) + len(self.added)

    def __getitem__(self, index: Any) -> Any:
        if index.__class__ is slice:
            return [self[k] for k in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index >= len(self._nodes):
            return self.added[index - len(self._nodes)]
        if index not in self._read:
            self._read[index] = node_with_numbers(
                self._nodes[index], lambda text, number: self._inputs.number(f"{self.name}[{index}]{text}", number))
        return self._read[index]

    def append(self, node: Node) -> None:
        self.added.append(node)


# ---- keys of calls ----
def form_of_call(key: Any) -> Form:
    """The form of a call's key: the numbers of its static arguments are its numbers, but for small ones."""
    numbers: Numbers = []

    def noted(number: int) -> Key:
        numbers.append(number)
        return Size

    return Form(_with_numbers(key, noted), numbers)


def _with_numbers(key: Any, number: Callable[[int], Any]) -> Key:
    """A call's key with what `number` returns for the integers in it that are neither small nor positions."""
    return (*key[:2], *[_member(token, number, True) for token in key[2:]])


def _member(part: Any, number: Callable[[int], Any], is_position: bool) -> Any:
    if part.__class__ is int:
        return part if is_position or part in LITERALS else number(part)
    if not isinstance(part, tuple):
        return part
    of_tensors = len(part) > 0 and part[0].__class__ is str  # a list of some, or one by a name
    return _like(part, [_member(member, number, of_tensors) for member in part])


def positions_of(result: Any) -> Any:
    """Values as positions, in the tuple (or named tuple) they came in."""
    if isinstance(result, tuple | list):
        return _like(result, [*map(positions_of, result)])
    return result.index if isinstance(result, Value) else result


def _like(whole: Any, members: Sequence[Any]) -> Any:
    return type(whole)(*members) if hasattr(whole, "_fields") else type(whole)(members)
