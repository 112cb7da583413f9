"""Sparse tensors beside PyTorch's: values, layouts, what is coalesced, text and gradients."""

import warnings

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

POSITIONS = [[0, 1, 1, 0, 3], [2, 0, 2, 2, 1]]


def made(library, dtype="float32", is_coalesced=False, rest=(), requires_grad=False, shape=(4, 3)):
    """A matrix, or one of vectors, with one position twice."""
    values = np.random.default_rng(0).standard_normal((5, *rest)).astype(dtype)
    x = library.sparse_coo_tensor(library.tensor(POSITIONS), library.tensor(values), (*shape, *rest))
    x = x.coalesce() if is_coalesced else x
    return x.clone().requires_grad_() if requires_grad else x


def dense(library, *shape, seed=1):
    return library.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def assert_same(ours, theirs):
    """Of one layout, with equal parts in one order."""
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif not isinstance(theirs, torch.Tensor):
        assert ours == theirs
    elif theirs.layout is torch.strided:
        assert not isinstance(ours, genesis.sparse.SparseTensor)
        assert_close(ours, theirs)
    else:
        assert repr(ours.layout) == repr(theirs.layout).replace("torch", "genesis")
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
        assert (ours.sparse_dim(), ours.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())
        if theirs.layout is torch.sparse_coo and not (theirs.is_coalesced() and ours.is_coalesced()):
            assert_close(ours.to_dense(), theirs.to_dense())
            return
        for name in {torch.sparse_coo: ["indices"], torch.sparse_csr: ["crow_indices", "col_indices"],
                     torch.sparse_csc: ["ccol_indices", "row_indices"]}[theirs.layout]:
            assert_close(getattr(ours, name)(), getattr(theirs, name)())
        assert_close(ours.values(), theirs.values())


@pytest.fixture(params=[False, True], ids=["uncoalesced", "coalesced"])
def is_coalesced(request):
    return request.param


OF_ONE = {
    "itself": lambda F, x: x,
    "transposed": lambda F, x: (x.t(), x.transpose(0, 1), x.permute(1, 0), x.T),
    "doubled": lambda F, x: (x * 2, 2 * x, x * F.tensor(2.0), x / 4, x + x, -x, x - x * 3),
    "added": lambda F, x: F.add(x, x.coalesce() * 2, alpha=3),
    "coalesced": lambda F, x: x.coalesce(),
    "sums": lambda F, x: (x.sum(), x.sum(0), x.sum(1), F.sparse.sum(x), F.sparse.sum(x, 1), x.sum((0, 1))),
    "sums kept": lambda F, x: (x.sum(0, keepdim=True).to_dense(), x.sum(1, keepdim=True).to_dense()),
    "to dense": lambda F, x: x.to_dense(),
    "layouts": lambda F, x: (x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_csc().to_sparse_csr(), x.to_sparse_csr().t()),
    "and back": lambda F, x: (x.to_sparse_csr().to_sparse_coo(), x.to_sparse_csr().to_dense(), x.to_sparse_csc().to_dense()),
    "dtypes": lambda F, x: (x.double(), x.to(F.float64), x.int(), x.to(F.float16).float()),
    "elements": lambda F, x: (x.abs(), x.relu(), x.sin(), F.tanh(x), F.sign(x), F.square(x), x.expm1(), x**2, F.isnan(x)),
    "slices": lambda F, x: (x[1], x[0, 2], x.select(1, 2), [*x], x[-1], x.narrow_copy(0, 1, 2)),
    "selected": lambda F, x: (x.index_select(0, F.tensor([1, 0, 1])), x.index_select(1, F.tensor([2]))),
    "joined": lambda F, x: (F.cat([x, x]), F.cat([x, x * 2], 1), F.stack([x, x]), F.stack([x, x], 1)),
    "axes": lambda F, x: (x.unsqueeze(0), x.unsqueeze(2), x.unsqueeze(1)),
    "softmax": lambda F, x: (F.sparse.softmax(x, 1), F.sparse.softmax(x, 0), F.sparse.log_softmax(x, 1),
                             F.sparse.log_softmax(x, 0, dtype=F.float64)),
    "norm": lambda F, x: (x.norm(), x.any()),
    "counts": lambda F, x: (x._nnz(), x.numel(), len(x), x.dim(), x.is_sparse, x.is_sparse_csr, tuple(x.size())),
    "masked": lambda F, x: (dense(F, 4, 3).sparse_mask(x), dense(F, 4, 3).sparse_mask(x.to_sparse_csr())),
    "times dense": lambda F, x: (x * dense(F, 4, 3), dense(F, 4, 3) * x),
    "plus dense": lambda F, x: (dense(F, 4, 3) + x, dense(F, 4, 3) - x, F.add(dense(F, 4, 3), x, alpha=2)),
    "times sparse": lambda F, x: x * dense(F, 4, 3).relu().to_sparse(),
    "plus sparse": lambda F, x: (x + dense(F, 4, 3).relu().to_sparse(), dense(F, 4, 3).relu().to_sparse() - x),
    "products": lambda F, x: (x @ dense(F, 3, 2), F.mm(x, dense(F, 3, 2)), F.sparse.mm(x, dense(F, 3, 2)), x @ dense(F, 3),
                              F.mv(x, dense(F, 3)), x.matmul(dense(F, 3, 2)), dense(F, 2, 4) @ x),
    "csr products": lambda F, x: (x.to_sparse_csr() @ dense(F, 3, 2), x.to_sparse_csr() @ dense(F, 3),
                                  dense(F, 2, 4) @ x.to_sparse_csr()),
    "products of vectors": lambda F, x: x[1] @ dense(F, 3, 2),
    "sums of products": lambda F, x: (
        F.addmm(dense(F, 4, 2), x, dense(F, 3, 2), beta=2.0, alpha=0.5),
        F.sparse.addmm(dense(F, 4, 2), x, dense(F, 3, 2)), F.nn.functional.linear(dense(F, 2, 3), x)),
    "reduced products": lambda F, x: [
        F.sparse.mm(x.to_sparse_csr(), dense(F, 3, 2), reduce) for reduce in ("sum", "mean", "amax", "amin")],
    "sparse products": lambda F, x: (x @ x.t(), F.sparse.mm(x.t(), x), (x.to_sparse_csr() @ x.t().to_sparse_csr()).to_dense()),
    "batches": lambda F, x: F.bmm(F.stack([x, x * 2]), dense(F, 2, 3, 2)),
    "csr": lambda F, x: (x.to_sparse_csr() * 2, x.to_sparse_csr().relu(), x.to_sparse_csr() + x.to_sparse_csr(),
                         x.to_sparse_csr() * dense(F, 4, 3), dense(F, 4, 3) + x.to_sparse_csr(), x.to_sparse_csr().sum()),
    "sampled": lambda F, x: F.sparse.sampled_addmm(x.to_sparse_csr(), dense(F, 4, 5), dense(F, 5, 3), beta=2.0, alpha=3.0),
    "detached": lambda F, x: (x.detach(), x.clone(), x.data),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_operations(name, is_coalesced):
    assert_same(OF_ONE[name](genesis, made(genesis, is_coalesced=is_coalesced)),
                OF_ONE[name](torch, made(torch, is_coalesced=is_coalesced)))


HYBRID = {
    "itself": lambda F, x: (x.coalesce(), x.to_dense(), x._nnz(), x.sparse_dim(), x.dense_dim()),
    "sums": lambda F, x: (x.sum(), x.sum(0), x.sum(2), x.sum((0, 1)), x.sum((0, 2)), F.sparse.sum(x, (1, 2))),
    "elements": lambda F, x: (x * 2, x.abs(), x + x, x.transpose(0, 1), x.permute(1, 0, 2)),
    "slices": lambda F, x: (x[0], x[0, 2], x.select(2, 1), x.index_select(2, F.tensor([1, 0])), x.narrow_copy(2, 0, 1)),
    "joined": lambda F, x: (F.cat([x, x], 2), F.cat([x, x]), F.stack([x, x]), x.unsqueeze(0), x.unsqueeze(3)),
    "softmax": lambda F, x: (F.sparse.softmax(x, 0), F.sparse.softmax(x, 1), F.sparse.softmax(x, 2)),
    "log softmax": lambda F, x: (F.sparse.log_softmax(x, 1), F.sparse.log_softmax(x, 2)),
    "times dense": lambda F, x: x * dense(F, 4, 3, 2),
    "masked": lambda F, x: dense(F, 4, 3, 2).sparse_mask(x),
}


@pytest.mark.parametrize("name", HYBRID)
def test_elements_that_are_vectors(name, is_coalesced):
    assert_same(*[HYBRID[name](F, made(F, is_coalesced=is_coalesced, rest=(2,))) for F in (genesis, torch)])


MADE = {
    "without size": lambda F: F.sparse_coo_tensor([[0, 4]], [1.0, 2.0]),
    "size alone": lambda F: F.sparse_coo_tensor((2, 3)),
    "none": lambda F: F.sparse_coo_tensor(F.zeros(2, 0, dtype=F.int64), F.zeros(0), (2, 3)),
    "one": lambda F: F.sparse_coo_tensor([[1], [0]], [2.0], (2, 3)).values(),
    "ints": lambda F: F.sparse_coo_tensor([[0, 1]], [1, 2], (3,)),
    "dtype": lambda F: F.sparse_coo_tensor([[0, 1]], [1, 2], (3,), dtype=F.float64),
    "csr": lambda F: F.sparse_csr_tensor([0, 2, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0], (3, 2)),
    "csr of ints": lambda F: F.sparse_csr_tensor(F.tensor([0, 2, 2, 3]), F.tensor([0, 1, 1]), F.tensor([1, 2, 3])),
    "csc": lambda F: F.sparse_csc_tensor([0, 2, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0], (2, 3)),
    "compressed": lambda F: F.sparse_compressed_tensor([0, 1], [4], [1.0], (1, 5), layout=F.sparse_csr),
    "of dense": lambda F: (F.eye(3).to_sparse(), F.eye(3).to_sparse(1), F.eye(3).to_sparse_csr(), F.eye(3).to_sparse_csc(),
                           F.eye(3).to_sparse(layout=F.sparse_csr), F.zeros(2, 2).to_sparse(), F.eye(2).to_dense()),
    "diagonals": lambda F: F.sparse.spdiags(F.arange(9).reshape(3, 3), F.tensor([0, -1, 2]), (3, 3)),
    "wide": lambda F: (F.sparse.spdiags(F.ones(2, 3), F.tensor([0, 1]), (2, 5)).to_dense(),
                       F.sparse.spdiags(F.ones(2, 3), F.tensor([-1, 1]), (5, 5), layout=F.sparse_csr)),
    "dense ones": lambda F: (F.eye(2).sparse_dim(), F.eye(2).dense_dim(), F.eye(2).is_sparse, F.eye(2).is_sparse_csr),
}


@pytest.mark.parametrize("name", MADE)
def test_creation(name):
    assert_same(MADE[name](genesis), MADE[name](torch))


@pytest.mark.parametrize("name", [
    "itself", "transposed", "coalesced", "layouts", "dtypes", "selected", "axes", "detached",
])
def test_text(name, is_coalesced):
    ours, theirs = (OF_ONE[name](F, made(F, is_coalesced=is_coalesced)) for F in (genesis, torch))
    for a, b in zip(*[x if isinstance(x, tuple) else (x,) for x in (ours, theirs)], strict=True):
        assert repr(a) == repr(b).replace("torch", "genesis")


def test_text_of_what_carries_gradients():
    x = made(genesis, requires_grad=True)
    assert repr(x) == repr(made(torch, requires_grad=True)).replace("torch", "genesis")
    assert "layout=genesis.sparse_coo, grad_fn=<" in repr(x * 2).replace("\n      ", "")


LOSSES = {
    "product": lambda F, x, y: F.sparse.mm(x, y).square().sum(),
    "vector": lambda F, x, y: F.mv(x, y[:, 0]).square().sum(),
    "to dense": lambda F, x, y: (x.to_dense() @ y).square().sum(),
    "scaled": lambda F, x, y: F.sparse.mm(x * 3, y).square().sum(),
    "sum": lambda F, x, y: (F.sparse.sum(x, 0).to_dense() * y[:, 0]).square().sum(),
    "softmax": lambda F, x, y: F.sparse.mm(F.sparse.softmax(x, 1), y).square().sum(),
    "log softmax": lambda F, x, y: F.sparse.mm(F.sparse.log_softmax(x, 1), y).square().sum(),
    "sparse product": lambda F, x, y: (F.sparse.mm(x, x.t()).to_dense() @ y[:1].mean().expand(4, 1)).square().sum(),
    "transposed": lambda F, x, y: F.sparse.mm(x.t(), F.sparse.mm(x, y)).square().sum(),
    "sum with dense": lambda F, x, y: ((F.ones(4, 3) + x) @ y).square().sum(),
    "addmm": lambda F, x, y: F.sparse.addmm(y.sum() * F.ones(4, 2), x, y).square().sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name):
    gradients = []
    for F in (genesis, torch):
        x, y = made(F, is_coalesced=True, requires_grad=True), dense(F, 3, 2).requires_grad_()
        LOSSES[name](F, x, y).backward()
        gradients.append((x.grad if x.grad.is_sparse else x.grad.sparse_mask(x.detach()), y.grad))
    assert_same(*gradients)  # PyTorch's own is dense in some cases


def test_gradients_of_several_elements_in_one_position():
    gradients = []
    for F in (genesis, torch):
        x = made(F, requires_grad=True)
        F.sparse.mm(x, dense(F, 3, 2)).square().sum().backward()
        gradients.append(x.grad)
    assert_same(*gradients)


def test_gradients_flow_to_the_values_and_to_any_order():
    values = genesis.tensor([1.0, 2.0, 3.0], requires_grad=True, dtype=genesis.float64)
    other = genesis.tensor([[1.0], [2.0]], requires_grad=True, dtype=genesis.float64)

    def loss(values, other):
        x = genesis.sparse_coo_tensor([[0, 1, 1], [1, 0, 0]], values, (2, 2))
        return genesis.sparse.mm(x, genesis.sparse.mm(x, other)).pow(3).sum()

    assert genesis.autograd.gradcheck(loss, (values, other))
    assert genesis.autograd.gradgradcheck(loss, (values, other))


def test_csr_gradients_are_csr():
    gradients = []
    for F in (genesis, torch):
        x = made(F, is_coalesced=True).to_sparse_csr().requires_grad_()
        (x @ dense(F, 3, 2)).square().sum().backward()
        gradients.append(x.grad if x.grad.is_sparse_csr else x.grad.sparse_mask(x.detach()))
    assert_same(*gradients)


def test_promotion():
    assert_same(*[(made(F, "float64") @ F.ones(3, 2, dtype=F.float64), made(F) + made(F).double(),
                   made(F).int() * 2.5) for F in (genesis, torch)])


def test_scipy_agrees_on_a_large_product():
    import scipy.sparse

    rng = np.random.default_rng(0)
    positions = np.stack([rng.integers(0, 500, 4000), rng.integers(0, 300, 4000)])
    values, y = rng.standard_normal(4000), rng.standard_normal((300, 17))
    x = genesis.sparse_coo_tensor(positions, values, (500, 300))
    theirs = scipy.sparse.coo_matrix((values, positions), (500, 300)).tocsr()
    assert_close(x @ genesis.tensor(y), theirs @ y)
    assert_close(x.to_sparse_csr().values(), theirs.data)
    assert_close(x.to_sparse_csr().crow_indices(), theirs.indptr.astype(np.int64))
    assert_close((x @ x.t()).to_dense(), (theirs @ theirs.T).todense())


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1))  # says once that it is new


@pytest.mark.parametrize("dtype", ["int32", "int8", "bool", "float16"])
def test_sparse_sums_along_an_axis_keep_their_dtype(dtype):
    ours, theirs = (lib.tensor([[1, 0], [1, 1]]).to(getattr(lib, dtype)).to_sparse() for lib in (genesis, torch))
    for dim in (None, 0, 1, (0, 1)):
        found, wanted = genesis.sparse.sum(ours, dim), torch.sparse.sum(theirs, dim)
        assert found.dtype.name == str(wanted.dtype).removeprefix("torch.")
        assert found.to_dense().tolist() == wanted.to_dense().tolist()
    assert ours.sum(0).dtype.name == str(theirs.sum(0).dtype).removeprefix("torch.")


@pytest.mark.parametrize("library", [genesis, torch], ids=["genesis", "torch"])
def test_coalesced_elements_and_positions_are_not_those_that_were_given(library):
    given = library.ones(2)
    x = library.sparse_coo_tensor(library.tensor([[0, 2]]), given, (3,))
    made = x.coalesce()
    made.values().mul_(5)
    assert given.tolist() == [1, 1] and made.to_dense().tolist() == [5, 0, 5] and made.coalesce() is made
    made.indices()[0, 0] = 1
    assert x._indices().tolist() == [[0, 2]]
    x._values().mul_(3)
    assert given.tolist() == [3, 3]


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_zeros_have_the_layout_that_is_asked_for(layout):
    ours, theirs = (library.zeros(2, 3, dtype=library.int64, layout=getattr(library, layout)) for library in (genesis, torch))
    assert_same(ours, theirs)
    with pytest.raises(ValueError, match="makes dense tensors"):
        genesis.ones(2, 3, layout=getattr(genesis, layout))


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_sparse_tensors_without_axes(value):
    ours, theirs = (library.tensor(value).to_sparse() for library in (genesis, torch))
    assert_same(ours, theirs)
    assert_same((ours * 2 + ours).to_dense(), (theirs * 2 + theirs).to_dense())


def test_dense_tensors_are_multiplied_in_place_by_sparse_ones():
    ours, theirs = (dense(library, 4, 3).mul_(made(library, is_coalesced=True)) for library in (genesis, torch))
    assert_same(ours, theirs)
