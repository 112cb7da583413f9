"""Index maps pulled through layouts say what counting says."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from genesis.ir.shapes import contiguous_strides, numel
from genesis.lower.index_map import IndexMap, SplitAxis, Unmappable, pull, split_map


def elements(at, extents):
    """The element at each point of a loop nest, outermost axis first."""
    points = itertools.product(*map(range, extents))
    return [at.offset + sum(i * s for i, s in zip(point, at.strides, strict=True)) for point in points]


def through(element, shape, strides, offset):
    """Where a layout puts row-major element `element` of `shape`."""
    digits = [element // row % extent for row, extent in zip(contiguous_strides(shape), shape, strict=True)]
    return offset + sum(d * s for d, s in zip(digits, strides, strict=True))


def pulled(at, extents, layout):
    """The map through a layout, after splitting what has to be split; None where there is none."""
    extents = list(extents)
    while True:
        try:
            return pull(at, extents, *layout), extents
        except SplitAxis as split:
            at = split_map(at, split.axis, split.inner)
            extents[split.axis : split.axis + 1] = [extents[split.axis] // split.inner, split.inner]
        except Unmappable:
            return None, extents


shapes = st.lists(st.sampled_from([1, 2, 3, 4, 6]), max_size=4).map(tuple)


@st.composite
def layouts(draw):
    shape = draw(shapes)
    order = draw(st.permutations(range(len(shape))))
    rows = contiguous_strides(tuple(shape[o] for o in order))
    strides = [0] * len(shape)
    for axis, row in zip(order, rows, strict=True):
        strides[axis] = row * draw(st.sampled_from([1, 1, 1, 2, -1, 0]))
    return shape, tuple(strides), draw(st.integers(0, 5))


@given(layouts())
def test_a_row_major_walk_of_a_view_can_always_be_split_until_it_fits(layout):
    shape, strides, offset = layout
    at, extents = pulled(IndexMap(0, (1,)), [numel(shape)], layout)
    assert at is not None
    assert elements(at, extents) == [through(e, shape, strides, offset) for e in range(numel(shape))]


@given(layouts(), st.data())
def test_a_map_that_pull_gives_is_right(layout, data):
    shape, strides, offset = layout
    walk, walk_strides, walk_offset = data.draw(layouts())
    inside = IndexMap(walk_offset, walk_strides)
    places = elements(inside, walk)
    if not all(0 <= place < numel(shape) for place in places):
        return
    at, extents = pulled(inside, walk, layout)
    if at is not None:
        assert elements(at, extents) == [through(e, shape, strides, offset) for e in places]
