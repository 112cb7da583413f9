"""Models with int8 weights: as near to float32 as PyTorch's, saved, compiled, exported, mapped."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest
import torch

import genesis
from genesis import nn
from genesis.ao.nn.quantized import dynamic
from genesis.ao.quantization import default_dynamic_qconfig, quantize_dynamic
from genesis.as_torch.finder import look_up


def model():
    inner = nn.Sequential(nn.Linear(33, 20, bias=False), nn.ReLU())
    return nn.Sequential(nn.Linear(48, 33), nn.GELU(), inner, nn.Linear(20, 7)).eval()


def test_it_is_as_near_as_pytorchs():
    rng = np.random.default_rng(0)
    ours, theirs = nn.Linear(256, 96), torch.nn.Linear(256, 96)
    theirs.load_state_dict({name: torch.from_numpy(value.numpy().copy()) for name, value in ours.state_dict().items()})
    x = rng.normal(size=(16, 256)).astype(np.float32)
    exact = ours(genesis.tensor(x)).detach().numpy()
    found = dynamic.Linear.from_float(ours)(genesis.tensor(x)).numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # quantisation is to move out of PyTorch
        reference = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(theirs), {torch.nn.Linear}, dtype=torch.qint8)
    wanted = reference(torch.from_numpy(x)).detach().numpy()

    def error(y):
        return np.linalg.norm(y - exact) / np.linalg.norm(exact)

    assert error(found) < min(error(wanted), 0.01)
    np.testing.assert_allclose(found, wanted, atol=5 * np.abs(wanted - exact).max())


def test_weights_are_rounded_by_a_scale_for_each_output():
    layer = nn.Linear(5, 3)
    with genesis.no_grad():
        layer.weight[0] *= 1000
        layer.weight[1] = 0
    made = dynamic.Linear.from_float(layer)
    weight = layer.weight.detach().numpy()
    scale = np.abs(weight).max(1) / np.float32(127)
    scale[1] = 1
    np.testing.assert_array_equal(made.scale.numpy(), scale)
    np.testing.assert_array_equal(made.weight.numpy(), np.rint(weight / scale[:, None]).astype(np.int8), strict=True)
    assert made.bias is not layer.bias and made.bias.tolist() == layer.bias.tolist()


def test_which_layers_are_replaced():
    def quantised(spec, **settings):
        found = quantize_dynamic(model(), spec, **settings)
        return [path for path, module in found.named_modules() if isinstance(module, dynamic.Linear)]

    assert quantised(None) == quantised({nn.Linear}) == quantised([nn.Sequential]) == ["0", "2.0", "3"]
    assert quantised({"2"}) == ["2.0"] and quantised({"3", "0"}) == ["0", "3"]
    assert quantised({nn.Linear: default_dynamic_qconfig, "2": None}) == ["0", "2.0", "3"]  # the class is nearer
    assert quantised({nn.Linear: default_dynamic_qconfig, "2.0": None}) == ["0", "3"]
    assert quantised({nn.Sequential: default_dynamic_qconfig, "2": None}) == ["0", "3"]
    with pytest.warns(UserWarning, match="nothing to quantise for GRU: Linear alone has a quantised form"):
        assert quantised({nn.GRU, nn.Linear}) == ["0", "2.0", "3"]
    with pytest.raises(ValueError, match="no weights of float16; want int8"):
        quantised(None, dtype=genesis.float16)
    with pytest.raises(ValueError, match="want per_channel_dynamic_qconfig or None"):
        quantised({nn.Linear: "fbgemm"})


def test_the_model_is_copied_unless_it_is_told_otherwise():
    given = model()
    assert type(quantize_dynamic(given)[0]) is dynamic.Linear and type(given[0]) is nn.Linear
    assert quantize_dynamic(given, inplace=True) is given and type(given[0]) is dynamic.Linear
    shared = nn.Linear(2, 2)
    twice = quantize_dynamic(nn.Sequential(shared, shared))
    assert twice[0] is twice[1] and type(quantize_dynamic(shared)) is dynamic.Linear
    attention = quantize_dynamic(nn.MultiheadAttention(8, 2))  # which reads the weights of its last layer itself
    assert attention(*[genesis.ones(3, 1, 8)] * 3)[0].shape == (3, 1, 8)


def test_hooks_stay():
    given, seen = model(), []
    given[0].register_forward_hook(lambda module, inputs, output: seen.append(type(module)))
    quantize_dynamic(given, inplace=True)(genesis.ones(1, 48))
    assert seen == [dynamic.Linear]


def test_what_cannot_be_quantised_is_refused():
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="weight is of dtype float64; want float32"):
        dynamic.Linear.from_float(copy.deepcopy(layer).double())
    with pytest.raises(TypeError, match="a ReLU; want an nn"):
        dynamic.Linear.from_float(nn.ReLU())
    with genesis.no_grad():
        layer.weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="NaN or an infinity"):
        dynamic.Linear.from_float(layer)


def test_it_has_no_gradient():
    y = dynamic.Linear.from_float(nn.Linear(2, 2))(genesis.ones(1, 2, requires_grad=True))
    with pytest.raises(RuntimeError, match="linear_dynamic has no gradient; detach its input"):
        y.sum().backward()


def test_it_is_saved_and_read():
    found, x = quantize_dynamic(model()), genesis.randn(3, 48)
    wanted = found(x).tolist()
    assert {name: value.dtype.name for name, value in found.state_dict().items() if name.startswith("0")} == {
        "0.weight": "int8", "0.scale": "float32", "0.bias": "float32"}
    assert pickle.loads(pickle.dumps(found))(x).tolist() == copy.deepcopy(found)(x).tolist() == wanted
    file = io.BytesIO()
    genesis.save(found.state_dict(), file)
    file.seek(0)
    other = quantize_dynamic(model())
    other.load_state_dict(genesis.load(file))
    assert other(x).tolist() == wanted


def test_it_is_replayed_mapped_and_exported(tmp_path):
    found, x = quantize_dynamic(model()), genesis.randn(3, 48)
    wanted = found(x).tolist()
    compiled = genesis.compile(lambda x: found(x))
    assert compiled(x).tolist() == wanted
    assert compiled(x + 0).tolist() == wanted and len(compiled.entries) == 1 and not compiled.missed
    assert genesis.vmap(lambda row: found(row))(x).tolist() == wanted
    assert genesis.vmap(found)(genesis.stack([x, x])).tolist() == [wanted, wanted]
    program = genesis.export(found, x)
    program.save(tmp_path / "model.genesis")
    assert genesis.load_program(tmp_path / "model.genesis")(x).tolist() == wanted
    with pytest.raises(genesis.ExportError, match=r"linear_dynamic at .*test_quantize_dynamic.py:\d+ has no form in ONNX"):
        genesis.onnx.export(found, (x,), tmp_path / "model.onnx")


def test_it_has_pytorchs_names():
    assert all(look_up(f"torch.{path}", "quantize_dynamic") is quantize_dynamic for path in ("quantization", "ao.quantization"))
    assert all(look_up(f"torch.{path}nn.quantized.dynamic", "Linear") is dynamic.Linear for path in ("", "ao."))
    assert look_up("torch", "qint8") is genesis.int8
