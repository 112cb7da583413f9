"""An index out of range raises at the flush, at the user's line, and harms nothing else."""

import re

import numpy as np
import pytest
import torch

import genesis

ROWS, COLUMNS = 7, 5


def table():
    return genesis.from_numpy(np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS))


LOOKUPS = {
    "gather": lambda x, bad: genesis.gather(x, 0, genesis.tensor([[0, 1, bad, 2, 3]])),
    "index_select": lambda x, bad: genesis.index_select(x, 0, genesis.tensor([0, bad, 1])),
    "embedding": lambda x, bad: genesis.embedding(genesis.tensor([[0, 1], [bad, 2]]), x),
    "index": lambda x, bad: x[genesis.tensor([1, bad])],
    "cross_entropy": lambda x, bad: genesis.cross_entropy(x.T, genesis.tensor([0, 1, 2, bad, 3])),
}


@pytest.mark.parametrize("bad", [ROWS, 1 << 40, -ROWS - 1])
@pytest.mark.parametrize("name", LOOKUPS)
def test_the_error_names_index_extent_and_line(name, bad):
    y = LOOKUPS[name](table(), bad)
    with pytest.raises(IndexError, match=rf"{name}: index {bad} is out of range for extent {ROWS}") as caught:
        y.numpy()
    file, line = re.search(r"\(at (.*):(\d+)\)", str(caught.value)).groups()
    assert file == __file__
    assert LOOKUPS[name].__code__.co_firstlineno == int(line)


@pytest.mark.parametrize("name", LOOKUPS)
def test_later_computations_are_right(name):
    with pytest.raises(IndexError):
        LOOKUPS[name](table(), ROWS).numpy()
    good = LOOKUPS[name](table(), 3)
    assert np.isfinite(good.numpy()).all()
    np.testing.assert_array_equal((table() + 1).numpy(), np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) + 1)


def test_a_bad_scatter_writes_nowhere_near():
    """The neighbours of the target, in one buffer with it, stay as they are."""
    memory = np.zeros((3, 4), np.float32)
    target = genesis.from_numpy(memory[1])
    written = genesis.scatter(target, 0, genesis.tensor([0, 4, -9]), genesis.tensor([1.0, 2.0, 3.0]))
    with pytest.raises(IndexError, match=r"scatter: index (4|-9) is out of range for extent 4"):
        written.numpy()
    assert not memory.any()


ALONG_AN_AXIS = {
    "gather": lambda lib, x, i: x.gather(0, i), "take_along_dim": lambda lib, x, i: lib.take_along_dim(x, i),
    "scatter": lambda lib, x, i: x.scatter(0, i, 5.0), "scatter_add": lambda lib, x, i: x.scatter_add(0, i, x),
    "scatter_reduce": lambda lib, x, i: x.scatter_reduce(0, i, x, "amax"), "index_add": lambda lib, x, i: x.index_add(0, i, x),
    "index_copy": lambda lib, x, i: x.index_copy(0, i, x), "index_select": lambda lib, x, i: x.index_select(0, i),
}


@pytest.mark.parametrize("name", ALONG_AN_AXIS)
def test_negative_indices_are_refused_where_pytorch_refuses_them(name):
    """A label of -1 is no last class."""
    for lib in (genesis, torch):
        good = ALONG_AN_AXIS[name](lib, lib.arange(3.0), lib.tensor([2, 0, 1]))
        assert good.shape == (3,)
        with pytest.raises((IndexError, RuntimeError), match=r"want 0 to 2" if lib is genesis else ""):
            ALONG_AN_AXIS[name](lib, lib.arange(3.0), lib.tensor([2, -1, 1])).tolist()


@pytest.mark.parametrize("dtype", ["int32", "float32", "bool"])
def test_take_along_dim_wants_int64(dtype):
    for lib in (genesis, torch):
        with pytest.raises(RuntimeError):
            lib.take_along_dim(lib.arange(3.0), lib.ones(1, dtype=getattr(lib, dtype)), 0)


def test_negative_indices_count_from_the_end_where_pytorchs_do():
    for lib in (genesis, torch):
        x, i = lib.arange(3.0), lib.tensor([-1])
        assert [y.tolist() for y in (x[i], x.take(i), x.take_along_dim(i, 0))] == [[2]] * 3
        written = x.index_fill(0, i, 9.0), x.put(i, x[:1] + 7), x.index_put((i,), x[:1] + 8)
        assert [y.tolist() for y in written] == [[0, 1, 9], [0, 1, 7], [0, 1, 8]]


def test_an_index_into_nothing_raises_at_its_line():
    with pytest.raises(IndexError, match="extent 0"):
        genesis.index_select(genesis.zeros(0, 3), 0, genesis.tensor([0]))
