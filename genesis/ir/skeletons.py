"""Skeletons: what describes nodes and keys but for their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

from genesis.ir.annotations import Key
from genesis.ir.graph import Node
from genesis.ir.symbolic_sizes import Real, Size

Numbers = list[Any]  # integers, and numbers in floating point
FIXED = frozenset(["body"])  # attributes without numbers of the skeleton: a step of a loop over time is planned apart


def described(nodes: Sequence[Node], numbers: Numbers) -> Iterator[Key]:
    """What describes nodes but for their numbers, which are appended to `numbers`."""
    for node in nodes:
        yield node.op, node.inputs, node.dtype, node.differentiable, len(node.shape)
        numbers += node.shape
        for name, value in node.attrs.items():
            yield name
            yield value if name in FIXED else _described(value, numbers)


def is_number(value: Any) -> bool:
    """Whether a part of an attribute is a number of the skeleton. NaN and -0.0 are not: they do not differ as numbers do."""
    kind = value.__class__
    return kind is int or (kind is float and 0 < abs(value) < inf) or kind is Size or kind is Real


def _described(value: Any, numbers: Numbers) -> Key:
    kind = value.__class__
    if is_number(value):
        numbers.append(value)
        return kind
    if kind is tuple:
        return tuple([_described(part, numbers) for part in value])
    return (kind, repr(value)) if isinstance(value, float | complex) else (kind, value)


def node_with_numbers(node: Node, number: Callable[[str, Any], Any]) -> Node:
    """A node with `number(text, value)` in place of its numbers, which `text` reads of a node, in the order of `described`."""
    shape = tuple([number(f".shape[{axis}]", extent) for axis, extent in enumerate(node.shape)])
    attrs = {name: value if name in FIXED else _with_numbers(value, number, f".attrs[{name!r}]")
             for name, value in node.attrs.items()}
    return Node(node.op, node.inputs, attrs, shape, node.dtype, node.differentiable, node.origin)


def _with_numbers(value: Any, number: Callable[[str, Any], Any], text: str) -> Any:
    if value.__class__ is tuple:
        return tuple([_with_numbers(part, number, f"{text}[{k}]") for k, part in enumerate(value)])
    return number(text, value) if is_number(value) else value
