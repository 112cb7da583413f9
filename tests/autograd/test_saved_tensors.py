"""Hooks on what is kept for backward: gradients are those without, whatever the operands were in between."""

import numpy as np
import pytest
import torch

import genesis

X, W = np.random.RandomState(0).randn(2, 4, 4).astype(np.float32)


def loss(lib, x, w):
    y = (x @ w).tanh() * x.exp() + lib.nn.functional.softmax(x, 1)
    return (y.reshape(2, 8).square().sum(1) / (1 + y.abs().max())).sum()


def gradients(lib, hooks):
    x, w = lib.tensor(X, requires_grad=True), lib.tensor(W, requires_grad=True)
    with hooks(lib):
        value = loss(lib, x, w)
    value.backward()
    return [x.grad.numpy(), w.grad.numpy()]


def test_gradients_are_torchs_through_files(tmp_path):
    def hooks(lib):
        count = []

        def pack(tensor):
            count.append(1)
            path = tmp_path / f"{lib.__name__}{len(count)}.npy"
            np.save(path, tensor.numpy())
            return path

        return lib.autograd.graph.saved_tensors_hooks(pack, lambda path: lib.tensor(np.load(path)))

    for have, want in zip(gradients(genesis, hooks), gradients(torch, hooks), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-6)
    assert len([*tmp_path.glob("genesis*")]) > 8


def test_what_is_unpacked_is_what_backward_reads():
    for lib in (genesis, torch):
        x = lib.tensor([2.0, 3.0], requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 10):
            y = (x * x).sum()
        y.backward()
        assert x.grad.tolist() == [40, 60]


def test_derivatives_of_derivatives_are_refused():
    x = genesis.tensor([2.0], requires_grad=True)
    with genesis.autograd.graph.save_on_cpu():
        y = (x * x * x).sum()
    with pytest.raises(RuntimeError, match="what is unpacked has no derivation"):
        genesis.autograd.grad(y, x, create_graph=True)


def test_linear_operations_and_what_needs_no_gradient_pack_nothing():
    packed = []
    x = genesis.tensor([2.0, 3.0], requires_grad=True)
    with genesis.autograd.graph.saved_tensors_hooks(packed.append, lambda held: held):
        (x + 1).sum()
        genesis.ones(2).exp()
        with genesis.no_grad():
            x.exp()
    assert packed == []


def test_hooks_that_change_a_shape_and_hooks_that_are_disabled_are_refused():
    x = genesis.tensor([2.0, 3.0], requires_grad=True)
    with genesis.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
        y = x.exp().sum()
    with pytest.raises(RuntimeError, match=r"unpack_hook returned float32 \(1,\); want what was packed, float32 \(2,\)"):
        y.backward()
    for lib in (genesis, torch):
        hooks = lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        with lib.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
            pass


def test_a_layer_trains_with_its_activations_elsewhere():
    found = []
    for lib in (genesis, torch):
        net = lib.nn.Sequential(lib.nn.Linear(4, 8), lib.nn.GELU(), lib.nn.LayerNorm(8), lib.nn.Linear(8, 3))
        with lib.no_grad():
            for n, p in enumerate(net.parameters()):
                p.copy_(lib.tensor(np.random.RandomState(n).randn(*p.shape).astype(np.float32)))
        with lib.autograd.graph.save_on_cpu():
            value = lib.nn.functional.cross_entropy(net(lib.tensor(X)), lib.tensor([0, 1, 2, 0]))
        value.backward()
        found.append([value.item(), *[p.grad.numpy() for p in net.parameters()]])
    for have, want in zip(*found, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-5)


def test_a_version_is_counted_up_and_an_edge_is_named():
    for lib in (genesis, torch):
        x = lib.zeros(2)
        lib.autograd.graph.increment_version([x, x])
        assert x._version == 2 and x.tolist() == [0, 0]
        w = lib.ones(1, requires_grad=True)
        y = w * w
        z = (y * 2).sum()
        lib.autograd.graph.increment_version(w.detach())
        with pytest.raises(RuntimeError):
            z.backward()
    node, place = genesis.autograd.graph.get_gradient_edge(genesis.ones(1, requires_grad=True) * 2)
    assert node.name() == "MulBackward" and place == 0


def write_in_place(lib, x, w):
    y = x * 1.5
    y += 0.5
    y[:, 1:3].mul_(w[:, :2])
    return lib.nn.functional.leaky_relu(y, 0.1, inplace=True) * w


def update_statistics(lib, x, w):
    mean, var = lib.zeros(4), lib.ones(4)
    y = lib.nn.functional.batch_norm(x, mean, var, training=True) * w
    return y * mean + var


@pytest.mark.parametrize("function", [write_in_place, update_statistics])
def test_what_a_call_writes_is_written_once(function):
    found = []
    for lib in (genesis, torch):
        x, w = lib.tensor(X, requires_grad=True), lib.tensor(W, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = function(lib, x, w)
        (y * y).sum().backward()
        found.append([y.detach().numpy(), x.grad.numpy(), w.grad.numpy()])
    for have, want in zip(*found, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)
