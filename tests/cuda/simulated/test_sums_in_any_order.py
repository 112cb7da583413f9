"""What a GPU adds up in any order is refused where results must be the same every time."""

import pytest

import genesis


@pytest.fixture
def strict():
    genesis.use_deterministic_algorithms(True)
    yield
    genesis.use_deterministic_algorithms(False)


def added(dtype):
    places, ones = genesis.tensor([0, 2, 0], device="cuda"), genesis.ones(3, dtype=dtype, device="cuda")
    return genesis.zeros(3, dtype=dtype, device="cuda").index_add(0, places, ones).tolist()


def test_floats_that_meet_are_refused_and_integers_are_not(strict):
    assert added(genesis.int64) == [2, 0, 1]
    with pytest.raises(RuntimeError, match=r"scatter_add: on a GPU.*use_deterministic_algorithms\(True\) is set"):
        added(genesis.float32)
    genesis.use_deterministic_algorithms(False)
    assert added(genesis.float32) == [2, 0, 1]


def test_with_warn_only_they_are_added_with_a_warning(strict):
    genesis.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match="scatter_add"):
        assert added(genesis.float64) == [2, 0, 1]
