"""Derivations: what a tensor is derived from, the leaves at their ends, and all leaves there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor, gradient_holders
from genesis.tracing.trace import Array, Trace

__all__ = ["derivation", "leaves_of", "zero_grad"]


def derivation(arrays: Iterable[Array], until: Collection[tuple[Trace | None, int]] = ()) -> dict[Trace, set[int]]:
    """The positions, trace by trace, of the values that `arrays` are derived from, but for those `until` and beyond."""
    reached: dict[Trace, set[int]] = {}
    waiting = [(array.trace, array.index) for array in arrays if array.node.differentiable]
    while waiting:
        trace, index = place = waiting.pop()
        if trace is None or place in until or index in reached.setdefault(trace, set()):
            continue
        reached[trace].add(index)
        origin = trace.input_at.get(index)
        if origin is not None:
            waiting.append((origin.trace, origin.index))
        waiting += [(trace, i) for i in trace.nodes[index].inputs if trace.nodes[i].differentiable]
    return reached


def leaves_of(tensor: Tensor) -> list[Tensor]:
    """The leaves that `backward` from `tensor` would reach, in the order of their first use."""
    uses = [
        (trace.number, index, trace.variables[index])
        for trace, reached in derivation([array_of(tensor)]).items() for index in reached if index in trace.variables
    ]
    return list({id(leaf): leaf for *_, leaf in sorted(uses, key=lambda use: use[:2])}.values())


def zero_grad(set_to_none: bool = True) -> None:
    """Drop the accumulated gradient of every leaf tensor there is: `.grad` becomes None, or zeros.

    >>> import genesis
    >>> x = genesis.tensor(2.0, requires_grad=True)
    >>> (x * x).backward()
    >>> genesis.zero_grad()
    >>> print(x.grad)
    None
    """
    for tensor in gradient_holders():
        if tensor.is_leaf:
            tensor.zero_grad(set_to_none)
