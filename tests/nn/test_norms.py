"""Norms beside torch's: first and second derivatives in float64, and the statistics that they are made by."""

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import gradcheck
from tests.tolerances import assert_close

NORMS = {
    "layer_norm": lambda F, x, w, b: F.layer_norm(x, (4, 5), w.reshape(4, 5), b.reshape(4, 5)),
    "rms_norm": lambda F, x, w, b: F.rms_norm(x, (5,), w[:5]),
    "group_norm": lambda F, x, w, b: F.group_norm(x, 2, w[:4], b[:4]),
    "batch_norm": lambda F, x, w, b: F.batch_norm(x, None, None, w[:4], b[:4], training=True),
}


def derivatives(library, norm, arrays):
    x, w, b, g, h = (library.tensor(array, requires_grad=True) for array in arrays)
    y = norm(library.nn.functional, x, w, b)
    grad = library.autograd.grad
    first = grad((y * g).sum(), (x, w), create_graph=True)
    second = grad((first[0] * h).sum() + (first[1] ** 2).sum(), (x, w, g))
    return [np.asarray(value.detach()) for value in (y, *first, *second)]


@pytest.mark.parametrize("name", NORMS)
def test_derivatives_are_torchs(name):
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape) for shape in ((3, 4, 5), (20,), (20,), (3, 4, 5), (3, 4, 5))]
    for have, want in zip(*(derivatives(library, NORMS[name], arrays) for library in (genesis, torch)), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-10)


def test_a_norm_of_examples_is_mapped_with_its_gradient():
    x = genesis.tensor(np.random.default_rng(0).normal(size=(6, 5)))
    def loss(row):
        return (genesis.layer_norm(row, (5,)) * row).sum()
    together = genesis.func.vmap(genesis.func.grad(loss))(x)
    apart = [genesis.func.grad(loss)(row) for row in x]
    np.testing.assert_allclose(together.numpy(), np.stack([row.numpy() for row in apart]), rtol=1e-12)


NATIVE = {
    "native_layer_norm": lambda m, x, w, b: m.native_layer_norm(x, (4, 5), w.reshape(4, 5), b.reshape(4, 5), 1e-5),
    "native_layer_norm of rows": lambda m, x, w, b: m.native_layer_norm(x, (5,), None, None, 1e-5),
    "native_group_norm": lambda m, x, w, b: m.native_group_norm(x, w[:4], b[:4], 3, 4, 5, 2, 1e-5),
    "native_batch_norm": lambda m, x, w, b: m.native_batch_norm(x, w[:4], None, w[4:8], b[:4] ** 2, True, 0.1, 1e-5),
    "native_batch_norm by what ran": lambda m, x, w, b: m.native_batch_norm(x, None, None, w[:4], b[:4] ** 2, False, 0.1, 1e-5),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("name", NATIVE)
def test_norms_with_their_statistics_are_torchs(name, dtype):
    random = np.random.default_rng(0)
    arrays = [random.normal(size=shape).astype(np.float32) for shape in ((3, 4, 5), (20,), (20,))]
    found = [NATIVE[name](m, *[m.tensor(a).to(getattr(m, dtype)) for a in arrays]) for m in (genesis, torch)]
    assert_close(*found, name, scale=2)


def test_statistics_of_norms_are_differentiated():
    x = genesis.tensor(np.random.default_rng(0).normal(size=(3, 4, 2)), requires_grad=True)
    gradcheck(lambda x: genesis.native_layer_norm(x, (2,), None, None, 0.1), (x,))
    gradcheck(lambda x: genesis.native_batch_norm(x, None, None, None, None, True, 0.1, 0.1), (x,))
    with pytest.raises(ValueError, match=r"input has shape \(3, 4, 2\); want \(3, 4, \.\.\) of 5 elements each"):
        genesis.native_group_norm(x, None, None, 3, 4, 5, 2, 0.1)


def test_the_gradient_of_batch_norm_does_not_depend_on_how_that_of_its_result_lies():
    torch = pytest.importorskip("torch")
    values, given = (np.random.RandomState(seed).randn(1, 3, 2, 2) for seed in (0, 1))
    found = []
    for library, lies in ((genesis, (0, 2, 3, 1)), (genesis, (0, 1, 2, 3)), (torch, (0, 1, 2, 3))):
        x = library.tensor(values).requires_grad_(True)
        y = library.nn.functional.batch_norm(x, None, None, training=True)
        laid = library.tensor(np.ascontiguousarray(given.transpose(lies))).permute(*np.argsort(lies).tolist())
        y.backward(laid)
        found.append(np.array(x.grad.tolist()))
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)
    np.testing.assert_allclose(found[0], found[2], atol=1e-12)


def test_running_statistics_that_are_infinite_stay_so():
    found = []
    for library in (genesis, torch):
        mean, var = library.tensor([np.inf, 1.0]), library.tensor([1.0, np.inf])
        library.nn.functional.batch_norm(library.arange(6.0).reshape(3, 2), mean, var, training=True)
        found.append((mean.tolist(), var.tolist()))
    assert found[0][0][0] == found[0][1][1] == np.inf
    np.testing.assert_allclose(found[0], found[1])


@pytest.mark.parametrize("kind", ["BatchNorm1d", "InstanceNorm1d"])
@pytest.mark.parametrize("training", [True, False])
def test_statistics_that_are_no_longer_tracked_stay_as_they_are(kind, training):
    found, x = [], np.random.default_rng(0).normal(size=(6, 3, 4))
    for library in (genesis, torch):
        layer = getattr(library.nn, kind)(3, momentum=0.3, affine=False, track_running_stats=True, dtype=library.float64)
        layer.train(training).track_running_stats = False
        found.append([layer(library.tensor(x)), layer.running_mean, layer.running_var, layer.num_batches_tracked])
    assert_close(*found)


def test_eps_of_0_and_groups_of_one_element():
    for library in (genesis, torch):
        assert library.nn.InstanceNorm1d(3, eps=0)(library.rand(2, 3, 4)).isfinite().all()
        assert library.nn.functional.group_norm(library.ones(2, 4), 4).tolist() == [[0.0] * 4] * 2
        with pytest.raises(ValueError):
            library.nn.GroupNorm(4, 4)(library.ones(1, 4))
        with pytest.raises(ValueError):
            library.nn.BatchNorm1d(3, eps=0)(library.ones(2, 3))
