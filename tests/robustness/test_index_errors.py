"""An index out of range raises at the flush, at the user's line, and harms nothing else."""

import re

import numpy as np
import pytest

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


def test_an_index_into_nothing_raises_at_its_line():
    with pytest.raises(IndexError, match="extent 0"):
        genesis.index_select(genesis.zeros(0, 3), 0, genesis.tensor([0]))
