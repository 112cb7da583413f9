"""ONNX models of inference graphs agree with the functions, computed by onnxruntime."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import genesis
from genesis import nn
from genesis.ops.layout import Layout
from genesis.pytree import leaves_of
from tests.shipping import programs

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
steps_of = pytest.importorskip("genesis.onnx.layouts").steps_of


def agree(function, *arguments, **options):
    """Compare what the model computes with what the function does; returns the model's operators."""
    model = genesis.onnx.export(function, arguments, **options)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    found = session.run(None, {name: x.numpy() for name, x in zip(names, arguments, strict=True)})
    with genesis.no_grad():
        wanted = [leaf.numpy() for leaf in leaves_of(function(*arguments))]
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    return [node.op_type for node in model.graph.node]


def test_an_mlp_a_cnn_an_lstm_and_a_gpt():
    assert "Erf" in agree(programs.mlp(), genesis.randn(4, 5))
    operators = agree(programs.cnn(), genesis.randn(2, 2, 8, 8))
    assert operators.count("Conv") == operators.count("MaxPool") == 1 and "Gather" not in operators
    agree(nn.LSTM(3, 4, num_layers=2), genesis.randn(5, 2, 3))
    assert "Gather" not in agree(programs.GPT().eval(), genesis.randint(0, 17, (2, 16)))


def test_other_convolutions_and_pools():
    layers = nn.Sequential(nn.Conv2d(4, 4, 3, padding="same", groups=2), nn.AvgPool2d(2), nn.ConvTranspose2d(4, 2, 2)).eval()
    agree(layers, genesis.randn(1, 4, 6, 6))


_STEPS = {
    "Reshape": lambda x, shape: x.reshape(shape), "Transpose": lambda x, perm: x.transpose(perm),
    "Gather": lambda x, places, axis: x[places], "Expand": np.broadcast_to,
    "Slice": lambda x, starts, ends, axes, steps: x[tuple(map(slice, starts, ends, steps))],
}


@given(st.data())
def test_views_of_every_kind(data):
    x = whole = np.arange(24.0).reshape(data.draw(st.sampled_from([(2, 3, 4), (4, 1, 6), (24,)])))
    for _ in range(3):
        kind = data.draw(st.sampled_from(("permute", "slice", "expand", "diagonal", "step", "windows")))
        if kind == "permute":
            x = x.transpose(data.draw(st.permutations(range(x.ndim))))
        elif kind == "slice":
            x = x[1:]
        elif kind == "step":
            x = x[..., ::2]
        elif kind == "expand" and x.ndim < 4:
            x = np.broadcast_to(x, (2, *x.shape))
        elif kind == "diagonal" and x.ndim > 1:
            x = x.diagonal()
        elif kind == "windows" and x.shape[0] > 1:
            x = np.lib.stride_tricks.sliding_window_view(x, 2, 0)
    offset = (x.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // 8
    found = whole
    for step in steps_of(whole.shape, Layout(x.shape, tuple(stride // 8 for stride in x.strides), offset)):
        found = _STEPS[step.op](found, *step.operands, **dict(step.attributes))
    np.testing.assert_array_equal(found, x)


def test_names_files_and_dtypes(tmp_path):
    def function(x, i):
        return x.mean(1), (x > 0) & (i[:, None] != 2), x[i], x.double() / 3, i.clamp(min=1)

    arguments = genesis.randn(3, 3), genesis.tensor([0, -1, 2])
    agree(function, *arguments, input_names=["values", "places"])
    genesis.onnx.export(function, arguments, tmp_path / "model.onnx", output_names=list("abcde"))
    model = onnx.load(tmp_path / "model.onnx")
    assert [one.name for one in model.graph.output] == list("abcde")
    assert [one.name for one in model.graph.input] == ["x", "i"]


def test_what_onnx_has_no_form_for_names_the_line():
    with pytest.raises(genesis.ExportError, match=r"lgamma at test_onnx.py:\d+ has no form"):
        genesis.onnx.export(lambda x: x.lgamma(), genesis.ones(3))
    with pytest.raises(genesis.ExportError, match="complex"):
        genesis.onnx.export(lambda x: genesis.complex(x, x), genesis.ones(3))
    with pytest.raises(ValueError, match="dynamic_axes"):
        genesis.onnx.export(lambda x: x, genesis.ones(3), dynamic_axes={"x": {0: "n"}})
    with pytest.raises(genesis.ExportError, match=r"eval\(\)"):
        genesis.onnx.export(nn.BatchNorm1d(3), genesis.randn(4, 3))
