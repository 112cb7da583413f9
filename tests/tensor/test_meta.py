"""Tensors on the device "meta": shapes and dtypes without values, beside torch's."""

import copy

import pytest
import torch

import genesis

BOTH = pytest.mark.parametrize("lib", [genesis, torch], ids=["genesis", "torch"])
HUGE = 1 << 20


@BOTH
def test_shapes_and_dtypes_without_memory(lib):
    x = lib.zeros(HUGE, HUGE, device="meta")  # 4 TiB
    y = (x @ x.T).relu().sum(0).to(lib.float64)
    assert x.is_meta and y.is_meta and y.shape == (HUGE,) and y.dtype == lib.float64 and not lib.ones(1).is_meta
    assert str(x.device) == "meta" and x[:, :3].shape == (HUGE, 3) and lib.cat([x, x]).shape == (2 * HUGE, HUGE)
    assert lib.ones(2, 3).to("meta").shape == (2, 3) and lib.zeros_like(lib.ones(2), device="meta").is_meta
    assert copy.deepcopy(x).is_meta and x.clone().is_meta and x.numel() == HUGE * HUGE


@BOTH
def test_there_are_no_values_to_read(lib):
    x = lib.ones(2, device="meta")
    for read in (x.tolist, x.cpu, lambda: x.to("cpu"), lambda: x[0].item(), lambda: bool(x[0] > 0)):
        with pytest.raises((NotImplementedError, RuntimeError)):
            read()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()


@pytest.mark.parametrize("make", [
    lambda lib: lib.zeros(2, 3, device="meta"), lambda lib: lib.zeros(2, device="meta", dtype=lib.float64),
    lambda lib: lib.zeros((), device="meta", requires_grad=True), lambda lib: lib.ones(0, device="meta", dtype=lib.int64),
])
def test_printed(make):
    ours, theirs = (repr(make(lib)).replace("genesis.", "").replace("torch.", "") for lib in (genesis, torch))
    assert ours == theirs


@BOTH
def test_networks_are_built_derived_and_trained_without_values(lib):
    with lib.device("meta"):
        net = lib.nn.Sequential(lib.nn.Linear(HUGE, HUGE), lib.nn.BatchNorm1d(HUGE), lib.nn.ReLU(), lib.nn.Linear(HUGE, 3))
    loss = lib.nn.functional.cross_entropy(net(lib.empty(4, HUGE, device="meta")), lib.empty(4, device="meta", dtype=lib.int64))
    loss.backward()
    assert loss.shape == () and net[0].weight.grad.shape == (HUGE, HUGE) and net[0].weight.grad.is_meta
    lib.optim.Adam(net.parameters()).step()
    assert all(p.is_meta for p in net.parameters()) and all(b.is_meta for b in net.buffers())


@BOTH
def test_modules_get_memory_and_values_afterwards(lib):
    with lib.device("meta"):
        net = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2))
    source = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2))
    other = copy.deepcopy(net)
    other.load_state_dict(source.state_dict(), assign=True)
    assert other(lib.ones(4, 3)).shape == (4, 2) and not any(p.is_meta for p in other.parameters())
    with pytest.warns(UserWarning, match="assign=True"):
        net.load_state_dict(source.state_dict())
    assert net[0].weight.is_meta
    with pytest.raises(NotImplementedError):
        net.to("cpu")
    weight = net[0].weight
    assert net.to_empty(device="cpu") is net and not net[0].weight.is_meta
    assert lib is torch or net[0].weight is weight  # which an optimizer may have
    net.load_state_dict(source.state_dict())
    assert net[0].weight.tolist() == source[0].weight.tolist()


@BOTH
def test_modules_without_first_values(lib):
    layer = lib.nn.utils.skip_init(lib.nn.Linear, 3, 2, bias=False)
    assert layer.weight.shape == (2, 3) and layer.weight.device.type == "cpu" and layer.weight.requires_grad
    for kind in (lib.nn.ReLU, int):
        with pytest.raises(RuntimeError):
            lib.nn.utils.skip_init(kind)


@BOTH
def test_each_tensor_of_a_module_is_replaced(lib):
    layer = lib.nn.Linear(2, 1)
    layer.weight.grad = lib.ones(1, 2)
    weight = layer.weight
    layer._apply(lambda t: t.double())
    assert layer.weight is weight and weight.dtype == lib.float64 == weight.grad.dtype and layer.share_memory() is layer


def test_compiled_calls_on_them_run_as_they_are():
    @genesis.compile
    def shape(x):
        return (x @ x.T).sum(0)

    for extent in (3, 3, 3):
        assert shape(genesis.ones(extent, 5, device="meta")).shape == (extent,)
    assert shape(genesis.ones(2, 2)).tolist() == [4, 4]
