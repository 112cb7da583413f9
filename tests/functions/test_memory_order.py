"""The strides that PyTorch's tensors would have follow from a trace's path and its inputs, however often it is taken."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis.functions.memory_order import strides_of

CALLS = {
    "relu": lambda lib, x, y: lib.relu(x), "add": lambda lib, x, y: x + y, "transpose": lambda lib, x, y: x.transpose(0, 1),
    "permute": lambda lib, x, y: x.permute(1, 2, 0), "rows": lambda lib, x, y: x[1:], "flip": lambda lib, x, y: x.flip(0),
    "cat": lambda lib, x, y: lib.cat([x, x], 0), "sum": lambda lib, x, y: x + x.sum(1, keepdim=True),
}


def inputs(lib, axes, other, extents):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([extents[axis] for axis in order], np.float32) for order in (axes, other)]
    return [lib.tensor(array).permute(*np.argsort(order).tolist()) for array, order in zip(arrays, (axes, other), strict=True)]


@settings(max_examples=40, deadline=None)
@given(
    names=st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=5), extents=st.sampled_from([(3, 3, 3), (2, 2, 1)]),
    orders=st.lists(st.tuples(st.permutations(range(3)), st.permutations(range(3))), min_size=2, max_size=4),
)
def test_strides_of_a_path_that_is_taken_again_with_inputs_in_other_orders(names, extents, orders):
    for axes, other in orders * 2:
        found = []
        for lib in (genesis, torch):
            x, y = inputs(lib, axes, other, extents)
            strides = []
            for name in names:
                if x.shape[0] < 2 or (name == "add" and x.shape != y.shape):
                    continue
                x = CALLS[name](lib, x, y)
                found_here = strides_of(x) if lib is genesis else x.stride()
                strides.append([stride for stride, extent in zip(found_here, x.shape, strict=True) if extent > 1])
            found.append(strides)
        assert found[0] == found[1], names


@pytest.mark.parametrize("channels_last", [False, True, False])
def test_images_that_keep_channels_last_through_a_known_path(channels_last):
    found = []
    for lib in (genesis, torch):
        x = lib.arange(2 * 3 * 6 * 6, dtype=lib.float32)
        x = x.reshape(2, 6, 6, 3).permute(0, 3, 1, 2) if channels_last else x.reshape(2, 3, 6, 6)
        y = lib.nn.functional.max_pool2d(lib.nn.functional.relu(x), 2)
        found.append(tuple(strides_of(y)) if lib is genesis else y.stride())
    assert found[0] == found[1]


def test_orders_outlast_the_ends_of_programs_that_always_differ():
    weight = genesis.ones(4, requires_grad=True)
    for size in range(2, 30):
        found = []
        for lib in (genesis, torch):
            x, k = lib.ones(size, 4).T, weight.detach() if lib is genesis else lib.ones(4)
            for _ in range(size % 5 + 2):
                x = lib.relu((x.T * k).T + 1)
            y = x.flip(0) * 2
            found.append([strides_of(each) if lib is genesis else each.stride() for each in (x, y, y.T)])
            y.sum().item()
        assert found[0] == found[1], size
