"""Names that stand behind PyTorch's paths: what they do is what they do there."""

import collections

import numpy as np
import pytest
import torch
import torch.utils._pytree
import torch.utils.data

import genesis
from genesis.as_torch.finder import look_up
from genesis.as_torch.stand_ins import cpu
from genesis.autograd import forward_ad, graph

VALUES = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]], np.float32)


def of_path(path: str):
    home, _, name = path.rpartition(".")
    return look_up(home, name)


@pytest.mark.parametrize("path, arguments", [
    ("torch.hann_window", (7,)), ("torch.hamming_window", (6, False)), ("torch.blackman_window", (5,)),
    ("torch.kaiser_window", (5,)), ("torch.bartlett_window", (4, False)), ("torch.range", (1, 4, 0.5)),
    ("torch.vander", ("row",)), ("torch.nuclear_norm", ("x",)), ("torch.get_device", ("x",)), ("torch.typename", ("x",)),
    ("torch.nn.modules.utils._pair", (3,)), ("torch.frombuffer", (b"0123", )),
])
def test_functions_of_torch_itself(path, arguments):
    known = [{"row": VALUES[0], "x": VALUES}.get(a, a) if isinstance(a, str) else a for a in arguments]
    keywords = {"frombuffer": ({"dtype": genesis.uint8}, {"dtype": torch.uint8})}.get(path.rpartition(".")[2], ({}, {}))
    have = of_path(path)(*[genesis.tensor(a) if isinstance(a, np.ndarray) else a for a in known], **keywords[0])
    want = eval(path, {"torch": torch})(*[torch.tensor(a) if isinstance(a, np.ndarray) else a for a in known], **keywords[1])
    if isinstance(want, torch.Tensor):
        np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    else:
        assert str(have).replace("genesis", "torch") == str(want)


def test_trees_are_taken_apart_as_pytorch_takes_them():
    pair = collections.namedtuple("pair", "a b")
    tree = {"a": [1, (2, None)], "b": pair(3, {})}
    theirs = torch.utils._pytree
    leaves, structure = of_path("torch.utils._pytree.tree_flatten")(tree)
    assert leaves == theirs.tree_flatten(tree)[0]
    assert of_path("torch.utils._pytree.tree_unflatten")(leaves, structure) == tree
    for name, given in [("tree_map", (str, tree)), ("tree_map_only", (int, lambda n: n + 1, tree)), ("tree_leaves", (tree,)),
                        ("tree_map", (lambda a, b: (a, b), [1, 2], [3, 4]))]:
        assert of_path(f"torch.utils._pytree.{name}")(*given) == getattr(theirs, name)(*given)


def test_assert_close_agrees_with_torchs():
    pairs = [(1.0, 1.0 + 1e-8), (1.0, 1.1), (VALUES, VALUES + 1e-7), (VALUES, VALUES * 1.01), (VALUES, VALUES[0]),
             ([VALUES, 1], [VALUES, 2]), ({"a": VALUES}, {"b": VALUES}), (np.float32([np.nan]), np.float32([np.nan])),
             (VALUES, VALUES.astype(np.float64)), ([1], [1, 2])]

    def tensors(lib, tree):
        if isinstance(tree, dict):
            return {k: tensors(lib, v) for k, v in tree.items()}
        return [tensors(lib, t) for t in tree] if isinstance(tree, list) else (
            lib.tensor(tree) if isinstance(tree, np.ndarray) else tree)

    for pair in pairs:
        failed = []
        for lib in (genesis, torch):
            try:
                lib.testing.assert_close(*[tensors(lib, x) for x in pair])
                failed.append(False)
            except AssertionError:
                failed.append(True)
        assert failed[0] == failed[1], pair
    with pytest.raises(AssertionError, match=r"mine: assert_close: .* elements differ"):
        genesis.testing.assert_close(genesis.ones(2), genesis.zeros(2), msg=lambda text: f"mine: {text}")
    with pytest.raises(ValueError, match="together"):
        genesis.testing.assert_close(1.0, 1.0, rtol=0.1)


def test_forward_derivatives_of_dual_tensors_are_torchs():
    point, along = VALUES, np.flip(VALUES, 0).copy()
    theirs = torch.autograd.forward_ad
    found = []
    for lib, module in ((genesis, forward_ad), (torch, theirs)):
        weight = lib.tensor(VALUES.T.copy())
        with module.dual_level():
            x = module.make_dual(lib.tensor(point), lib.tensor(along))
            y = (x.sin() @ weight).exp().sum(0)
            result, tangent = module.unpack_dual(y)
            found += [result.numpy(), tangent.numpy(), module.unpack_dual(x).tangent.numpy()]
            assert module.unpack_dual(weight * 2).tangent is None
    for have, want in zip(found[:3], found[3:], strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5)
    with pytest.raises(RuntimeError, match="no level"):
        forward_ad.make_dual(genesis.ones(1), genesis.ones(1))


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_on_several_gradients(mode):
    seen = {}
    for lib, module in ((genesis, graph), (torch, torch.autograd.graph)):
        x, y, calls = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True), []
        handle = module.register_multi_grad_hook([x, y], calls.append, mode=mode)
        (x * 2 + y * 3).sum().backward()
        handle.remove()
        (x * 2 + y * 3).sum().backward()
        seen[lib.__name__] = len(calls), len(calls[0])
    assert seen["genesis"] == seen["torch"] == (1, 2)


def test_random_numbers_are_as_before_behind_fork_rng():
    genesis.manual_seed(3)
    with genesis.random.fork_rng():
        first = genesis.rand(2)
    assert (first == genesis.rand(2)).all()


def test_datasets_chain_and_stack():
    for lib in (genesis.utils.data, torch.utils.data):
        assert [*lib.ChainDataset([[1, 2], [3]])] == [1, 2, 3] if lib is genesis.utils.data else True
        assert lib.StackDataset([1, 2], [3, 4])[1] == (2, 4) and len(lib.StackDataset(a=[1, 2])) == 2
        with pytest.raises(ValueError):
            lib.StackDataset([1], [1, 2])


def test_distributed_samplers_share_out_all_positions():
    for drop_last in (False, True):
        ours = [genesis.utils.data.DistributedSampler(range(7), 3, rank, False, drop_last=drop_last) for rank in range(3)]
        theirs = [torch.utils.data.DistributedSampler(range(7), 3, rank, False, drop_last=drop_last) for rank in range(3)]
        assert [[*s] for s in ours] == [[*s] for s in theirs] and [len(s) for s in ours] == [len(s) for s in theirs]
    shuffled = genesis.utils.data.DistributedSampler(range(6))
    before = [*shuffled]
    shuffled.set_epoch(1)
    assert sorted(before) == [*range(6)] and [*shuffled] != before


def test_functions_under_autocast_are_cast_as_they_say():
    fwd, bwd = of_path("torch.amp.custom_fwd"), of_path("torch.amp.custom_bwd")

    class Product(genesis.Function):
        @staticmethod
        @fwd(device_type="cpu", cast_inputs=genesis.float32)
        def forward(ctx, a, b):
            assert not genesis.is_autocast_enabled()
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @bwd(device_type="cpu")
        def backward(ctx, gradient):
            a, b = ctx.saved_tensors
            return gradient @ b.T, a.T @ gradient

    x = genesis.ones(2, 2, requires_grad=True)
    with genesis.autocast():
        y = Product.apply(x, genesis.ones(2, 2).bfloat16())
        assert y.dtype is genesis.float32
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_pooling_with_indices_is_torchs():
    images = np.random.RandomState(0).randn(1, 2, 6, 6).astype(np.float32)
    for name, size in (("max_pool2d_with_indices", 2), ("adaptive_max_pool2d_with_indices", 3)):
        ours = of_path(f"torch.nn.functional.{name}")(genesis.tensor(images), size)
        theirs = getattr(torch.nn.functional, name)(torch.tensor(images), size)
        for have, want in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(have.numpy(), want.numpy())


@pytest.mark.parametrize("name", [
    "view_as_real_copy", "view_as_complex_copy", "sym_max", "sym_ite", "sym_not", "_sym_sqrt", "sym_fresh_size",
    "sym_constrain_range", "sym_constrain_range_for_size", "dequantize"])
def test_copies_of_views_and_numbers_of_tracers(name):
    def called(lib, function):
        x = lib.tensor([[1.0, -2.0]])
        given = {"view_as_real_copy": (lib.view_as_complex(x),), "view_as_complex_copy": (x,), "dequantize": (x.int(),),
                 "sym_max": (3, 4),
                 "sym_ite": (True, 1, 2), "sym_not": (False,)}.get(name, (4,))
        result = function(*given)
        return result.tolist() if isinstance(result, lib.Tensor) else result

    assert called(genesis, look_up("torch", name)) == called(torch, getattr(torch, name))


def test_a_branch_is_chosen_by_a_value():
    cond, x = look_up("torch", "cond"), genesis.ones(2)
    assert [cond(x.sum() > least, lambda x: x * 2, lambda x: -x, (x,)).tolist() for least in (1, 3)] == [[2, 2], [-1, -1]]


def test_parts_of_sparse_tensors_are_copied():
    for lib, of in ((genesis, lambda name: look_up("torch", name)), (torch, lambda name: getattr(torch, name))):
        x = lib.tensor([[0.0, 2.0], [3.0, 0.0]])
        parts = {"crow_indices": x.to_sparse_csr(), "col_indices": x.to_sparse_csr(), "values": x.to_sparse_csr(),
                 "ccol_indices": x.to_sparse_csc(), "row_indices": x.to_sparse_csc()}
        for name, matrix in parts.items():
            copy = of(f"{name}_copy")(matrix)
            assert copy.tolist() == getattr(matrix, name)().tolist()
            copy += 1
            assert copy.tolist() != getattr(matrix, name)().tolist()
        assert of("hsmm")(x.to_sparse(), x).to_dense().tolist() == (x @ x).tolist()
        assert not isinstance(3, of("SymInt")) and not isinstance(True, of("SymBool"))
    for value in (-1, 5):
        for function in (look_up("torch", "sym_constrain_range_for_size"), torch.sym_constrain_range_for_size):
            with pytest.raises(RuntimeError, match="Invalid value range"):
                function(value, max=4)


def test_a_convolution_by_the_name_of_a_kernel():
    images, weight = np.random.RandomState(0).randn(2, 4, 5, 5).astype(np.float32), VALUES.reshape(2, 3)[:, :2].copy()
    given = [1, 0], [2, 1], [1, 1], 2
    kernel = np.tile(weight[:, :, None, None], (1, 1, 2, 2))
    have = of_path("torch.mkldnn_convolution")(genesis.tensor(images), genesis.tensor(kernel), None, *given)
    want = torch.mkldnn_convolution(torch.tensor(images), torch.tensor(kernel), None, *given)
    np.testing.assert_allclose(have.numpy(), want.numpy(), rtol=1e-5, atol=1e-5)


def test_the_processor_is_a_device():
    for lib in (cpu, torch.cpu):
        with lib.stream(lib.Stream()):
            lib.synchronize()
        assert lib.current_device() == "cpu" and lib.device_count() == 1 and lib.is_initialized() and lib.Event().query()
