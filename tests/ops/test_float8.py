"""Floats of 8 bits: stored, viewed, converted, exchanged and kept in files as PyTorch has them; refused by operations."""

import io

import numpy as np
import pytest
import torch
from safetensors import torch as their_files

import genesis
from genesis.serialization import safetensors

FLOATS = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
VALUES = [0.0, -0.0, 1.0, -0.3, 300.0, 440.0, 448.0, 460.0, 500.0, -1e6, 1e-3, -1e-9, float("inf"), float("-inf"), float("nan")]


def both(dtype, source=torch.float32):
    theirs = torch.tensor(VALUES, dtype=source)
    return genesis.tensor(theirs.numpy()).to(getattr(genesis, dtype)), theirs.to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_conversions_are_pytorchs(dtype):
    for source in (torch.float32, torch.float64, torch.float16):
        ours, theirs = both(dtype, source)
        assert ours.dtype is getattr(genesis, dtype) and ours.dtype.is_floating_point and ours.element_size() == 1
        for target in ("float32", "float64", "float16", "bfloat16"):
            back, expected = ours.to(getattr(genesis, target)), theirs.to(getattr(torch, target))
            np.testing.assert_array_equal(back.double().numpy(), expected.double().numpy(), strict=True)
            assert back.dtype is getattr(genesis, target)
    np.testing.assert_array_equal(ours.tolist(), theirs.tolist())
    assert repr(genesis.tensor([1.0, 2.0]).to(ours.dtype)) == f"tensor([1., 2.], dtype=genesis.{dtype})"
    every = np.arange(256, dtype=np.uint8)
    ours = genesis.from_dlpack(torch.tensor(every).view(getattr(torch, dtype)))
    np.testing.assert_array_equal(ours.float().numpy(), torch.tensor(every).view(getattr(torch, dtype)).float().numpy())
    for numbers in (np.array([3, 200, -70], np.int32), np.array([True, False])):
        ours, theirs = genesis.tensor(numbers).to(ours.dtype), torch.tensor(numbers).to(getattr(torch, dtype))
        np.testing.assert_array_equal(ours.tolist(), theirs.float().tolist())
        assert ours.int().tolist() == theirs.int().tolist()


@pytest.mark.parametrize("dtype", FLOATS)
def test_views_copies_and_exchange(dtype):
    ours, theirs = both(dtype)
    matrix = ours.reshape(3, 5)
    np.testing.assert_array_equal(matrix.T[1].float().numpy(), theirs.reshape(3, 5).T[1].float().numpy())
    np.testing.assert_array_equal(torch.from_dlpack(matrix).float().numpy(), theirs.reshape(3, 5).float().numpy())
    assert str(matrix[:, 1:].clone().tolist()) == str(matrix.float()[:, 1:].tolist()) and matrix.T.contiguous().is_contiguous()
    assert ours.to("cpu:1").device.index == 1 and ours.numpy().dtype == ours.dtype.numpy
    assert genesis.iinfo(genesis.int8).bits == genesis.finfo(ours.dtype).bits == 8


@pytest.mark.parametrize("dtype", FLOATS)
def test_files_both_ways(dtype, tmp_path):
    ours, theirs = both(dtype)
    file = io.BytesIO()
    torch.save({"x": theirs, "view": theirs[2:5]}, file)
    file.seek(0)
    loaded = genesis.load(file)
    assert loaded["x"].dtype is ours.dtype
    np.testing.assert_array_equal(loaded["view"].tolist(), theirs[2:5].float().tolist())
    file = io.BytesIO()
    genesis.save(ours, file)
    file.seek(0)
    back = torch.load(file)
    assert back.dtype is theirs.dtype and back.view(torch.uint8).tolist() == ours.numpy().view(np.uint8).tolist()
    safetensors.save_file({"x": ours}, tmp_path / "x")
    np.testing.assert_array_equal(safetensors.load_file(tmp_path / "x")["x"].float().numpy(), theirs.float().numpy())
    if dtype == "float8_e8m0fnu":  # the package has no name for it
        return
    assert their_files.load_file(tmp_path / "x")["x"].dtype is theirs.dtype
    their_files.save_file({"x": theirs}, tmp_path / "x")
    np.testing.assert_array_equal(safetensors.load_file(tmp_path / "x")["x"].float().numpy(), theirs.float().numpy())


@pytest.mark.parametrize("dtype", FLOATS)
def test_operations_ask_for_another_dtype(dtype):
    x, kind = genesis.ones(2, 3).to(getattr(genesis, dtype)), getattr(genesis, dtype)
    for wrong in (
        lambda: x + 1, lambda: x + x, lambda: genesis.exp(x), lambda: x.sum(), lambda: x @ x.T, lambda: genesis.cat([x, x]),
        lambda: genesis.ones(2).sum(dtype=kind), lambda: genesis.where(x, 1.0, 2.0),
    ):
        with pytest.raises(TypeError, match=rf"{dtype} is for storage; convert it"):
            wrong()
    assert (genesis.ones(2) + 1).tolist() == [2, 2] and x.float().sum().item() == 6


def test_compiled_calls_convert_anew():
    @genesis.compile
    def doubled(x):
        return x.to(genesis.float8_e5m2).float() * 2

    for number in (1.0, 2.0, 3.0, 4.0):
        assert doubled(genesis.full((2,), number)).tolist() == [2 * number] * 2
