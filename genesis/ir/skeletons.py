"""Skeletons: what describes nodes and keys but for their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

from genesis.ir.annotations import Key
from genesis.ir.graph import Node

Numbers = list[Any]  # integers, and numbers in floating point


def described(nodes: Sequence[Node], numbers: Numbers) -> Iterator[Key]:
    """What describes nodes but for their numbers, which are appended to `numbers`."""
    for node in nodes:
        yield node.op, node.inputs, node.dtype, node.differentiable, len(node.shape)
        numbers += node.shape
        for name, value in node.attrs.items():
            yield name
            yield _described(value, numbers)


def is_number(value: Any) -> bool:
    """Whether a part of an attribute is a number of the skeleton. NaN and -0.0 are not: they do not differ as numbers do."""
    return value.__class__ is int or (value.__class__ is float and 0 < abs(value) < inf)


def _described(value: Any, numbers: Numbers) -> Key:
    kind = value.__class__
    if is_number(value):
        numbers.append(value)
        return kind
    if kind is tuple:
        return tuple([_described(part, numbers) for part in value])
    return (kind, repr(value)) if isinstance(value, float | complex) else (kind, value)


def with_numbers(value: Any, number: Callable[[Any], Any]) -> Any:
    """A value of an attribute with what `number` returns for its numbers."""
    if is_number(value):
        return number(value)
    return tuple([with_numbers(part, number) for part in value]) if value.__class__ is tuple else value


def node_with_numbers(node: Node, number: Callable[[Any], Any]) -> Node:
    """A node with what `number` returns for the numbers of its shape and of its attributes, in this order."""
    shape = tuple(map(number, node.shape))
    attrs = {name: with_numbers(value, number) for name, value in node.attrs.items()}
    return Node(node.op, node.inputs, attrs, shape, node.dtype, node.differentiable, node.origin)
