"""Messages between two ranks; like collectives they stay in program order.

The primitive is an exchange: each rank sends the other its data, possibly none. The gradient is the reverse exchange.
"""

from __future__ import annotations

from genesis.ir.errors import ArgumentError
from genesis.ir.graph import Value
from genesis.ops.collective import add_node, checked_group, named, reference, row_of, sent_back
from genesis.ops.reduction import reduce_value
from genesis.ops.registry import primitive
from genesis.ops.views import reshape_value, slice_value
from genesis.runtime.groups import GROUPS

# Backward, the gradient of what was received is sent, and that of what was sent is received.
primitive("exchange", "collective", grad=sent_back("exchange"), reference=reference)


# ---- operations ----
@row_of("send_to")
def send_to(input: Value, dst: int = 0, differentiable: bool = False, group: int = 0) -> Value:
    """Zero, once rank `dst` has `input`. The gradient of `input` is received from there; the zero's gradient is ignored."""
    gone = _exchange("send", input, dst, (input.node.numel, 0), (named(input), "nothing"), differentiable, group)
    return reduce_value("sum", gone, (0,))


@row_of("receive_from")
def receive_from(input: Value, src: int = 0, differentiable: bool = False, group: int = 0) -> Value:
    """Receive from rank `src` a tensor like `input`. Its gradient is sent to `src`; that of `input` is zeros."""
    count = input.node.numel
    seen = slice_value(reshape_value(input, (count,)), 0, 0, 1) if count else input
    came = _exchange("recv", seen, src, (0, count), ("nothing", named(input)), differentiable, group)
    return reshape_value(came, input.shape)


@row_of("exchange_with")
def exchange_with(input: Value, peer: int = 0, differentiable: bool = False, group: int = 0) -> Value:
    """Exchange `input` with rank `peer` for a tensor of the same shape and dtype. Gradients are exchanged in turn."""
    count, both = input.node.numel, (named(input),) * 2
    return reshape_value(_exchange("sendrecv", input, peer, (count, count), both, differentiable, group), input.shape)


def _exchange(
    op: str, x: Value, peer: int, counts: tuple[int, int], named: tuple[str, str], differentiable: bool, group: int
) -> Value:
    """The flat values that rank `peer` sends in exchange for `x`, given the counts and dtypes of both."""
    own = checked_group(op, group, peer).rank
    if peer == own:
        raise ArgumentError(f"{op}: rank {peer} is this one; want another one of the group's {GROUPS[group].size} ranks")
    there, back = (named if own < peer else named[::-1])
    low, high = sorted((own, peer))
    said = f"{low} to {high}: {there}, {high} to {low}: {back}" + ", with gradients" * differentiable
    return add_node("exchange", x, group, counts[1], said, counts[:1], counts[1:], "", peer)
