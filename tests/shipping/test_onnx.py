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


def agree(function, *arguments, others=(), **options):
    """Compare what the model computes with what the function does, of `others` too; returns the model's operators."""
    model = genesis.onnx.export(function, arguments, **options)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    for tensors in (arguments, *others):
        found = session.run(None, {name: x.numpy() for name, x in zip(names, tensors, strict=True)})
        with genesis.no_grad():
            wanted = [leaf.numpy() for leaf in leaves_of(function(*tensors))]
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
    agree(nn.ConvTranspose2d(4, 2, 3, 2).eval(), genesis.randn(1, 4, 6, 6))  # windows over each other


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
    with pytest.raises(genesis.ExportError, match=r"eval\(\)"):
        genesis.onnx.export(nn.BatchNorm1d(3), genesis.randn(4, 3))


def test_batches_and_sequences_of_other_sizes():
    sizes = {"indices": {0: "batch", 1: genesis.Dim("time", max=32)}}
    others = [(genesis.randint(0, 17, shape),) for shape in ((1, 1), (5, 2), (1, 32))]
    operators = agree(programs.GPT().eval(), genesis.randint(0, 17, (2, 16)), others=others, dynamic_shapes=sizes)
    assert "Gather" not in operators and "GatherElements" in operators
    others = [(genesis.randn(1, 2, 8, 8),), (genesis.randn(9, 2, 8, 8),)]
    operators = agree(programs.cnn(), genesis.randn(2, 2, 8, 8), others=others, dynamic_axes={"input": [0]})
    assert operators.count("Conv") == operators.count("MaxPool") == 1
    agree(nn.LSTM(3, 4), genesis.randn(4, 2, 3), others=[(genesis.randn(4, 5, 3),)], dynamic_axes={"input": {1: "batch"}})


def test_numbers_that_follow_from_sizes():
    def function(x):
        n = x.shape[0]
        pairs = genesis.zeros(n * (n - 1) // 2) + x.sum()
        wide = x.expand(4, n, 6).flatten()
        return x.mean(0) * n**-0.5, x.tril(), x[1:] - x[:-1], pairs, wide, nn.functional.pad(x, (0, 0, 2, 1))

    others = [(genesis.randn(n, 6),) for n in (2, 3, 9)]
    agree(function, genesis.randn(6, 6), others=others, dynamic_shapes=[{0: genesis.Dim("n", min=2)}])
    windows = [(genesis.randn(n),) for n in (3, 17)]
    agree(lambda x: x.unfold(0, 3, 1) * 2, genesis.randn(6), others=windows, dynamic_shapes=[{0: genesis.Dim("n", min=3)}])
    indices = [(genesis.randn(1, 2),), (genesis.randn(8, 2),)]
    agree(lambda x: x[genesis.tensor([0, -1])], genesis.randn(4, 2), others=indices, dynamic_axes={"x": {0: "n"}})


def test_dynamic_axes_have_names():
    def shapes(model):
        extents = [one.type.tensor_type.shape.dim for one in (*model.graph.input, *model.graph.output)]
        return [[extent.dim_param or extent.dim_value for extent in one] for one in extents]

    examples = genesis.ones(3, 2), genesis.ones(2, 4)
    program = genesis.export(lambda x, y: (x @ y, x.flatten()), *examples, dynamic={"x": {0: "rows"}})
    assert shapes(genesis.onnx.export(program)) == [["rows", 2], [2, 4], ["rows", 4], [0]]

    def both(x, *, pair):
        return x + pair["a"][0]

    given = (genesis.ones(3),), {"pair": {"a": [genesis.ones(3)]}}
    model = genesis.onnx.export(both, given[0], kwargs=given[1], input_names=["x", "y"], output_names=["z"],
                                dynamic_axes={"x": {0: "n"}, "y": {0: "n"}, "z": {0: "n"}})
    assert shapes(model) == [["n"]] * 3
    with pytest.raises(ValueError, match="dynamic_axes names 'w'; the inputs are x"):
        genesis.onnx.export(lambda x: x, genesis.ones(3), dynamic_axes={"w": {0: "n"}})
    with pytest.raises(ValueError, match="n may be 0"):
        genesis.onnx.export(lambda x: x + 1, genesis.ones(3), dynamic_shapes=[{0: genesis.Dim("n", min=0)}])
    with pytest.raises(ValueError, match="its own dynamic sizes"):
        genesis.onnx.export(program, dynamic_axes={"x": {0: "n"}})


@pytest.mark.parametrize(("function", "reason"), [
    (lambda x: x.reshape(2, 3, 2), r"n=\d+ the function fails at test_onnx.py:\d+: reshape"),
    (lambda x: x[: x.shape[0] // 2] * 2, r"no form for n=1 at test_onnx.py:\d+"),
])
def test_what_depends_on_a_recorded_size_is_refused_with_the_line(function, reason):
    with pytest.raises(genesis.ExportError, match=reason):
        genesis.onnx.export(function, genesis.randn(6, 2), dynamic_axes={"x": {0: "n"}})


def test_a_window_as_large_as_a_dynamic_axis_is_no_operator_of_fixed_windows():
    operators = agree(lambda x: nn.functional.max_pool2d(x[None], (x.shape[0], 1), (1, 1)), genesis.randn(6, 2),
                      others=[(genesis.randn(3, 2),)], dynamic_axes={"x": [0]})
    assert "MaxPool" not in operators
