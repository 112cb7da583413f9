"""genesis.save and genesis.load."""

import importlib
import io
import os
import pickle

import numpy as np
import pytest
import torch

import genesis
from genesis import nn, optim


def test_a_training_state_survives_a_file(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    model(genesis.ones(4, 3)).square().sum().backward()
    optimizer.step()
    path = tmp_path / "state"
    genesis.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    state = genesis.load(path)
    for key, value in model.state_dict().items():
        np.testing.assert_array_equal(state["model"][key].numpy(), value.numpy())
    assert state["optimizer"]["state"][0]["step"] == 1 and state["optimizer"]["param_groups"][0]["lr"] == 0.1


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool"])
def test_every_dtype_and_shape_survives(tmp_path, dtype):
    for shape in ((), (0, 3), (2, 3)):
        x = genesis.ones(*shape, dtype=getattr(genesis, dtype))
        genesis.save(x, tmp_path / "x")
        y = genesis.load(tmp_path / "x")
        assert (y.shape, y.dtype, y.tolist()) == (x.shape, x.dtype, x.tolist())


class Trap:
    def __reduce__(self):
        return os.getcwd, ()


def test_a_file_that_would_run_code_is_refused(tmp_path):
    path = tmp_path / "trap"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(pickle.UnpicklingError, match=r"asks for posix\.getcwd"):
        genesis.load(path)
    assert genesis.load(path, weights_only=False) == os.getcwd()


def test_whole_modules_load_when_trusted(tmp_path):
    model = nn.Linear(2, 2)
    genesis.save(model, tmp_path / "model")
    loaded = genesis.load(tmp_path / "model", weights_only=False)
    assert loaded.weight.tolist() == model.weight.tolist() and loaded.weight.requires_grad


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="the system names no open files")
def test_a_pipe_is_written_directly():
    reading, writing = os.pipe()
    genesis.save({"a": genesis.ones(2)}, f"/dev/fd/{writing}")
    os.close(writing)
    with open(reading, "rb") as file:
        assert genesis.load(io.BytesIO(file.read()))["a"].tolist() == [1.0, 1.0]


def test_a_file_in_a_folder_that_may_not_be_written_is_overwritten(tmp_path, monkeypatch):
    path, create = tmp_path / "state.pt", os.open

    def refused(name, *args, **kwargs):  # root, as whom tests may run, is never refused
        if os.path.dirname(name) == str(tmp_path):
            raise PermissionError(13, "Permission denied", name)
        return create(name, *args, **kwargs)

    genesis.save(genesis.ones(1000), path)
    monkeypatch.setattr(os, "open", refused)
    genesis.save(genesis.arange(3), path)
    assert genesis.load(path).tolist() == [0, 1, 2] and os.listdir(tmp_path) == ["state.pt"]
    with pytest.raises(pickle.PicklingError):
        genesis.save(lambda: 0, path)
    assert genesis.load(path).tolist() == [0, 1, 2]
    with pytest.raises(PermissionError, match=r"new\.pt"):
        genesis.save(genesis.ones(1), tmp_path / "new.pt")


@pytest.mark.parametrize("rebind", [lambda x, new: x.set_(new), lambda x, new: setattr(x, "data", new)], ids=["set_", "data"])
@pytest.mark.parametrize("order", [1, -1])
def test_loaded_views_keep_their_storage_when_the_whole_is_rebound(rebind, order):
    def outcome(library):
        whole, file = library.arange(6.0).reshape(3, 2), io.BytesIO()
        library.save([whole, whole[1:]][::order], file)
        file.seek(0)
        whole, part = library.load(file)[::order]
        rebind(whole, library.full((3, 2), 9.0))
        part.add_(1)
        return whole.tolist(), part.tolist()

    assert outcome(genesis) == outcome(torch)


@pytest.mark.parametrize("earlier, today", [
    ("optim.radam", genesis.optim.RAdam), ("optim.lr_scheduler.cosine", genesis.optim.lr_scheduler.CosineAnnealingLR),
    ("distributions.normal", genesis.distributions.Normal), ("distributions.bernoulli", genesis.distributions.Geometric),
    ("ao.nn.quantized.functional_modules", genesis.ao.nn.quantized.FloatFunctional), ("nn.piecewise", genesis.nn.ReLU6),
])
def test_classes_are_found_where_they_are_today_by_their_names_in_earlier_versions(earlier, today):
    written = pickle.dumps(today, protocol=0).replace(today.__module__.encode(), f"genesis.{earlier}".encode())
    assert genesis.load(io.BytesIO(written), weights_only=False) is today and pickle.loads(written) is today
    assert getattr(importlib.import_module(f"genesis.{earlier}"), today.__name__) is today


@pytest.mark.parametrize("written, today", [
    (b"cgenesis.ir.sparse_layouts\nlayout_named\n(Vsparse_csr\ntR.", genesis.sparse_csr),
    (b"cgenesis.as_torch.stand_ins.tensor_types\nstrided\n.", genesis.strided),
])
def test_layouts_are_read_from_pickles_of_earlier_versions(written, today):
    assert pickle.loads(written) is today
