"""First values of parameters: what they are made to be, and where their numbers come from."""

import math

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from tests.tolerances import assert_close

init = nn.init


@pytest.mark.parametrize("name", [
    "linear", "conv1d", "conv2d", "conv3d", "conv_transpose3d", "sigmoid", "tanh", "relu", "selu", "leaky_relu"])
def test_gains_are_torchs(name):
    assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (6, 2, 3)])
def test_orthogonal_weights_have_orthonormal_rows_or_columns(shape):
    weight = init.orthogonal_(genesis.empty(shape, dtype=genesis.float64), gain=2.0).numpy().reshape(shape[0], -1) / 2
    product = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-12)


def test_rotations_are_not_drawn_more_often_than_reflections():
    genesis.manual_seed(0)
    signs = [np.linalg.det(init.orthogonal_(genesis.empty(2, 2)).numpy()) > 0 for _ in range(200)]
    assert 70 < sum(signs) < 130


@pytest.mark.parametrize(("mean", "std", "a", "b"), [(0.0, 1.0, -2.0, 2.0), (1.0, 2.0, 0.5, 1.5), (0.0, 1.0, 1.0, 4.0)])
def test_truncated_normal_numbers_have_torchs_quantiles(mean, std, a, b):
    genesis.manual_seed(0)
    ours = init.trunc_normal_(genesis.empty(100_000), mean, std, a, b).numpy()
    theirs = torch.nn.init.trunc_normal_(torch.empty(100_000), mean, std, a, b).numpy()
    assert a <= ours.min() and ours.max() <= b
    np.testing.assert_allclose(*[np.quantile(x, [0.1, 0.3, 0.5, 0.7, 0.9]) for x in (ours, theirs)], atol=0.02)


@pytest.mark.parametrize(("shape", "groups"), [((3, 4, 5), 1), ((4, 2, 3, 2), 2), ((6, 2, 3, 3, 1), 3)])
def test_convolutions_that_pass_channels_on_are_torchs(shape, groups):
    assert_close(*[library.nn.init.dirac_(library.ones(shape), groups) for library in (genesis, torch)])


def test_other_constant_and_sparse_weights():
    assert_close(*[library.nn.init.eye_(library.ones(2, 4)) for library in (genesis, torch)])
    weight = init.sparse_(genesis.empty(20, 5), sparsity=0.33, std=2.0).numpy()
    assert ((weight == 0).sum(0) == math.ceil(0.33 * 20)).all() and 1 < weight[weight != 0].std() < 3


@pytest.mark.parametrize("name", [
    "uniform_", "normal_", "trunc_normal_", "orthogonal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_",
    "kaiming_normal_",
])
def test_numbers_come_from_a_generator_of_ones_own(name):
    generator = genesis.Generator(5)
    first = getattr(init, name)(genesis.empty(3, 4), generator=generator).tolist()
    genesis.manual_seed(1)
    assert first == getattr(init, name)(genesis.empty(3, 4), generator=generator.manual_seed(5)).tolist()
    genesis.manual_seed(1)
    assert first != getattr(init, name)(genesis.empty(3, 4)).tolist()


def test_first_values_are_no_part_of_a_derivation():
    weight = nn.Parameter(genesis.zeros(3, 3))
    for name in ("orthogonal_", "trunc_normal_", "eye_"):
        assert getattr(init, name)(weight) is weight and weight.is_leaf and weight.requires_grad


@pytest.mark.parametrize(("build", "message"), [
    (lambda: init.orthogonal_(genesis.empty(3)), "two axes at least"), (lambda: init.eye_(genesis.empty(3)), "want a matrix"),
    (lambda: init.dirac_(genesis.empty(3, 3)), "want 3 to 5 axes"), (lambda: init.sparse_(genesis.empty(3), 0.1), "a matrix"),
    (lambda: init.dirac_(genesis.empty(3, 3, 3), 2), "divisible by groups"),
])
def test_shapes_that_make_no_sense_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
