"""What NumPy does at once with small tensors in memory: the values are those that programs compute, and torch's."""

import numpy as np
import pytest
import torch

import genesis
from genesis.tensor.handle import root_of
from tests.tolerances import assert_close

VALUES = np.arange(24, dtype=np.float32).reshape(4, 6) - 7

TENSORS = {
    "a root": lambda lib, x: x,
    "a transpose": lambda lib, x: x.t(),
    "a slice": lambda lib, x: x[1:, ::2],
    "a pending value": lambda lib, x: x * 2,
    "integers": lambda lib, x: x.to(lib.int64),
    "bools": lambda lib, x: x > 3,
    "float64": lambda lib, x: x.to(lib.float64),
}
INDICES = {
    "a list": lambda lib, x: x[[0, 2, -1, 0]],
    "a mask of rows": lambda lib, x: x[x.sum(1) > 0],
    "a mask of elements": lambda lib, x: x[x > 1],
    "a mask without a hit": lambda lib, x: x[x > 1000],
    "an ellipsis": lambda lib, x: x[..., 1],
    "an ellipsis in the middle": lambda lib, x: x[1:, ..., None, 0],
    "an ellipsis of no axes": lambda lib, x: x[0, ..., 1],
    "nothing but an ellipsis": lambda lib, x: x[...],
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kind", TENSORS)
def test_selections_are_torchs(kind, index):
    mine = INDICES[index](genesis, TENSORS[kind](genesis, genesis.tensor(VALUES)))
    theirs = INDICES[index](torch, TENSORS[kind](torch, torch.tensor(VALUES)))
    assert mine.shape == tuple(theirs.shape) and mine.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert_close(mine, theirs)


def test_a_selection_is_a_copy_and_an_ellipsis_a_view():
    x = genesis.tensor(VALUES)
    rows, column = x[[0, 1]], x[..., 0]
    rows.zero_()
    assert_close(x.numpy(), VALUES)
    column.zero_()
    assert x[:, 0].tolist() == [0.0] * 4 and root_of(column) is x


def test_selections_carry_gradients():
    x = genesis.tensor(VALUES, requires_grad=True)
    (x[[0, 0, 2]].sum() + x[x > 10].sum()).backward()
    t = torch.tensor(VALUES, requires_grad=True)
    (t[[0, 0, 2]].sum() + t[t > 10].sum()).backward()
    assert_close(x.grad, t.grad)


@pytest.mark.parametrize("index", [[4], [0, -5], [[0], [9]]])
def test_positions_out_of_range_raise(index):
    with pytest.raises(IndexError, match="out of range"):
        genesis.tensor(VALUES)[index]


def test_a_mask_that_does_not_fit_raises():
    with pytest.raises(IndexError, match="does not fit"):
        genesis.tensor(VALUES)[genesis.tensor([True, False])]


def test_equality_is_torchs():
    cases = [([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], [1.0, 3.0]), ([float("nan")], [float("nan")]), ([0.0], [-0.0]), ([], [])]
    for left, right in cases:
        mine, theirs = (lib.equal(lib.tensor(left), lib.tensor(right)) for lib in (genesis, torch))
        assert mine is theirs
    x = genesis.tensor(VALUES)
    assert genesis.equal(x.t()[1:3], x[:, 1:3].t() * 1) and not genesis.equal(x, x.t())


def test_what_was_read_is_not_what_is_written():
    x = genesis.tensor(VALUES)
    order = genesis.tensor([3, 2, 1, 0])
    x[order] = x[[0, 1, 2, 3]]
    assert_close(x.numpy(), VALUES[::-1])
    order[order] = order
    assert order.tolist() == [0, 1, 2, 3]
    lists = x.tolist()
    x[0] = 100.0
    assert lists == VALUES[::-1].tolist()


def test_many_joined_are_torchs():
    parts = [VALUES[:, k : k + 2] for k in (0, 1, 2, 3, 4)] * 2
    for join, dim in (("cat", 0), ("cat", 1), ("stack", 0), ("stack", 2), ("cat", -1)):
        mine = getattr(genesis, join)([genesis.tensor(VALUES)[:, k : k + 2] for k in (0, 1, 2, 3, 4)] * 2, dim=dim)
        assert_close(mine, getattr(torch, join)([torch.tensor(part) for part in parts], dim=dim))


def test_views_of_what_took_a_gradient_in_place_are_joined_with_it():
    def run(lib, join):
        x, weight = lib.from_numpy(np.ones((2, 2), np.float32)), lib.full((2, 2), 3.0, requires_grad=True)
        view = x.t()
        x.mul_(weight)
        joined = getattr(lib, join)([lib.tensor([[1.0, 2.0], [3.0, 4.0]]), view] * 4)
        joined.square().sum().backward()
        return joined.tolist(), weight.grad.tolist()

    for join in ("cat", "stack"):
        assert run(genesis, join) == run(torch, join)


@pytest.mark.parametrize("data", [
    1.5, 3, True, [1.0, 2.0], (4, 5), [True, False], [1, 2.5], [True, 2], [True, 2.5], [], [[1], [2]],
    [1e300, -1e300, float("nan")], 1e-46, 2**63 - 1, [-(2**63), 0], [2**63], [-0.0], [*range(65)], [0.5] * 65, [1j], "text",
], ids=repr)
def test_numbers_and_lines_of_numbers_become_tensors_as_in_pytorch(data):
    def made(library, **settings):
        try:
            x = library.tensor(data, **settings)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            return "refused"
        return str(x.tolist()), tuple(x.shape), str(x.dtype).rpartition(".")[2], x.requires_grad

    for settings in {}, {"dtype": "float64"}, {"requires_grad": True}:
        ours, theirs = (
            made(library, **{k: getattr(library, v) if k == "dtype" else v for k, v in settings.items()})
            for library in (genesis, torch))
        assert ours == theirs or theirs == "refused", settings


def test_small_writes_and_reads_do_not_lend_memory():
    x = genesis.arange(6.0).reshape(2, 3).clone()
    x.fill_(2)
    x[1].copy_(x[0])
    assert x.tolist() == [[2.0] * 3] * 2 and not x._array.memory.buffer.shared


PAIRS = {
    "equal": ([1.0, 2.0], [1.0, 2.0]), "one differs": ([1.0, 2.0], [1.0, 3.0]), "zeros of both signs": ([0.0], [-0.0]),
    "not a number": ([np.nan], [np.nan]), "nothing": ([], []), "another shape": ([1.0], [[1.0]]), "one number": (2.0, 2.0),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool", "complex64", "float16"])
@pytest.mark.parametrize("pair", PAIRS)
def test_short_tensors_are_equal_where_torchs_are(pair, dtype):
    def found(library, form):
        first, second = (form(library.tensor(np.array(values))).to(getattr(library, dtype)) for values in PAIRS[pair])
        return [library.equal(first, second), library.equal(second, first.clone()), library.equal(first, first)]

    if "nan" in str(PAIRS[pair]) and dtype not in ("float32", "float64", "complex64", "float16"):
        pytest.skip("not a number of this dtype")
    for form in (lambda x: x, lambda x: x.repeat(3, *[1] * x.ndim).t() if x.ndim == 1 else x):
        assert found(genesis, form) == found(torch, form)


PLACES = {
    "two tensors": lambda i, j: (i, j), "an int and a tensor": lambda i, j: (1, j),
    "a slice and a tensor": lambda i, j: (slice(1, 3), j),
    "a tensor and a slice": lambda i, j: (i, slice(None, None, 2)), "a tensor and an int": lambda i, j: (i, -1),
    "a number in memory": lambda i, j: i[0], "numbers in memory": lambda i, j: (i[0], j[1]),
}


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_elements_that_tensors_pick_are_set_at_once(place, pending):
    results = []
    for lib in (genesis, torch):
        x, i, j = lib.tensor(VALUES), lib.tensor([3, 0, -3]), lib.tensor([1, 5, 2])
        x.tolist(), i.tolist(), j.tolist()
        genesis.debug.reset_stats()
        x = x.clone() if pending else x
        x[PLACES[place](i, j)] = 50
        flushes = genesis.debug.stats()["flushes"]
        results.append((x.tolist(), x._version))
        assert flushes == (pending and lib is genesis)
    assert results[0] == results[1]


def test_tensors_that_slices_separate_pick_as_in_torch():
    results = []
    for lib in (genesis, torch):
        x, i = lib.zeros(2, 3, 4), lib.tensor([3, 1])
        x[0, :, i] = lib.arange(3.0).reshape(3, 1)
        results.append(x.tolist())
    assert results[0] == results[1]
