"""`torch.export` and `torch.onnx.export` of genesis, by PyTorch's names."""

import subprocess
import sys

_SCRIPT = """
import os, tempfile
import torch
from torch import nn
assert torch.export.Dim("batch").__name__ == "batch"  # without an import of its own
from torch.export import Dim, ExportedProgram, export
module = nn.Linear(3, 2).eval()
x = torch.randn(4, 3)
program = export(module, (x,), dynamic_shapes={"input": {0: Dim("batch", max=64), 1: 3}})
assert isinstance(program, ExportedProgram) and program.graph_signature.parameters == ("weight", "bias")
assert torch.equal(program.module()(torch.cat([x, x])), module(torch.cat([x, x])))
path = os.path.join(tempfile.mkdtemp(), "program.pt2")
torch.export.save(program, path)
assert torch.equal(torch.export.load(path).module()(x), module(x))
torch.onnx.export(module, (x,), path, input_names=["x"], dynamo=True)
import onnx
assert [one.name for one in onnx.load(path).graph.input] == ["x"]
for sizes in ({"dynamic_axes": {"x": {0: "batch"}}}, {"dynamic_shapes": {"input": {0: Dim("batch"), 1: 3}}}):
    torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"], **sizes)
    model = onnx.load(path).graph
    assert [one.type.tensor_type.shape.dim[0].dim_param for one in (*model.input, *model.output)] == ["batch"] * 2
class Both(nn.Module):
    def forward(self, x, pair):
        return x @ pair[0] + pair[1]
both, y = Both(), torch.randn(3, 2)
by_tensor = torch.export.ShapesCollection()
by_tensor[x] = (Dim("batch"), None)
by_tensor[y][1] = Dim("width")
by_tensor[x[0, :1]] = {}
try:
    export(both, (x, [y, x[0, :1]]), dynamic_shapes=by_tensor)
except ValueError as problem:
    assert "not among the arguments" in str(problem)
z = torch.zeros(1)
by_tensor = torch.export.ShapesCollection()
by_tensor[x] = (Dim("batch"), None)
by_tensor[y][1] = Dim("width")
more = torch.export.AdditionalInputs()
more.add((torch.randn(5, 3), [torch.randn(3, 7), z]))
for shapes in (by_tensor, more):
    program = torch.export.draft_export(both, (x, [y, z]), dynamic_shapes=shapes)
    u, v = torch.randn(6, 3), torch.randn(3, 5)
    assert torch.allclose(program.module()(u, [v, z]), both(u, [v, z]))
more.verify(program)
assert more.dynamic_shapes(both, (x,), {"pair": [y, z]}).keys() == {"x", "pair"}
try:
    export(lambda x: x, (x,))
except ValueError as problem:
    print(problem)
"""


def test_a_module_is_exported_saved_and_loaded(tmp_path):
    (tmp_path / "script.py").write_text(_SCRIPT)
    ran = subprocess.run([sys.executable, "-m", "genesis.as_torch", "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "wants a module, got function" in ran.stdout


def test_its_modules_are_there_without_the_package_onnx(tmp_path):
    (tmp_path / "script.py").write_text("""
import sys
sys.modules["onnx"] = None  # as if it were not installed
import torch
import torch.onnx.symbolic_helper
assert not torch.onnx.is_in_onnx_export()
try:
    torch.onnx.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
except ImportError:
    print("is needed for files")
""")
    ran = subprocess.run([sys.executable, "-m", "genesis.as_torch", "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "is needed for files\n"), ran.stderr


def test_settings_of_the_exporters_have_an_effect_or_are_refused(tmp_path):
    (tmp_path / "script.py").write_text("""
import io
import torch
module, x = torch.nn.Linear(3, 2).eval(), torch.randn(4, 3)
program = torch.export.export(module, (x,), strict=True)
file = io.BytesIO()
torch.export.save(program, file, pickle_protocol=4)
file.seek(0)
assert torch.equal(torch.export.load(file).module()(x), module(x))
model = torch.onnx.export(module, (x,), opset_version=17, keep_initializers_as_inputs=True, verbose=True, dynamo=False)
assert model.opset_import[0].version == 17 and {"weight", "bias"} < {one.name for one in model.graph.input}
for call in (
    lambda: torch.export.export(module, (x,), stricter=True), lambda: torch.export.save(program, file, extra_files={"a": "b"}),
    lambda: torch.export.load(file, expected_opset_version={"aten": 3}), lambda: torch.onnx.export(module, (x,), optimise=True),
    lambda: torch.onnx.export(module, (x,), custom_translation_table={torch.sin: torch.cos}),
    lambda: torch.onnx.export(module, (x,), export_params=False),
    lambda: torch.onnx.export(module, (x,), training=torch.onnx.TrainingMode.TRAINING),
):
    try:
        call()
    except (TypeError, ValueError) as problem:
        print(type(problem).__name__)
""")
    ran = subprocess.run([sys.executable, "-m", "genesis.as_torch", "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert [*ran.stdout.split()] == ["TypeError", *["ValueError"] * 2, "TypeError", *["ValueError"] * 3], ran.stderr
