"""The ways in which PyTorch's functions may be called: names of arguments, forms of sizes, 0-d tensors. Values are torch's."""

import pickle
import warnings

import numpy as np
import pytest
import torch

import genesis

CALLS = """
    lib.permute(input=x, dims=(1, 0))
    x.permute(dims=(1, 0))
    lib.flip(input=x, dims=(0,))
    lib.reshape(x, shape=(3, 2))
    lib.swapaxes(x, axis0=0, axis1=1)
    lib.tile(x, dims=(2,))
    x[0].expand(size=(2, 3))
    x.view(size=(3, 2))
    lib.split(x, split_size_or_sections=2, dim=1)[0]
    x.split(split_size=[1, 2], dim=1)[1]
    lib.tensor_split(x, sections=2, dim=1)[1]
    lib.broadcast_to(x[0], size=(2, 3))
    lib.transpose(x, dim0=0, dim1=1)
    lib.max(x, other=x.flip(0))
    lib.min(x, x.sum())
    lib.min(x.sum(), x.prod())
    lib.sum(x, axis=0, keepdims=True)
    lib.searchsorted(x[1], x, sorter=lib.argsort(x[1]))
    lib.scatter(x, 0, at, value=3.0)
    lib.pinverse(x, rcond=1e-3)
    lib.scatter(x, 0, at, 1.5, reduce='add')
    lib.linalg.matrix_rank(x, tol=1e-3)
    lib.cholesky_solve(x.T, input2=lib.eye(3))
    lib.gather(x.sum(), 0, at[0, 0])
    lib.gather(x[0], 0, at[0, 0])
    lib.scatter(x.sum(), 0, at[0, :1], x[0, :1])
    lib.scatter_add(x.sum(), 0, at[0, 0], x.sum())
    lib.scatter_reduce(x.sum(), 0, at[0, 0], x.sum(), 'prod')
    lib.index_select(x.sum(), 0, at[0, :1])
    x.sum().index_add(0, at[0, 0], x.sum())
    x.sum().index_fill(0, at[0, 0], 2.0)
    lib.zeros_like(lib.empty(size=(2, 3)))
    lib.zeros(size=[2, 3], layout=lib.strided, pin_memory=False)
    lib.ones((2, 3), requires_grad=False)
    x.new_ones(size=(2, 3))
    x.new_zeros(size=[2], dtype=lib.int64, pin_memory=False)
    x.new_empty(size=(1, 2)).zero_()
    lib.randint(high=1, size=(2, 3))
    lib.randint(1, (2, 3), dtype=lib.int32)
    lib.randint(0, 1, size=(2,), requires_grad=False)
    lib.randn_like(x, requires_grad=True).shape[0] + x * 0
    lib.zeros_like(x, memory_format=lib.preserve_format)
    x.share_memory_()
    lib.arange(3, pin_memory=False)
"""


@pytest.mark.parametrize("call", [call.strip() for call in CALLS.strip().splitlines()])
def test_calls_give_what_they_give_in_torch(call):
    values, at = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]], np.float32), np.array([[0, 1, 0], [1, 0, 0]])
    formats = {name: None for name in ("strided", "preserve_format")}
    ours = type("lib", (), {"__getattr__": lambda _, name: formats[name] if name in formats else getattr(genesis, name)})()
    want = eval(call, {"lib": torch, "x": torch.tensor(values), "at": torch.tensor(at)})
    have = eval(call, {"lib": ours, "x": genesis.tensor(values), "at": genesis.tensor(at)})
    assert have.shape == tuple(want.shape)
    assert have.dtype.name == str(want.dtype).removeprefix("torch.")
    np.testing.assert_allclose(have.numpy(force=True), want.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_unknown_settings_of_new_tensors_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        genesis.zeros(2, colour="red")
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        genesis.rand(2, colour="red")


def test_functions_of_networks_pickle():
    functional = genesis.nn.functional
    for name in ("relu", "gelu", "softmax", "dropout", "relu_", "unfold", "scaled_dot_product_attention", "batch_norm"):
        function = getattr(functional, name)
        assert pickle.loads(pickle.dumps(function)) is function
    layer = genesis.nn.TransformerEncoderLayer(4, 2, 8, activation=functional.gelu)
    assert pickle.loads(pickle.dumps(layer)).activation is functional.gelu


def test_mixed_precision_for_a_gpu_that_is_not_there_warns_and_is_off():
    if genesis.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.warns(UserWarning, match="CUDA is not available"), genesis.autocast("cuda", dtype=genesis.float16):
        assert (genesis.ones(2, 2) @ genesis.ones(2, 2)).dtype is genesis.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not genesis.amp.GradScaler("cuda").is_enabled()
    x = genesis.ones(2, 2)
    with warnings.catch_warnings(), genesis.autocast("cpu"):
        warnings.simplefilter("error")
        with genesis.autocast("cuda", enabled=False):  # says nothing of the CPU
            assert (x @ x).dtype is genesis.bfloat16 and not genesis.amp.GradScaler("cuda", enabled=False).is_enabled()
    with pytest.raises(ValueError, match="not available"):
        genesis.autocast("nonsense")


def test_sizes_are_tuples_with_methods():
    size = genesis.Size([2, 3])
    assert size == (2, 3) and size.numel() == 6 and isinstance(size[:1], genesis.Size) and size[0] == 2
    assert isinstance(size + size, genesis.Size) and size + size == (2, 3, 2, 3)
    assert genesis.zeros(size).shape == size and genesis.zeros(6).reshape(size).shape == size
    assert pickle.loads(pickle.dumps(size)) == size and repr(size) == "genesis.Size([2, 3])"
    with pytest.raises(TypeError, match="extents must be ints"):
        genesis.Size([1.5])
