"""Files of torch.save read here, and files of genesis.save read by torch.load."""

import copy
import fractions
import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

import genesis
from genesis import nn, optim
from genesis.ir.named_layouts import LAYOUTS

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64",
]


def from_torch(obj, path=None, legacy=False, **options):
    """What genesis reads of a file that torch wrote."""
    file = io.BytesIO() if path is None else path
    torch.save(obj, file, _use_new_zipfile_serialization=not legacy)
    if path is None:
        file.seek(0)
    return genesis.load(file, **options)


def to_torch(obj, **options):
    """What torch reads of a file that genesis wrote."""
    file = io.BytesIO()
    genesis.save(obj, file)
    file.seek(0)
    return torch.load(file, **options)


def assert_same(ours, theirs):
    """Equal containers of equal tensors, which are laid out alike."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, genesis.Tensor)
        assert (ours.dtype.name, ours.shape) == (str(theirs.dtype)[6:], tuple(theirs.shape))
        assert ours.requires_grad == theirs.requires_grad
        assert isinstance(ours, nn.Parameter) == isinstance(theirs, torch.nn.Parameter)
        if theirs.numel() > 1 and not theirs.is_contiguous():
            assert (ours.stride(), ours.storage_offset()) == (theirs.stride(), theirs.storage_offset())
        np.testing.assert_array_equal(
            ours.detach().to(genesis.float64).numpy(), theirs.detach().to(torch.float64).numpy(), strict=True)
    elif isinstance(theirs, dict):
        assert [*ours] == [*theirs] and isinstance(ours, OrderedDict) == isinstance(theirs, OrderedDict)
        for key in theirs:
            assert_same(ours[key], theirs[key])
    elif isinstance(theirs, list | tuple):
        assert isinstance(ours, list) == isinstance(theirs, list) and len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other)
    elif isinstance(theirs, torch.dtype):
        assert ours is getattr(genesis, str(theirs)[6:])
    else:
        assert type(ours).__name__.lower() == type(theirs).__name__.lower() and str(ours) == str(theirs)


def tensors(library, dtype):
    """Tensors of every layout in a dtype: 0-d, empty, a matrix, and views that are not contiguous."""
    x = library.arange(24).reshape(2, 3, 4).to(getattr(library, dtype))
    return [
        x, x[0, 1, 2].clone(), library.zeros(0, 3, dtype=getattr(library, dtype)), x[1:], x[:, ::2, 1], x.permute(2, 0, 1),
        x[0, 0].clone().unsqueeze(0).expand(5, 4), x.reshape(-1)[7:9],
    ]


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_torch_load(dtype, legacy):
    if legacy and dtype in ("uint16", "uint32", "uint64"):
        return  # PyTorch does not write them so
    theirs = tensors(torch, dtype)
    assert_same(from_torch(theirs, legacy=legacy), theirs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_loads_tensors_of_ours(dtype):
    ours = tensors(genesis, dtype)
    assert_same(ours, to_torch(ours, weights_only=True))
    assert_same(ours, to_torch(ours, weights_only=False))


def containers(library, parameter):
    x = library.arange(4.0) if library is torch else library.arange(4).float()
    return {
        "nested": [{"a": (x, [1, 2.5, None, True, "text", b"\x00\xff"])}, OrderedDict(b=x, c=OrderedDict())],
        3: parameter(x.clone()), "frozen": parameter(x.clone(), requires_grad=False), "leaf": x.clone().requires_grad_(),
        "dtype": library.bfloat16, "device": library.device("cpu"), "big": 1 << 80, "set": {1, 2}, "complex": 1 + 2j,
        "counter": Counter("aab"), "bytes": bytearray(b"abc"), "empty": [(), [], {}],
    }


@pytest.mark.parametrize("legacy", [False, True])
def test_containers_of_torch_load(legacy):
    theirs = containers(torch, torch.nn.Parameter)
    assert_same(from_torch(theirs, legacy=legacy), theirs)
    assert_same(from_torch(theirs, legacy=legacy, weights_only=False), theirs)
    assert from_torch({"size": torch.Size([2, 3])}, legacy=legacy) == {"size": (2, 3)}


def test_torch_loads_containers_of_ours():
    ours = containers(genesis, nn.Parameter)
    assert_same(ours, to_torch(ours, weights_only=True))
    assert to_torch(genesis.Size([2, 3])) == torch.Size([2, 3]) and type(to_torch(genesis.Size([2, 3]))) is torch.Size
    assert type(from_torch(torch.Size([2, 3]))) is genesis.Size
    assert genesis.pytree.leaves_of({"shape": genesis.Size([2, 3])}) == [2, 3]


def model_of(library):
    layers = library.nn
    return layers.Sequential(layers.Linear(3, 4), layers.BatchNorm1d(4), layers.ReLU(), layers.Linear(4, 2, bias=False))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_training_goes_on_from_a_torch_file(name, tmp_path):
    torch.manual_seed(0)
    theirs = model_of(torch)
    options = {"momentum": 0.9} if name == "SGD" else {}
    their_optimizer = getattr(torch.optim, name)(theirs.parameters(), lr=0.1, **options)
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))

    def step(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    step(theirs, their_optimizer, x)
    state = from_torch({"model": theirs.state_dict(), "optimizer": their_optimizer.state_dict()}, tmp_path / "state.pt")
    assert state["model"]._metadata if hasattr(state["model"], "_metadata") else isinstance(state["model"], OrderedDict)
    ours = model_of(genesis)
    our_optimizer = getattr(optim, name)(ours.parameters(), lr=0.1, **options)
    ours.load_state_dict(state["model"])
    our_optimizer.load_state_dict(state["optimizer"])
    for _ in range(3):
        expected = step(theirs, their_optimizer, x)
        assert step(ours, our_optimizer, genesis.tensor(x.numpy())) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    genesis.save({"model": ours.state_dict()}, tmp_path / "ours.pth")
    theirs.load_state_dict(torch.load(tmp_path / "ours.pth", weights_only=True)["model"])
    assert theirs[0].weight.detach().numpy() == pytest.approx(ours[0].weight.detach().numpy(), rel=1e-6)


# ---- shared storages ----
def shares(a, b):
    """Whether a write to `a` shows in `b`."""
    before = b.tolist()
    a.detach().add_(1)
    return b.tolist() != before


@pytest.mark.parametrize("legacy", [False, True])
def test_views_of_one_storage_share_it_after_loading(legacy):
    x = torch.arange(6.0)
    loaded = from_torch([x[2:4], x, x.reshape(2, 3).t(), torch.nn.Parameter(x), x.clone()], legacy=legacy)
    part, whole, turned, parameter, apart = loaded
    assert shares(part, whole) and shares(whole, turned) and shares(turned, parameter) and shares(parameter, part)
    assert not shares(whole, apart)
    assert whole.tolist() == [4, 5, 7, 8, 8, 9]
    assert part.storage_offset() == 2 and parameter.requires_grad and parameter.is_leaf
    (parameter * parameter).sum().backward()
    assert parameter.grad.tolist() == [8, 10, 14, 16, 16, 18]


def test_a_parameter_that_comes_first_is_seen_by_views_of_its_storage():
    weight = torch.nn.Parameter(torch.arange(4.0))
    parameter, view = from_torch([weight, weight.detach()[1:3]])
    optim.SGD([parameter], lr=1.0).zero_grad()
    parameter.sum().backward()
    optim.SGD([parameter], lr=1.0).step()
    assert view.tolist() == [0, 1] and not view.requires_grad and isinstance(parameter, nn.Parameter)


def test_tied_weights_are_stored_once_and_stay_tied(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 8)
            self.head = nn.Linear(8, 50, bias=False)
            self.head.weight = self.embedding.weight

    model = Tied()
    genesis.save(model.state_dict(), tmp_path / "tied.pt")
    assert (tmp_path / "tied.pt").stat().st_size < 2 * 50 * 8 * 4
    state = torch.load(tmp_path / "tied.pt")
    assert state["head.weight"].data_ptr() == state["embedding.weight"].data_ptr()
    ours = genesis.load(tmp_path / "tied.pt")
    assert shares(ours["head.weight"], ours["embedding.weight"])


def test_one_object_is_loaded_as_one():
    x = torch.nn.Parameter(torch.ones(2))
    for loaded in (from_torch([x, x]), from_torch([x, x], legacy=True)):
        assert loaded[0] is loaded[1]
    x = genesis.ones(2)
    loaded = to_torch({"a": x, "b": [x]})
    assert loaded["a"] is loaded["b"][0]


def test_attributes_of_tensors_survive():
    x = torch.ones(2)
    x.note = "kept"
    p = torch.nn.Parameter(x.clone())
    p.decay = False
    loaded = from_torch([x, p])
    assert loaded[0].note == "kept" and loaded[1].decay is False and isinstance(loaded[1], nn.Parameter)
    back = to_torch(loaded)
    assert back[0].note == "kept" and back[1].decay is False


# ---- options ----
@pytest.mark.parametrize("legacy", [False, True])
def test_storages_of_torch_load(legacy):
    x = torch.arange(6.0)
    first, part, second = from_torch([x.storage(), x[2:], x.storage()], legacy=legacy)
    assert first.tolist() == x.tolist() and (first.dtype, len(first)) == (genesis.float32, 6)
    first[2] = 9.0
    assert part[0] == 9 and second[2] == 9 and first == second
    copied, view = copy.deepcopy((first, part))
    copied[3] = 8.0
    assert view[1] == 8 and part[1] == 3 and first.clone().tolist() == pickle.loads(pickle.dumps(first)).tolist()


def test_torch_loads_storages_of_ours():
    x = genesis.arange(6.0)
    storage, part = to_torch([x.storage(), x[2:]])
    assert type(storage) is torch.TypedStorage and storage.tolist() == x.tolist()
    assert storage.data_ptr() + 8 == part.data_ptr()
    for library, through in ((genesis, to_torch), (torch, from_torch)):
        y = library.tensor([1, 258])
        assert through(y.untyped_storage()).tolist() == y.untyped_storage().tolist()
        with pytest.raises(RuntimeError):
            through([y.untyped_storage(), y])
    with pytest.raises(TypeError, match="PyTorch has no storages of uint16"):
        to_torch(genesis.zeros(2, dtype=genesis.uint16).storage())


def test_layouts_and_buffers_are_the_others():
    for name in ("strided", "jagged", "sparse_coo", "sparse_bsr"):
        assert to_torch(LAYOUTS[name]) is getattr(torch, name) and from_torch(getattr(torch, name)) is LAYOUTS[name]
    buffer = to_torch(nn.Buffer(genesis.ones(2), persistent=False))
    assert isinstance(buffer, torch.nn.Buffer) and not buffer.persistent
    buffer = from_torch(torch.nn.Buffer(torch.ones(2)))
    assert isinstance(buffer, nn.Buffer) and buffer.persistent and buffer.tolist() == [1, 1]


def test_map_location(tmp_path):
    x = torch.arange(3.0)
    assert from_torch(x, map_location="cpu:1").device == genesis.device("cpu:1")
    assert from_torch(x, map_location=genesis.device("cpu:2")).tolist() == [0, 1, 2]
    assert from_torch(x, map_location={"cpu": "cpu:1"}).device.index == 1
    assert from_torch(x, map_location={"cuda:0": "cpu:1"}).device == genesis.device("cpu")
    seen = []
    assert from_torch(x, map_location=lambda storage, place: seen.append((storage.nbytes(), place))).device.index is None
    assert seen == [(12, "cpu")]
    assert from_torch(x, map_location=lambda storage, place: storage.to("cpu:3")).device.index == 3
    assert from_torch(x, map_location=lambda storage, place: storage).tolist() == [0, 1, 2]
    assert from_torch(x, map_location="cpu:1", legacy=True).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="map_location is a device"):
        from_torch(x, map_location=3)
    genesis.save(genesis.ones(2, device="cpu:1"), tmp_path / "x")
    assert genesis.load(tmp_path / "x").device.index == 1


def test_a_tensor_of_a_missing_device_says_what_to_do(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(3.0), path)
    rewritten(path, lambda name, content: content.replace(b"\x03\x00\x00\x00cpu", b"\x06\x00\x00\x00cuda:7"))
    with pytest.raises(RuntimeError, match="map_location='cpu'"):
        genesis.load(path)
    for place in ("cpu", {"cuda:7": "cpu"}, lambda storage, place: storage):
        assert genesis.load(path, map_location=place).tolist() == [0, 1, 2]


def rewritten(path, change):
    """The zip file with other contents, and the checksums of these."""
    with zipfile.ZipFile(path) as archive:
        records = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in records:
            archive.writestr(name, change(name, content))


def test_mapped_files_are_read_and_not_written(tmp_path):
    path = tmp_path / "x.pt"
    x = torch.arange(1000.0)
    torch.save({"x": x, "half": x[:10].bfloat16(), "view": x[5:7], "b": torch.tensor([True, False])}, path)
    before = path.read_bytes()
    loaded = genesis.load(path, mmap=True)
    assert loaded["x"].sum().item() == x.sum().item() and loaded["half"].tolist() == [*range(10)]
    loaded["x"].add_(1)
    assert loaded["view"].tolist() == [6, 7] and loaded["b"].tolist() == [True, False]
    assert path.read_bytes() == before
    assert genesis.load(path, map_location="cpu:1", mmap=True)["x"].device.index == 1
    genesis.save(loaded, tmp_path / "y.pt")
    assert torch.load(tmp_path / "y.pt", mmap=True)["view"].tolist() == [6, 7]
    with pytest.raises(ValueError, match="wants a path"):
        genesis.load(io.BytesIO(before), mmap=True)
    torch.save(x, path, _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="zip format"):
        genesis.load(path, mmap=True)


@pytest.mark.parametrize("mapping", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "bfloat16", "float64", "bool"])
def test_files_of_the_other_byte_order(tmp_path, dtype, mapping):
    path = tmp_path / "x.pt"
    x = torch.arange(5).to(getattr(torch, dtype))
    torch.save(x, path)
    other = {"little": b"big", "big": b"little"}[sys.byteorder]

    def change(name, content):
        if name.endswith("byteorder"):
            return other
        if "/data/" in name:
            return np.frombuffer(content, f"u{x.itemsize}").byteswap().tobytes()
        return content

    rewritten(path, change)
    assert_same(genesis.load(path, mmap=mapping), x)


def test_compressed_files_load(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.arange(100), path)
    with zipfile.ZipFile(path) as archive:
        records = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in records:
            archive.writestr(name, content)
    assert genesis.load(path).sum().item() == genesis.load(path, mmap=True).sum().item() == 4950


def test_records_are_aligned_and_files_equal():
    def content():
        file = io.BytesIO()
        genesis.save([genesis.ones(5), genesis.ones(3, dtype=genesis.int8), genesis.zeros(0), genesis.ones(7)], file)
        return file.getvalue()

    file = content()
    assert file == content()
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        for info in archive.infolist():
            name, extra = np.frombuffer(file[info.header_offset + 26 : info.header_offset + 30], "<u2")
            assert (info.header_offset + 30 + int(name) + int(extra)) % 64 == 0


# ---- what is refused ----
def test_names_that_are_not_data_want_trust():
    half = fractions.Fraction(1, 2)
    with pytest.raises(pickle.UnpicklingError, match=r"asks for fractions\.Fraction.*weights_only=False"):
        from_torch({"a": half})
    assert from_torch({"a": half}, weights_only=False) == {"a": half}
    with genesis.serialization.safe_globals([fractions.Fraction]):
        assert from_torch({"a": half}) == {"a": half}
    with pytest.raises(pickle.UnpicklingError):
        from_torch({"a": half})
    with pytest.raises(pickle.UnpicklingError, match="asks for"):
        from_torch(np.float64(3))


def test_whole_modules_of_ours_load_when_trusted():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    file = io.BytesIO()
    genesis.save(model, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="asks for genesis"):
        genesis.load(file)
    file.seek(0)
    loaded = genesis.load(file, weights_only=False)
    x = genesis.ones(1, 2)
    assert loaded(x).tolist() == model(x).tolist() and len([*loaded.parameters()]) == 2


UNDER_THE_DOOR = """
import sys
import genesis.as_torch
genesis.as_torch.install()
import torch
import safetensors.torch

for name, x, expected in torch.load(sys.argv[1])["calls"]:
    model = torch.load(sys.argv[1] + "." + name, weights_only=False)
    result = model(x)
    result = result[0] if isinstance(result, tuple) else result
    assert torch.allclose(result, expected, rtol=1e-4, atol=1e-5), name
    assert not model.training
    assert {name for name, _ in model.named_parameters()} <= model.state_dict().keys() - dict(model.named_buffers()).keys()
    safetensors.torch.save_model(model, sys.argv[1] + ".safetensors", {"format": "pt"})
    assert [*map(list, safetensors.torch.load_model(model, sys.argv[1] + ".safetensors"))] == [[], []]
print("equal")
"""


def test_whole_modules_of_torch_load_under_its_name(tmp_path):
    layers = torch.nn
    torch.manual_seed(0)
    models = {
        "net": layers.Sequential(layers.Linear(3, 4), layers.BatchNorm1d(4), layers.ReLU(), layers.Dropout(0.5)),
        "convolution": layers.Conv2d(3, 2, 3, padding=1, bias=False), "lstm": layers.LSTM(3, 4, num_layers=2),
        "norm": layers.LayerNorm(3), "gru": layers.GRU(3, 2), "shared": layers.Sequential(*[layers.Linear(3, 3)] * 2),
    }
    calls = []
    for name, model in models.items():
        model.eval()
        x = torch.randn(2, 3, 5, 5) if name == "convolution" else torch.randn(5, 3) if name == "net" else torch.randn(4, 2, 3)
        result = model(x)
        calls.append((name, x, (result[0] if isinstance(result, tuple) else result).detach()))
        torch.save(model, tmp_path / f"x.{name}")
        with pytest.raises(pickle.UnpicklingError, match=r"PyTorch's own code; want a state_dict"):
            genesis.load(tmp_path / f"x.{name}", weights_only=False)
    torch.save({"calls": calls}, tmp_path / "x")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    program = [sys.executable, "-c", UNDER_THE_DOOR, tmp_path / "x"]
    run = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=200)
    assert run.stdout == "equal\n", run.stderr[-2000:]


def test_dtypes_that_are_not_here_and_other_archives_say_so(tmp_path):
    torch.jit.save(torch.jit.script(torch.nn.Identity()), tmp_path / "script.pt")
    with pytest.raises(pickle.UnpicklingError, match="TorchScript"):
        genesis.load(tmp_path / "script.pt")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("text", "text")
    with pytest.raises(pickle.UnpicklingError, match=r"without a data\.pkl"):
        genesis.load(tmp_path / "other.zip")
