"""Sparse matrices in blocks, and functions that only sparse tensors have, beside PyTorch."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

MATRIX = np.array([[0, 1, 0, 0, 2, 0], [0, 0, 0, 0, 0, 3], [4, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]], np.float32)
KINDS = ("bsr", "bsc")


def both(kind):
    return [getattr(library.tensor(MATRIX), f"to_sparse_{kind}")((2, 3)) for library in (genesis, torch)]


def parts(x, kind):
    names = ("crow_indices", "col_indices") if kind == "bsr" else ("ccol_indices", "row_indices")
    return [getattr(x, name)().tolist() for name in (*names, "values")]


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_those_of_torch(kind):
    ours, theirs = both(kind)
    assert parts(ours, kind) == parts(theirs, kind)
    assert ours.layout is getattr(genesis, f"sparse_{kind}") and tuple(ours.shape) == (4, 6)
    assert repr(ours) == repr(theirs).replace("torch", "genesis")
    made = getattr(genesis, f"sparse_{kind}_tensor")(*parts(ours, kind))
    assert_close(made.to_dense()[:4, :6], MATRIX)


@pytest.mark.parametrize("kind", KINDS)
def test_functions_of_blocks(kind):
    x, _ = both(kind)
    for found, want in (
        (x.transpose(0, 1), MATRIX.T), (x.sin() * 2, np.sin(MATRIX) * 2), (x + x, MATRIX * 2), (x * x, MATRIX**2),
        (x.to_sparse_csr(), MATRIX), (x.to_sparse(), MATRIX), (x.sum(0), MATRIX.sum(0)), (x[1], MATRIX[1]),
        (x @ genesis.ones(6, 2), MATRIX @ np.ones((6, 2), np.float32)), (genesis.zeros_like(x), MATRIX * 0),
        (genesis.tensor(MATRIX + 1).sparse_mask(x) - x, np.repeat(np.repeat([[1, 1], [1, 0]], 2, 0), 3, 1).astype(np.float32)),
        (genesis.sparse.sampled_addmm(x, genesis.ones(4, 1), genesis.ones(1, 6), beta=0).sum(), np.float32(18)),
    ):
        assert_close(found.to_dense(), want)
    assert (x + x).layout is x.layout and x.transpose(0, 1).layout is not x.layout


@pytest.mark.parametrize("kind", KINDS)
def test_copies_and_files_of_blocks(kind):
    x, _ = both(kind)
    file = io.BytesIO()
    genesis.save(x, file)
    file.seek(0)
    loaded = genesis.load(file)
    file.seek(0)
    assert parts(torch.load(file), kind) == parts(x, kind)
    for again in (loaded, copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert again.layout is x.layout and parts(again, kind) == parts(x, kind)


def test_gradients_flow_through_blocks():
    x = genesis.tensor(MATRIX.astype(np.float64), requires_grad=True)
    factor = np.arange(12.0).reshape(6, 2)
    ((x.to_sparse_bsr((2, 2)) @ genesis.tensor(factor)) ** 2).sum().backward()
    want = 2 * (MATRIX @ factor) @ factor.T * (MATRIX != 0)
    assert_close(x.grad, want)
    blocks = genesis.tensor(MATRIX.astype(np.float64)).to_sparse_bsr((2, 2)).requires_grad_()
    check = genesis.sparse.as_sparse_gradcheck(genesis.autograd.gradcheck)
    assert check(lambda x: genesis.sparse.mm(x * x, x.transpose(0, 1)), blocks)


def test_blocks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"to_sparse_bsr: blocks of shape .* want two extents that divide those"):
        genesis.tensor(MATRIX).to_sparse_bsr((3, 2))
    with pytest.raises(ValueError, match="to_sparse_bsc: blocks of shape None"):
        genesis.tensor(MATRIX).to_sparse_bsc()
    with pytest.raises(ValueError, match=r"sparse_bsr_tensor: .* want \(extent \+ 1,\), \(n,\) and \(n, height, width, ..\)"):
        genesis.sparse_bsr_tensor([0, 1], [0], [1.0])
    with pytest.raises(ValueError, match=r"sparse_bsc_tensor: .* of blocks that are not empty"):
        genesis.sparse_bsc_tensor([0, 0], [], genesis.zeros(0, 2, 0))


# ---- functions that only sparse tensors have ----


def test_products_that_stay_sparse():
    dense = np.array([[1.0, 0], [2, 0], [0, 0], [0, 0], [0, 1], [1, 1]], np.float32)
    x, y = genesis.tensor(MATRIX).to_sparse(), genesis.tensor(dense)
    assert x.smm(y).is_sparse and genesis.sparse.products.hspmm(x, y).dense_dim() == 1
    assert_close(x.smm(y).to_dense(), MATRIX @ dense)
    assert_close(genesis.sparse.products.hspmm(x, y).to_dense(), MATRIX @ dense)
    start = torch.eye(4)[:, :2].to_sparse()
    want = start.sspaddmm(torch.tensor(MATRIX).to_sparse(), torch.tensor(dense), beta=2, alpha=3)
    ours = genesis.eye(4)[:, :2].to_sparse().sspaddmm(x, y, beta=2, alpha=3)
    assert_close(ours.to_dense(), want.to_dense().numpy())
    with pytest.raises(ValueError, match=r"sspaddmm: input \(4, 4\); want a sparse one of shape \(4, 2\)"):
        genesis.eye(4).to_sparse().sspaddmm(x, y)
    with pytest.raises(ValueError, match="want a sparse and a dense matrix"):
        y.smm(y)


def test_rows_of_zeros_stay_in_products_that_stay_sparse():
    places, elements = [[2, 0, 0], [1, 0, 0]], [1.0, 2.0, -2.0]
    theirs, table = torch.sparse_coo_tensor(places, elements, (3, 3)), torch.tensor([[1.0, 2], [0, 0], [3, 4]])
    ours, dense = genesis.sparse_coo_tensor(places, elements, (3, 3)), genesis.tensor(table.numpy())
    start, first = torch.eye(3)[:, :2].to_sparse(), genesis.eye(3)[:, :2].to_sparse()
    for want, got in (
        (torch.hspmm(theirs, table), genesis.sparse.products.hspmm(ours, dense)), (torch.smm(theirs, table), ours.smm(dense)),
        (start.sspaddmm(theirs, table, beta=2, alpha=3), first.sspaddmm(ours, dense, beta=2, alpha=3)),
    ):
        assert got._indices().tolist() == want._indices().tolist() and got._values().tolist() == want._values().tolist()


def test_sparse_tensors_change_their_shape_in_place():
    x = genesis.tensor([[1.0, 0], [0, 2]]).to_sparse()
    assert x.sparse_resize_((3, 4), 2, 0) is x and x.to_dense().shape == (3, 4)
    with pytest.raises(ValueError, match=r"sparse_resize_: .* want as many, of extents no less"):
        x.sparse_resize_((2, 2), 2, 0)
    x.sparse_resize_and_clear_((2, 5), 1, 1)
    assert x._nnz() == 0 and x.dense_dim() == 1
    assert x.resize_as_sparse_(genesis.ones(3, 3).to_sparse()).shape == (3, 3)
