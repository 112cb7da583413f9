"""Observers and fake quantisers against PyTorch's."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
import torch.ao.quantization as theirs

import genesis
import genesis.ao.quantization as ours

pytestmark = pytest.mark.usefixtures("by_references")
DTYPES = {"uint8": torch.quint8, "int8": torch.qint8}


def seen(count=3):
    random = np.random.default_rng(0)
    return [(random.standard_normal((4, 3, 5)) * scale).astype(np.float32) for scale in (1, 3, 0.5)[:count]]


def options_of(dtype, scheme, lib, **more):
    kind = getattr(genesis, dtype) if lib is ours else DTYPES[dtype]
    return {"dtype": kind, "qscheme": getattr(ours if lib is ours else torch, scheme), **more}


@pytest.mark.parametrize("more", [{}, {"reduce_range": True}, {"quant_min": 0, "quant_max": 15}], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", ["MinMaxObserver", "MovingAverageMinMaxObserver", "PerChannelMinMaxObserver",
                                  "MovingAveragePerChannelMinMaxObserver"])
def test_observers_find_pytorchs_scales(name, dtype, more):
    schemes = ("affine", "symmetric")
    for scheme in schemes:
        if (scheme, dtype, more) == ("symmetric", "uint8", {"reduce_range": True}):
            continue
        scheme = f"per_{'channel' if 'Channel' in name else 'tensor'}_{scheme}"
        axis = {"ch_axis": 1} if "Channel" in name else {}
        found = []
        for lib, tensor in ((ours, genesis.from_numpy), (theirs, torch.from_numpy)):
            observer = getattr(lib, name)(**options_of(dtype, scheme, lib, **more, **axis))
            for x in seen():
                assert observer(y := tensor(x)) is y
            found.append([*observer.calculate_qparams(), observer.min_val, observer.max_val])
        for a, b in zip(*found, strict=True):
            assert tuple(a.shape) == tuple(b.shape)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_numbers_and_gradients_of_fake_quantisation_are_pytorchs():
    x = np.linspace(-3, 3, 61, dtype=np.float32).reshape(1, 61).repeat(3, 0)
    cases = [(lambda lib, t, x: lib.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 40)),
             (lambda lib, t, x: lib.fake_quantize_per_tensor_affine(x, t.tensor([0.07]), t.tensor([2], dtype=t.int32), -8, 7)),
             (lambda lib, t, x: lib.fake_quantize_per_channel_affine(
                 x, t.tensor([0.1, 0.5, 0.02]), t.tensor([0, 3, -1], dtype=t.int32), 0, -8, 7))]
    for case in cases:
        results = []
        for lib, make in ((ours, genesis), (torch, torch)):
            leaf = make.tensor(x, requires_grad=True)
            y = case(lib, make, leaf)
            (y * y).sum().backward()
            results.append((y.detach().numpy(), leaf.grad.numpy()))
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("make", ["default_fake_quant", "default_weight_fake_quant", "default_per_channel_weight_fake_quant"])
def test_fake_quantisers_are_pytorchs_as_they_train_and_when_they_are_switched(make):
    results, names = [], []
    for lib, tensor in ((ours, genesis.tensor), (theirs, torch.tensor)):
        quantizer = getattr(lib, make)()
        outputs = [quantizer(tensor(x)).numpy() for x in seen()]
        quantizer.apply(lib.disable_observer)
        outputs.append(quantizer(tensor(seen()[1] * 10)).numpy())
        quantizer.apply(lib.disable_fake_quant)
        outputs.append(quantizer(tensor(seen()[0])).numpy())
        state = quantizer.state_dict()
        other = getattr(lib, make)()
        other.load_state_dict(state)
        assert other.scale.tolist() == quantizer.scale.tolist()
        names.append([*state])
        results.append([*outputs, *[value.numpy() for value in state.values()]])
    assert names[0] == names[1]
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_a_layer_trains_on_quantised_weights():
    layer, quantizer = genesis.nn.Linear(4, 2), ours.default_weight_fake_quant()
    optimizer = genesis.optim.SGD([layer.weight], lr=0.1)
    before = layer.weight.tolist()
    weight = quantizer(layer.weight)
    (genesis.ones(3, 4) @ weight.T).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() != before
    steps = (weight.detach() / quantizer.scale).numpy()
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)


def test_marks_and_functions_of_quantised_models():
    x = genesis.tensor([1.0, -3.0])
    functions = genesis.ao.nn.quantized.FloatFunctional()
    assert ours.DeQuantStub()(ours.QuantStub(ours.default_qconfig)(x)) is x
    assert functions.cat([x, x]).shape == (4,) and functions.mul_scalar(x, 2.0).tolist() == [2, -6]
    for problem, call in ((RuntimeError, lambda: functions(x)), (NotImplementedError, ours.NoopObserver().calculate_qparams),
                          (ValueError, lambda: ours.MinMaxObserver(quant_min=3)),
                          (NotImplementedError, lambda: ours.MinMaxObserver(qscheme=ours.per_channel_affine)),
                          (NotImplementedError, lambda: ours.default_weight_observer(dtype=genesis.uint8, reduce_range=True)),
                          (ValueError, lambda: ours.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 4))):
        with pytest.raises(problem):
            call()
    with pytest.warns(UserWarning, match="before anything was seen"):
        assert ours.MinMaxObserver().calculate_qparams()[0].tolist() == [1]


def test_quantisers_are_pickled_with_their_observers_and_take_the_sizes_of_loaded_states():
    quantizer = ours.default_per_channel_weight_fake_quant()
    rounded = quantizer(genesis.from_numpy(seen(1)[0]))
    again, other = pickle.loads(pickle.dumps(quantizer)), ours.default_per_channel_weight_fake_quant()
    other.load_state_dict(again.state_dict())
    for one in (again, other):
        one.disable_observer()
        assert one(genesis.from_numpy(seen(1)[0])).tolist() == rounded.tolist()
