"""Flow fields against torch's, networks that look where a network tells, and the older names of resampling."""

import numpy as np
import pytest
import torch

import genesis
from genesis.nn import functional as F
from tests.tolerances import assert_close

BOTH = (genesis, torch)


@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 3, 1, 2), (2, 1, 2, 3, 1)])
@pytest.mark.parametrize("corners", [False, True])
def test_places_of_affine_maps_are_torchs(size, corners):
    axes = len(size) - 2
    found = []
    for library in BOTH:
        theta = library.tensor(np.random.default_rng(0).normal(size=(2, axes, axes + 1)), requires_grad=True)
        image = library.tensor(np.random.default_rng(1).normal(size=size), requires_grad=True)
        places = library.nn.functional.affine_grid(theta, size, align_corners=corners)
        y = library.nn.functional.grid_sample(image, places, align_corners=corners)
        (y**2).sum().backward()
        found.append([places, y, theta.grad, image.grad])
    assert_close(*found, scale=100)


@pytest.mark.parametrize("corners", [False, True])
def test_places_of_the_identity_are_torchs_to_the_bit(corners):
    for size in [(1, 1, 7, 9), (1, 2, 28, 28), (1, 1, 1, 33)]:
        ours, theirs = (lib.nn.functional.affine_grid(lib.eye(2, 3)[None], size, align_corners=corners) for lib in BOTH)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_modes_by_number_and_older_names():
    image, grid = np.arange(12.0).reshape(1, 1, 3, 4), np.random.default_rng(0).normal(size=(1, 2, 2, 2))
    found = [[library.grid_sampler_2d(library.tensor(image), library.tensor(grid), 1, 2, False),
              library.nn.functional.upsample_nearest(library.tensor(image), scale_factor=2),
              library.nn.functional.upsample_bilinear(library.tensor(image), (5, 3))] for library in BOTH]
    assert_close(*found)
    volume = genesis.arange(8.0).reshape(1, 1, 2, 2, 2)
    assert genesis.grid_sampler_3d(volume, genesis.zeros(1, 1, 1, 1, 3), 0, 0, True).item() == 3.5


@pytest.mark.parametrize(("build", "message"), [
    (lambda x: F.grid_sample(x, genesis.zeros(1, 2, 2, 3)), "want .n, c, h, w. and"),
    (lambda x: F.grid_sample(x, genesis.zeros(1, 2, 2, 2), "linear"), "mode 'linear'"),
    (lambda x: F.grid_sample(x, genesis.zeros(1, 2, 2, 2), padding_mode="wrap"), "padding_mode must be"),
    (lambda x: F.grid_sample(x, genesis.zeros(1, 2, 2, 2).double()), "want one floating dtype"),
    (lambda x: F.affine_grid(x[0], (1, 1, 2, 2)), "want .n, 2, 3. and"),
    (lambda x: genesis.grid_sampler_2d(x, genesis.zeros(1, 2, 2, 2), 5, 0, True), "want indices in bilinear"),
])
def test_what_does_not_fit_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build(genesis.ones(1, 1, 2, 2))
