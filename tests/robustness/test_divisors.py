"""An integer that is divided by 0 raises at the flush, as in PyTorch, at the user's line; nothing else is harmed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import genesis

WAYS = {
    "floor_divide": lambda lib, x, y: x // y, "remainder": lambda lib, x, y: x % y, "fmod": lambda lib, x, y: lib.fmod(x, y),
    "div": lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"),
    "floor_divide_": lambda lib, x, y: x.clone().floor_divide_(y),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_tensors_and_numbers_that_are_0_raise_as_in_pytorch(name, dtype, by_references):
    for lib in (genesis, torch):
        x = lib.tensor([7, 9, 200 % 128], dtype=getattr(lib, dtype))
        good = WAYS[name](lib, x, lib.tensor([2, 3, 1], dtype=getattr(lib, dtype)))
        assert good.tolist() == WAYS[name](torch, torch.tensor([7, 9, 72]), torch.tensor([2, 3, 1])).tolist()
        for zero in (lib.tensor([1, 0, 1], dtype=getattr(lib, dtype)), 0):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                WAYS[name](lib, x, zero).tolist()
        assert WAYS[name](lib, x[:0], 0).tolist() == []


def test_kernels_find_it_in_whole_vectors_and_in_the_rest_of_a_row():
    x = genesis.arange(100) + 50
    for place in (0, 63, 99):
        divisor = np.full(100, 3)
        divisor[place] = 0
        with pytest.raises(ZeroDivisionError, match="floor_divide: ZeroDivisionError") as caught:
            ((x // genesis.from_numpy(divisor)) * 2).tolist()
        file, line = re.search(r"\(at (.*):(\d+)\)", str(caught.value)).groups()
        assert (file, int(line)) == (__file__, caught.traceback[0].lineno + 1)
    assert ((x // genesis.from_numpy(np.full(100, 3))) * 2).tolist() == [(n + 50) // 3 * 2 for n in range(100)]


def test_a_number_that_wraps_round_to_0_is_0():
    for lib in (genesis, torch):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            (lib.tensor([5], dtype=lib.uint8) // 256).tolist()


def test_only_what_depends_on_it_is_lost():
    x, zero = genesis.arange(4), genesis.tensor([1, 0, 1, 1])
    sound, bad = x + 1, x // zero
    with pytest.raises(ZeroDivisionError):
        (bad + 1).tolist()
    with pytest.raises(RuntimeError, match="lost"):
        bad.tolist()
    assert sound.tolist() == [1, 2, 3, 4]


def test_a_replay_with_a_divisor_of_0_changes_nothing():
    """Writes before the division too: the recorded step is called again, and fails where it fails."""
    total, part = genesis.tensor([10, 20, 30]), genesis.arange(6)

    def step(divisor, number):
        total.add_(number)
        part[2:5] = part[2:5] // divisor
        total.floor_divide_(divisor)
        return total % number

    compiled = genesis.compile(step)
    one = genesis.tensor([1, 1, 1])
    for number in (5, 6, 7):
        compiled(one, number).tolist()
    before = part.tolist()
    assert total.tolist() == [28, 38, 48]
    with pytest.raises(ZeroDivisionError):
        compiled(genesis.tensor([1, 0, 2]), 7).tolist()
    assert (total.tolist(), part.tolist()) == ([35, 45, 55], before)  # as without `compile`: `add_` has happened
    with pytest.raises(ZeroDivisionError):
        compiled(one, 0).tolist()
    assert (total.tolist(), part.tolist()) == ([35, 45, 55], before)
    assert compiled(one, 9).tolist() == [44 % 9, 54 % 9, 64 % 9]


def test_what_is_known_not_to_be_0_is_not_looked_at():
    x = genesis.arange(6)
    for y in (x // genesis.ones(6, dtype=genesis.int64), x // -1, (x * 1.0) // 0):
        assert "check_divisor" not in str(genesis.debug.graph(y))
    assert str(genesis.debug.graph((x // (x + 1)) % (x + 1))).count("check_divisor") == 2


def test_batches_are_looked_at():
    divide = genesis.func.vmap(lambda x, y: x // y)
    assert divide(genesis.arange(4), genesis.tensor([1, 1, 2, 2])).tolist() == [0, 1, 1, 1]
    with pytest.raises(ZeroDivisionError):
        divide(genesis.arange(4), genesis.tensor([1, 1, 0, 2])).tolist()
