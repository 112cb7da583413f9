"""Pools to a given size, of parts that overlap or are single elements, and places of maxima: as torch's."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("name", ["adaptive_avg_pool", "adaptive_max_pool"])
@pytest.mark.parametrize(("shape", "sizes"), [((2, 3, 13, 7), (1, 3, 5, 7, 15)), ((3, 12), (4, 5, 12)),
                                              ((2, 3, 12, 8), (4, (6, 2), (12, 1), (5, 4)))])
def test_pools_to_any_size_are_torchs(name, shape, sizes):
    x = np.minimum(RANDOM.normal(size=shape), 1).astype(np.float32)  # some maxima occur twice
    name = f"{name}{len(shape) // 2}d"
    for size in sizes:
        found = []
        for library in (genesis, torch):
            t = library.tensor(x, requires_grad=True)
            y = getattr(library.nn.functional, name)(t, size, **({"return_indices": True} if "max" in name else {}))
            values, *places = y if "max" in name else (y,)
            (values * library.arange(values.numel()).reshape(values.shape)).sum().backward()
            found.append([values.detach().numpy(), t.grad.numpy(), *(p.numpy() for p in places)])
        assert_close(*found)


def test_a_mean_of_equal_parts_is_one_sum():
    x = genesis.tensor(RANDOM.normal(size=(2, 3, 12, 8)).astype(np.float32))
    for size in (1, (4, 2)):
        assert genesis.debug.graph(genesis.nn.functional.adaptive_avg_pool2d(x, size)).text(detail=True).count("= sum(") == 1


@pytest.mark.parametrize(("name", "arguments"), [
    ("adaptive_max_pool2d", (5,)), ("max_pool2d", (3, 2, 1)), ("max_pool2d", (4, 3, 2, 3)), ("max_pool2d", (3, 2, 1, 1, True)),
])
def test_places_of_maxima_are_elements_of_their_windows_though_all_are_minus_infinity(name, arguments):
    x = np.full((2, 13, 14), -np.inf, np.float32)
    x[1, 5:, 5:] = RANDOM.normal(size=(8, 9))
    found = [getattr(library.nn.functional, name)(library.tensor(x), *arguments, return_indices=True)
             for library in (genesis, torch)]
    assert_close(*([each.numpy() for each in pair] for pair in found))
