"""A block of a value, computed alone, is the block of the whole value."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from genesis.ir.dtypes import float64
from genesis.ir.graph import Graph
from genesis.ops.correlation import block
from genesis.ops.layout import Layout, contiguous_layout
from genesis.ops.reference import evaluate_all
from genesis.ops.views import put_value, view_value


@st.composite
def layouts(draw, shape, steps=1):
    """A layout within `shape` that reaches no element twice: a block, every so manieth place, or any other way."""
    own = contiguous_layout(shape).strides
    at = []
    for extent in shape:
        start, step = draw(st.integers(0, extent - 1)), draw(st.integers(1, steps))
        at.append((start, step, draw(st.integers(1, (extent - 1 - start) // step + 1))))
    found = Layout(tuple(n for *_, n in at), tuple(s * o for (_, s, _), o in zip(at, own, strict=True)),
                   sum(b * o for (b, *_), o in zip(at, own, strict=True)))
    if steps > 1 and draw(st.booleans()):  # along the diagonal
        extent = min(shape)
        found = Layout((1,) * (len(shape) - 1) + (extent,), (*own[:-1], sum(own)), 0)
    return found


@settings(max_examples=100)
@given(st.data())
def test_block_of_what_was_put_somewhere(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple))
    graph, values = Graph(), {}
    random = np.random.default_rng(0)

    def given_value(extents):
        value = graph.add("input", (), extents, float64)
        values[value.index] = random.normal(size=extents)
        return value

    whole = given_value(shape) if data.draw(st.booleans()) else None
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(layouts(shape, steps=3))
        whole = put_value(whole, given_value(at.shape), at, shape)
    at = data.draw(layouts(shape))
    alone, read = block(whole, at), view_value(whole, at, "slice")
    found = evaluate_all(graph.nodes, [alone.index, read.index], values, [])
    np.testing.assert_array_equal(np.broadcast_to(found[alone.index], at.shape), np.broadcast_to(found[read.index], at.shape))
