"""Safetensors files, both ways with the safetensors package."""

import json
import os
import pickle
import random
import struct

import numpy as np
import pytest
import safetensors
import safetensors.torch
import torch

import genesis
from genesis import nn
from genesis.serialization import safetensors as ours

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64",
]


def tensors(library):
    made = {dtype: library.arange(6).reshape(2, 3).to(getattr(library, dtype)) for dtype in DTYPES}
    made["scalar"], made["empty"] = library.ones(()), library.zeros(0, 4)
    made["unaligned"] = library.ones(3, dtype=library.int8)
    return made


def assert_same(mine, other):
    assert sorted(mine) == sorted(other)
    for name in mine:
        assert (mine[name].dtype.name, mine[name].shape) == (str(other[name].dtype)[6:], tuple(other[name].shape))
        np.testing.assert_array_equal(mine[name].double().numpy(), other[name].double().numpy(), strict=True)


def test_the_package_and_genesis_write_the_same_bytes():
    theirs = safetensors.torch.save(tensors(torch), {"format": "pt"})
    assert ours.save(tensors(genesis), {"format": "pt"}) == theirs
    assert_same(ours.load(theirs), tensors(torch))


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_files_both_ways(tmp_path, backend):
    safetensors.torch.save_file(tensors(torch), tmp_path / "theirs.safetensors", {"format": "pt", "näme": "ü"})
    assert_same(ours.load_file(tmp_path / "theirs.safetensors", backend=backend), tensors(torch))
    ours.save_file(tensors(genesis), tmp_path / "ours.safetensors", {"format": "pt", "näme": "ü"})
    assert_same(tensors(genesis), safetensors.torch.load_file(tmp_path / "ours.safetensors"))
    with ours.safe_open(tmp_path / "theirs.safetensors", framework="pt", device="cpu") as file:
        assert file.metadata() == {"format": "pt", "näme": "ü"} and sorted(file.keys()) == sorted(tensors(torch))
        assert file.get_slice("float32")[:, 1:].tolist() == [[1, 2], [4, 5]]
        with pytest.raises(ours.SafetensorError, match="no tensor 'nothing'"):
            file.get_tensor("nothing")


def test_mapped_tensors_can_be_written_and_the_file_stays(tmp_path):
    path = tmp_path / "x.safetensors"
    ours.save_file({"x": genesis.arange(1000).float()}, path)
    before = path.read_bytes()
    x = ours.load_file(path)["x"]
    x.mul_(2)
    assert x.sum().item() == 999000 and path.read_bytes() == before
    assert ours.load_file(path, device="cpu:1")["x"].device.index == 1


@pytest.mark.parametrize(("save", "load"), [
    (ours.save_file, ours.load_file), (genesis.save, lambda path: genesis.load(path, mmap=True)),
])
def test_mapped_tensors_are_saved_over_their_file(tmp_path, save, load):
    values = np.random.default_rng(0).random((2, 300, 100), np.float32)
    path, linked = tmp_path / "x", tmp_path / "link"
    save({"a": genesis.tensor(values[0]), "b": genesis.tensor(values[1])}, path)
    path.chmod(0o640)
    linked.symlink_to(path)
    mapped = load(path)
    save({"a": mapped["b"], "b": mapped["a"]}, linked)
    again = load(path)
    for read, want in ((mapped["a"], 0), (mapped["b"], 1), (again["a"], 1), (again["b"], 0)):
        np.testing.assert_array_equal(read.numpy(), values[want])
    assert path.stat().st_mode & 0o777 == 0o640 and linked.is_symlink()
    with pytest.raises((ValueError, AttributeError, pickle.PicklingError)):  # it leaves the former file
        save({"a": mapped["a"], "b": lambda: 0}, path)
    assert sorted(tmp_path.iterdir()) == [linked, path] and load(path)["a"].shape == (300, 100)


def test_a_save_leaves_a_file_its_group_and_owner(tmp_path):
    groups = [group for group in os.getgroups() if group != os.getegid()] if os.geteuid() else [1]
    if not groups:
        pytest.skip("this user has one group")
    owner = os.geteuid() or 1
    path = tmp_path / "x"
    for save in (genesis.save, torch.save):
        save({}, path)
        os.chown(path, owner, groups[0])
        save({}, path)
        assert (path.stat().st_uid, path.stat().st_gid) == (owner, groups[0])


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight


class TorchTied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 4)
        self.head = torch.nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight


def test_models_with_tied_weights_both_ways(tmp_path):
    mine, theirs = Tied(), TorchTied()
    ours.save_model(mine, tmp_path / "ours.safetensors")
    assert safetensors.torch.load_model(theirs, tmp_path / "ours.safetensors") == (set(), [])
    assert theirs.head.weight.tolist() == mine.head.weight.tolist()
    other = TorchTied()
    safetensors.torch.save_model(other, tmp_path / "theirs.safetensors")
    assert ours.load_model(mine, tmp_path / "theirs.safetensors") == ([], [])
    assert mine.embedding.weight.tolist() == mine.head.weight.tolist() == other.head.weight.tolist()
    with ours.safe_open(tmp_path / "ours.safetensors") as file:
        assert file.keys() == ["embedding.weight"] and file.metadata() == {"head.weight": "embedding.weight"}


def test_missing_and_unexpected_names(tmp_path):
    ours.save_file({"weight": genesis.ones(2, 2), "other": genesis.ones(1)}, tmp_path / "x")
    model = nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match=r"lacks \['bias'\], and has \['other'\]"):
        ours.load_model(model, tmp_path / "x")
    assert ours.load_model(model, tmp_path / "x", strict=False) == (["bias"], ["other"])
    assert model.weight.tolist() == [[1, 1], [1, 1]]


def test_what_cannot_be_saved_is_refused_before_the_file_is_written(tmp_path):
    x = genesis.ones(2, 3)
    for wrong, kind, message in (
        ({"t": x.t()}, ValueError, "not contiguous"), ({"a": x, "b": x[1]}, RuntimeError, "share memory"),
        ({"a": 1}, ValueError, "want a dict of tensors"),
    ):
        with pytest.raises(kind, match=message):
            ours.save_file(wrong, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert len(ours.load(ours.save({"a": x[0], "b": x[1]}))) == 2  # parts of one tensor that do not overlap
    with pytest.raises(TypeError, match="metadata"):
        ours.save({"a": x}, {"a": 1})


def crafted(header, data=bytes(8)):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(**changes):
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}


@pytest.mark.parametrize("content", [
    b"", b"abc", struct.pack("<Q", 1 << 60) + b"{}", crafted(b"{"), crafted(b"[]"), crafted(one(shape=[3])),
    crafted(one(shape=[-2])), crafted(one(shape=[2.0])), crafted(one(data_offsets=[0, 12])), crafted(one(data_offsets=[4, 12])),
    crafted(one(data_offsets=[8, 0])), crafted(one(dtype="F31")), crafted(one(dtype=3)), crafted({"x": 3}), crafted({}),
    crafted(one(), bytes(12)), crafted(one() | {"y": one()["x"]}), crafted(one() | {"__metadata__": {"a": 1}}),
    crafted(b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'),
    crafted(one(shape=[1 << 40, 1 << 40])), crafted(one(shape=[1] * 70)),
], ids=range(21))
def test_damaged_files_are_refused(content, tmp_path):
    with pytest.raises(ours.SafetensorError, match="load: "):
        ours.load(content)
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ours.SafetensorError, match="load: "):
        ours.load_file(tmp_path / "x")


def test_mutated_files_are_refused_as_the_package_refuses_them():
    content = ours.save(tensors(genesis), {"format": "pt"})
    for seed in range(1000):
        chosen = random.Random(seed)
        changed = bytearray(content)
        for _ in range(chosen.choice((1, 1, 2))):
            changed[chosen.randrange(900)] = chosen.choice((chosen.randrange(256), ord(str(chosen.randrange(10)))))
        try:
            loaded = ours.load(bytes(changed))
        except ours.SafetensorError:
            continue
        theirs = dict(safetensors.deserialize(bytes(changed)))  # what loads here loads there
        assert {name: [*tensor.shape] for name, tensor in loaded.items()} == {n: t["shape"] for n, t in theirs.items()}
