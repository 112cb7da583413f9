"""Leaves: those that a tensor depends on, and all there are."""

from __future__ import annotations

from genesis.dispatch import array_of
from genesis.tensor import Tensor, gradient_holders
from genesis.trace import Trace

__all__ = ["leaves_of", "zero_grad"]


def leaves_of(tensor: Tensor) -> list[Tensor]:
    """The leaves that `backward` from `tensor` would reach, in the order of their first use."""
    array = array_of(tensor)
    pending: dict[Trace, set[int]] = {}
    if array.node.differentiable and array.trace is not None:
        pending[array.trace] = {array.index}
    found: list[tuple[float, int, Tensor]] = []
    while pending:
        trace = max(pending, key=lambda trace: trace.number)
        reached = pending.pop(trace)
        for index in range(max(reached), -1, -1):
            if index not in reached:
                continue
            origin = trace.input_at.get(index)
            if index in trace.variables:
                found.append((trace.number, index, trace.variables[index]))
            elif origin is not None and origin.trace is not None:
                pending.setdefault(origin.trace, set()).add(origin.index)
            else:
                reached.update(i for i in trace.nodes[index].inputs if trace.nodes[i].differentiable)
    return list({id(leaf): leaf for *_, leaf in sorted(found, key=lambda use: use[:2])}.values())


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
