"""`x[...]` against NumPy, reading and writing; aliasing of basic indices; errors."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import genesis
from tests.tolerances import assert_close

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)


def basic(shape):
    """A basic index: ints, slices with positive steps, an ellipsis, new axes."""
    return hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True).filter(_forward)


def _forward(index):
    parts = index if isinstance(index, tuple) else (index,)
    return all(not isinstance(part, slice) or part.step is None or part.step > 0 for part in parts)


@st.composite
def advanced(draw):
    """(shape, index) with integer arrays, slices and masks, and no int beside an array (there torch and NumPy differ)."""
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    index, axis, tensors = [], 0, 0
    while axis < len(shape):
        kind = draw(st.sampled_from(["array", "slice", "mask", "none"]))
        extent = shape[axis]
        if kind == "array":
            index.append(draw(hnp.arrays(np.int64, common, elements=st.integers(-extent, extent - 1))))
            tensors += 1
        elif kind == "mask" and not tensors:
            index.append(draw(hnp.arrays(np.bool_, (extent,))))
            return shape, (*index, ...)
        elif kind == "none":
            index.append(None)
            continue
        else:
            index.append(slice(draw(st.integers(0, extent)), None))
        axis += 1
    return shape, tuple(index)


def ramp(shape):
    return np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)


@given(SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), basic(shape))))
def test_basic_reading_is_numpys(case):
    shape, index = case
    x = ramp(shape)
    result = genesis.tensor(x)[index]
    assert result.shape == x[index].shape
    np.testing.assert_array_equal(result.numpy(), x[index])


@given(SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), basic(shape))))
def test_basic_writing_is_numpys_and_goes_through_views(case):
    shape, index = case
    x = ramp(shape)
    ours = genesis.tensor(x)
    alias = ours.reshape(-1)
    ours[index] = 99
    x[index] = 99
    np.testing.assert_array_equal(ours.numpy(), x)
    np.testing.assert_array_equal(alias.numpy(), x.reshape(-1))


@given(advanced())
def test_advanced_reading_is_numpys(case):
    shape, index = case
    x = ramp(shape)
    result = genesis.tensor(x)[index]
    np.testing.assert_array_equal(result.numpy(), x[index])
    tensors = tuple(genesis.tensor(part) if isinstance(part, np.ndarray) else part for part in index)
    np.testing.assert_array_equal(genesis.tensor(x)[tensors].numpy(), x[index])


@given(advanced(), st.booleans())
def test_advanced_writing_is_numpys(case, full):
    shape, index = case
    x = ramp(shape)
    ours = genesis.tensor(x)
    value = -1 - ramp(x[index].shape) * 0 if full else -5
    x[index] = value
    ours[index] = genesis.tensor(value) if full else value
    np.testing.assert_array_equal(ours.numpy(), x)


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4).flatmap(lambda s: hnp.arrays(np.bool_, s)))
def test_masks_read_and_write_as_numpys(mask):
    x = ramp(mask.shape)
    ours = genesis.tensor(x)
    np.testing.assert_array_equal(ours[genesis.tensor(mask)].numpy(), x[mask])
    x[mask] = -ramp((int(mask.sum()),))
    ours[mask] = genesis.tensor(-ramp((int(mask.sum()),)))
    np.testing.assert_array_equal(ours.numpy(), x)


def test_basic_indices_alias():
    x = genesis.zeros(3, 4)
    x[1][2] = 5
    row = x[1, 1:]
    row += 1
    assert x.tolist() == [[0] * 4, [0, 1, 6, 1], [0] * 4]


def test_lists_index_as_tensors_and_make_copies():
    x = genesis.arange(4)
    y = x[[0, -1]]
    y += 10
    assert (x.tolist(), y.tolist()) == ([0, 1, 2, 3], [10, 13])


def test_an_array_of_no_axes_is_an_int(by_references):
    x, mask = genesis.arange(24.0).reshape(4, 3, 2), genesis.tensor([True, False])
    one = np.array(1)
    assert x[one, :, mask].shape == (3, 1)  # as in PyTorch; NumPy moves the axis of an int beside a mask to the front
    part = x[:, one]
    part += 100
    np.testing.assert_array_equal(x[:, 1].numpy(), part.numpy())


def test_ellipses_at_the_end_are_nothing():
    for lib in (genesis, torch):
        x = lib.arange(24).reshape(2, 3, 4)
        assert x[..., ...].shape == (2, 3, 4) and x[..., 1, ..., ...].tolist() == x[:, :, 1].tolist()
        x[lib.tensor([1]), ..., ...] = 0
        assert x.sum() == 66
        with pytest.raises(IndexError):
            x[..., ..., 0]


def test_index_put_names_what_is_no_tensor():
    with pytest.raises(TypeError, match="index_put: wants a tensor for each index; got slice"):
        genesis.zeros(3).index_put((slice(1),), genesis.tensor(1.0))


def test_a_truth_value_makes_an_axis():
    x = genesis.arange(3)
    assert (x[True].shape, x[False].shape) == ((1, 3), (0, 3))


def test_in_place_arithmetic_on_an_index():
    x = genesis.arange(5)
    x[1:3] *= 10
    x[[0, 4]] += 7
    assert x.tolist() == [7, 10, 20, 3, 11]


def test_gradients_of_reading_and_writing():
    x = genesis.tensor([1.0, 2, 3], requires_grad=True)
    (x[[0, 0, 2]] * genesis.tensor([1.0, 10, 100])).sum().backward()
    assert x.grad.tolist() == [11, 0, 100]
    y = x * 2
    y[1] = x[0] * 5
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [7, 0, 2]


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (0, 0)], ids=str)
def test_a_mask_with_an_extent_of_0_holds_nowhere(shape, by_references):
    a, mask = np.arange(6.0).reshape(2, 3), np.zeros(shape, bool)
    x, key = genesis.tensor(a), genesis.tensor(mask)
    assert x[key].shape == a[mask].shape and x[:, key[:0].flatten()].shape == a[:, mask[:0].flatten()].shape
    x[key] = 7.0
    x[key] = genesis.ones(x[key].shape, dtype=x.dtype)
    assert x.tolist() == a.tolist()


@pytest.mark.parametrize("index, error, message", [
    (5, IndexError, "index 5 is out of range for axis 0 with extent 2"),
    ((0, -4), IndexError, "index -4 is out of range for axis 1 with extent 3"),
    ((0, 0, 0), IndexError, "3 indices for a 2-d tensor"),
    ((..., ..., 0), IndexError, "one ellipsis"),
    (slice(None, None, 0), ValueError, "step must not be zero"),
    (1.5, TypeError, "got float 1.5"),
    ("a", TypeError, "got str 'a'"),
    ([0.5], IndexError, "indices must be integers or bools, got float32"),
    (np.ones((3, 2), bool), IndexError, "mask of shape \\(3, 2\\) does not fit"),
    (np.ones((1, 0), bool), IndexError, "mask of shape \\(1, 0\\) does not fit"),
    ([0, 7], IndexError, "index 7 is out of range for axis 0 with extent 2"),
])
def test_errors_name_axis_index_and_extent(index, error, message):
    with pytest.raises(error, match=message):
        genesis.zeros(2, 3)[index]


def test_an_index_tensor_out_of_range_raises_when_it_is_computed():
    y = genesis.zeros(2, 3)[genesis.tensor([0, 7])]
    with pytest.raises(IndexError, match="index 7 is out of range"):
        y.numpy()


def test_a_new_axis_has_a_name():
    assert genesis.ones(2, 3)[:, genesis.newaxis].shape == (2, 1, 3)


def test_numbers_and_types_have_pytorchs_names():
    assert (genesis.pi, genesis.e, genesis.inf) == (np.pi, np.e, np.inf) and np.isnan(genesis.nan)
    assert isinstance(genesis.float32, genesis.dtype)
    doubled = genesis.vmap(lambda row: row.sum() * 2)(genesis.ones(3, 2))
    assert doubled.tolist() == [4, 4, 4]


LISTS = {
    "lists": lambda library: [[0, 1], [1, 2]],
    "tensors": lambda library: [library.tensor([0, 1]), library.tensor([1, 2])],
    "a slice": lambda library: [0, slice(None)],
    "new axes": lambda library: [slice(None), None],
    "an ellipsis": lambda library: [..., 0],
    "an integer tensor": lambda library: [0, library.tensor(1)],
    "a list beside a number": lambda library: [0, [1, 2]],
    "numbers": lambda library: [1, 0, 1],
    "truths": lambda library: [True, False],
    "many": lambda library: [[0]] * 32,
    "a tuple beside a slice": lambda library: (slice(None), (0, 2)),
    "tuples of tuples": lambda library: (((0, 1), (1, 1)), (2, -1)),
    "an empty tuple": lambda library: (slice(None), ()),
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("name", LISTS)
def test_a_list_stands_for_a_tuple_unless_it_has_numbers_alone(name):
    torch = pytest.importorskip("torch")
    ours, theirs = (library.arange(24.0).reshape(2, 3, 4)[LISTS[name](library)] for library in (genesis, torch))
    assert ours.tolist() == theirs.tolist()
    ours, theirs = (library.arange(24.0).reshape(2, 3, 4) for library in (genesis, torch))
    ours[LISTS[name](genesis)] = theirs[LISTS[name](torch)] = 0
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("index", [[1, 0, 1], [[0, 1, 1, 0]] * 3, 1, 0])
def test_bytes_are_masks_as_in_pytorch(index):
    values = np.arange(12.0).reshape(3, 4)
    with pytest.warns(UserWarning, match="want dtype bool"):
        selected = genesis.tensor(values)[genesis.tensor(index, dtype=genesis.uint8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = torch.tensor(values)[torch.tensor(index, dtype=torch.uint8)]
    assert np.array_equal(selected.numpy(), expected.numpy()) and selected.shape == expected.shape


@pytest.mark.filterwarnings("ignore")
def test_bytes_are_masks_in_index_put():
    found = []
    for lib in (genesis, torch):
        x, mask = lib.zeros(3, 4), lib.tensor([1, 0, 1], dtype=lib.uint8)
        added = x.clone().index_put_((mask * 0,), lib.ones(0, 4), accumulate=True)
        found.append((lib.index_put(x, (mask,), lib.tensor([[2.0], [3.0]])).tolist(), added.tolist()))
    assert found[0] == found[1]


def test_assigned_values_may_have_more_axes_of_extent_1():
    found = []
    for lib in (genesis, torch):
        x = lib.zeros(3, 2)
        x[lib.tensor([0, 2])] = lib.ones(1, 1, 2, 2)
        x[lib.tensor([True, False, True])] = lib.ones(1, 2, 2) * 3
        x[lib.tensor([0, 1]), lib.tensor([1, 1])] = lib.tensor([[[5.0, 7.0]]])
        found.append(x.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("extent", "r", "again"), [(5, 2, False), (4, 3, True), (2, 3, False), (3, 1, False), (0, 2, True)])
def test_combinations_and_their_gradient_are_torchs(extent, r, again, compiled):
    found = []
    for library in (genesis, torch):
        x = library.arange(float(extent)).requires_grad_()

        def of(x, library=library):
            return library.combinations(x, r, again)

        y = (genesis.compile(of) if compiled and library is genesis else of)(x)
        (y * y).sum().backward()
        found.append((y, x.grad))
    assert_close(*found)
