"""Optimizer update rules: written for one parameter, applied to all parameters of a group."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from itertools import repeat
from typing import NamedTuple

from genesis.ir.annotations import Key
from genesis.ir.dtypes import DType
from genesis.ir.graph import Node, Value
from genesis.ops.complex_primitives import complex_value, imag_value, real_value
from genesis.ops.registry import PRIMITIVES, Operation, cast, composite, widened

Scalar = Value | float  # a number that a schedule may change: an argument of the compiled program
Results = tuple[Value | None, ...]
Row = Sequence[Value | None]  # a parameter, its gradient and its state


def update_rule(rule: Callable[..., Results]) -> Operation:
    """Decorator: `rule` becomes the operation of its name, one step of an optimizer over all of a group's parameters.

    `rule` takes Values: a parameter, its gradient, and its state tensors (None if the settings do not use them); then numbers
    annotated `Scalar`, and static settings. It returns the new parameter and the new state tensors. It computes in the compute
    dtype; results are rounded to the parameter's dtype.

    The operation takes sequences instead of Values (empty for None) and returns all new parameters, then all new values of
    each kind. A step over any number of parameters is thus one call, which lowering fuses into a kernel per parameter. A
    complex parameter is updated as two real ones, its parts; its state is complex accordingly.
    """
    kinds = [parameter.annotation for parameter in inspect.signature(rule).parameters.values()]
    tensors = sum([kind.startswith("Value") for kind in kinds])

    @wraps(rule)
    def step(*arguments: Sequence[Value] | Scalar) -> tuple[Value, ...]:
        lists, settings = arguments[:tensors], arguments[tensors:]
        models: Sequence[Value] = lists[0]  # type: ignore[assignment]
        rows = zip(models, *[values or repeat(None) for values in lists[1:]], strict=False)  # type: ignore[call-overload]
        moved = _Rule(rule, settings)
        updates = [moved([v if v is None else widened(v) for v in row]) for row in rows]
        kinds = zip(*updates, strict=True)
        return tuple([cast(v, p.dtype) for kind in kinds for v, p in zip(kind, models, strict=True) if v is not None])

    numbers = [place for place, kind in enumerate(kinds) if kind == "Scalar"]
    return composite(rule.__name__, numbers, takes_complex=True, method=False, public=False)(step)


class _Made(NamedTuple):
    """What a rule made of a row: its results, and the range of the nodes that it added."""

    row: Row
    results: Results
    added: range


class _Rule:
    """A rule with its settings. Of rows of equal shapes it runs for the first: for the others its nodes are copied."""

    # A GPT of six layers has 77 parameters of 8 shapes: AdamW's rule adds 1,100 nodes, no longer 1,600.
    def __init__(self, rule: Callable[..., Results], settings: Sequence[object]) -> None:
        self._run = partial(_moved, rule, settings=settings)
        self._is_ours = rule.__module__.startswith("genesis.")  # others may do more than add nodes
        self._made: dict[Key, _Made] = {}

    def __call__(self, row: Row) -> Results:
        graph, key = next(value.graph for value in row if value is not None), _key_of(row)
        made = self._made.get(key)
        if made is not None:
            return _copied(made, row)
        start = len(graph)
        results = self._run(row)
        if self._is_ours and all([_depends_on_shapes(graph.nodes, node) for node in graph.nodes[start:]]):
            self._made[key] = _Made(row, results, range(start, len(graph)))
        return results


def _key_of(row: Row) -> Key:
    """What elementwise definitions see of Values: shape, dtype and derivation, which number it is, and which are one."""
    seen = [None if v is None else v.index for v in row]
    return tuple([
        None if v is None else (v.shape, v.dtype, v.node.differentiable, seen.index(v.index),
                                v.index if v.node.op in ("constant", "scalar") else None) for v in row])


def _depends_on_shapes(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a node is added for any inputs of these shapes and dtypes: an elementwise one, or a number at all elements."""
    if node.op == "view":
        return not nodes[node.inputs[0]].shape
    return node.op in ("constant", "scalar") or PRIMITIVES[node.op].kind == "elementwise"


def _copied(made: _Made, row: Row) -> Results:
    """What the rule makes of a row like the one before; nodes that depend on its numbers alone serve again."""
    graph = next(value.graph for value in row if value is not None)
    new_index = {then.index: now.index for then, now in zip(made.row, row, strict=True) if then is not None and now is not None}
    for index in made.added:
        node = graph.nodes[index]
        if any([i in new_index for i in node.inputs]):
            new_index[index] = len(graph)
            graph.nodes.append(node.renumbered(tuple([new_index.get(i, i) for i in node.inputs])))
    return tuple([v if v is None else graph.value(new_index.get(v.index, v.index)) for v in made.results])


def _moved(rule: Callable[..., Results], row: Row, settings: Sequence[object]) -> Results:
    """`rule` applied to a parameter, or to both parts of a complex one."""
    if row[0] is None or not row[0].dtype.is_complex:
        return rule(*row, *settings)
    x, y = [rule(*[v if v is None else part(v) for v in row], *settings) for part in (real_value, imag_value)]
    return tuple([None if a is None or b is None else complex_value(a, b) for a, b in zip(x, y, strict=True)])


def in_both_parts(number: float, dtype: DType) -> float | complex:
    """The initial value of a state, for both parts if the parameter is complex: it is updated as two real numbers."""
    return complex(number, number) if dtype.is_complex else number


def is_literal(x: Scalar, literal: float) -> bool:
    """True for the Python number `literal`, which a rule may simplify away."""
    return not isinstance(x, Value) and x == literal


def descent(parameter: Value, gradient: Value, weight_decay: Scalar, maximize: bool) -> Value:
    """The direction to descend: the gradient, negated if maximizing, plus `weight_decay` times the parameter."""
    direction = -gradient if maximize else gradient
    return direction if is_literal(weight_decay, 0) else direction + parameter * weight_decay


def average_of(average: Value, value: Value, kept: Scalar, fresh: Scalar) -> Value:
    """A running average: kept * average + fresh * value."""
    return average * kept + value * fresh


def shrunk(parameter: Value, kept: Scalar) -> Value:
    """The parameter after decoupled weight decay."""
    return parameter if is_literal(kept, 1) else parameter * kept
