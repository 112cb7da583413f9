"""What sparse tensors refuse, how they are checked, copied, saved and changed in place."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import genesis
from genesis.tensor.composite import NotDenseError
from tests.tolerances import assert_close


def made(requires_grad=False):
    return genesis.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), requires_grad=requires_grad)


@pytest.mark.parametrize("wrong", [
    lambda x: x.exp(), lambda x: x + 1, lambda x: x.view(6), lambda x: x.numpy(), lambda x: x.tolist(), lambda x: x > 0,
    lambda x: x / x, lambda x: genesis.softmax(x, 1), lambda x: x.max(), lambda x: x.reshape(3, 2), lambda x: x.cumsum(0),
    lambda x: x[::2], lambda x: x**-1, lambda x: genesis.conv1d(x, x), lambda x: x.item(), lambda x: np.asarray(x),
])
def test_what_a_sparse_tensor_cannot_do_says_so(wrong):
    with pytest.raises(NotDenseError, match=r"^\w.*: takes dense tensors, got a sparse_coo one of shape \(2, 3\); to_dense"):
        wrong(made())


def test_errors_name_the_operation():
    with pytest.raises(NotDenseError, match=r"^exp: takes dense tensors, got a sparse_coo one"):
        genesis.ones(2) + made().exp()


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: genesis.sparse_coo_tensor([0, 1], [1.0, 2.0]), "want \\(sparse axes, n\\) and \\(n, ..\\)"),
    (lambda: genesis.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]), "want \\(sparse axes, n\\) and \\(n, ..\\)"),
    (lambda: genesis.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 2)), "want 1 sparse axes"),
    (lambda: genesis.sparse_coo_tensor([[0.5]], [1.0]), "positions must be integers"),
    (lambda: genesis.sparse_csr_tensor([0, 1], [0, 1], [1.0], (1, 2)), "want \\(extent \\+ 1,\\), \\(n,\\) and \\(n, ..\\)"),
    (lambda: genesis.sparse_csr_tensor([0, 1], [0], [1.0], (2, 2)), "want 1 along axis 0"),
    (lambda: genesis.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True), "index 5 along axis 0 of extent 3"),
    (lambda: genesis.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True), "from 0 to 2"),
    (lambda: genesis.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=True), "must rise"),
    (lambda: made() + genesis.eye(3).to_sparse(), "want them the same"),
    (lambda: made() @ genesis.ones(2, 2), r"want \(n, m\) and \(m, k\)"),
    (lambda: made().values(), "not coalesced"),
    (lambda: made().crow_indices(), "is of sparse_csr tensors"),
    (lambda: genesis.ones(2).indices(), "is of sparse_coo tensors, this is a dense one"),
    (lambda: genesis.ones(2).sparse_mask(genesis.ones(2)), "want a sparse one"),
    (lambda: genesis.sparse_coo_tensor([[0, 1]] * 3, [1.0, 2.0], (1 << 30,) * 3).coalesce(), "more elements"),
    (lambda: made().index_select(0, genesis.tensor([2])), "for extent 2"),
])
def test_wrong_arguments(wrong, message):
    with pytest.raises(RuntimeError, match=message):
        wrong()


def test_positions_out_of_range_are_met_when_they_are_read():
    x = genesis.sparse_coo_tensor([[0], [7]], [1.0], (2, 3))
    with pytest.raises(IndexError, match="index 7 is out of range for extent 3"):
        print(x @ genesis.ones(3, 2))


def test_invariants_are_checked_in_a_context():
    assert not genesis.sparse.check_sparse_tensor_invariants.is_enabled()
    with genesis.sparse.check_sparse_tensor_invariants(), pytest.raises(ValueError, match="index 9"):
        genesis.sparse_coo_tensor([[9]], [1.0], (3,))
    genesis.sparse_coo_tensor([[9]], [1.0], (3,))


@pytest.mark.parametrize("layout", [genesis.sparse_coo, genesis.sparse_csr, genesis.sparse_csc], ids=repr)
def test_copies_and_files(layout):
    x = made().to_sparse(layout=layout).requires_grad_()
    file = io.BytesIO()
    genesis.save({"x": x}, file)
    file.seek(0)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert other is not x and other.layout is layout and other.requires_grad
        assert_close(other.detach().to_dense(), made().to_dense())
    loaded = genesis.load(file)["x"]
    assert loaded.layout is layout
    assert_close(loaded.to_dense(), made().to_dense())


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
@pytest.mark.filterwarnings("ignore:Sparse")
def test_files_are_pytorchs(layout):
    ours, theirs, back = made().to_sparse(layout=getattr(genesis, layout)), io.BytesIO(), io.BytesIO()
    genesis.save(ours, theirs)
    theirs.seek(0)
    x = torch.load(theirs)
    assert x.layout is getattr(torch, layout)
    assert_close(x.to_dense(), made().to_dense())
    torch.save(x, back)
    back.seek(0)
    assert repr(genesis.load(back)) == repr(ours)


def test_files_with_positions_out_of_range_are_refused():
    file = io.BytesIO()
    genesis.save(genesis.sparse_coo_tensor([[9]], [1.0], (3,)), file)
    file.seek(0)
    with pytest.raises(ValueError, match="index 9"):
        genesis.load(file)


def test_it_is_a_tensor():
    x = made()
    assert isinstance(x, genesis.Tensor) and genesis.is_tensor(x)
    assert x.device.type == "cpu" and x.is_cpu and not x.is_cuda and not x.is_contiguous() and x.stride() == (0, 0)
    assert x.dtype is genesis.float32 and x.size(1) == 3 and x.is_floating_point() and x.element_size() == 4


class Layer(genesis.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("adjacency", made())
        self.inner = genesis.nn.Linear(4, 3)

    def forward(self, x):
        return self.adjacency @ self.inner(x).T


def test_buffers_of_modules():
    layer, other = Layer(), Layer()
    other.adjacency.zero_()
    state = layer.state_dict()
    assert_close(state["adjacency"].to_dense(), made().to_dense())
    other.load_state_dict(state)
    x = genesis.randn(5, 4)
    assert_close(other(x), layer(x))
    assert layer.double().adjacency.dtype is genesis.float64 and layer(x.double()).dtype is genesis.float64
    assert copy.deepcopy(layer).adjacency.layout is genesis.sparse_coo
    assert Layer().to("cpu:1").adjacency.device == genesis.device("cpu:1")


def test_the_gradient_by_a_sparse_tensor():
    x = made(requires_grad=True)
    (gradient,) = genesis.autograd.grad((x @ genesis.ones(3, 1)).sum(), x)
    assert gradient.layout is genesis.sparse_coo
    assert_close(gradient.to_dense(), (made().to_dense() != 0).float())


def test_zeros_like_it():
    for x in (genesis.zeros_like(made()), genesis.empty_like(made()), made().zero_()):
        assert x._nnz() == 0 and x.shape == (2, 3) and x.is_coalesced()
    with pytest.raises(NotDenseError, match="not zero"):
        genesis.ones_like(made())
    with pytest.raises(ValueError, match="zeros alone"):
        genesis.ones(2, 3, layout=genesis.sparse_coo)


def test_changed_in_place():
    x = made()
    x.mul_(2).neg_()
    x += made()
    assert_close(x.to_dense(), -made().to_dense())
    with pytest.raises(RuntimeError, match="cannot hold it"):
        x.add_(genesis.ones(2, 3))
    dense = genesis.ones(2, 3)
    dense.add_(made())
    assert_close(dense, made().to_dense() + 1)


def test_leaves_are_their_own():
    values = genesis.tensor([3.0, 4.0, 5.0])
    x = genesis.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3)).requires_grad_()
    (x @ genesis.ones(3, 1)).sum().backward()
    assert not values.requires_grad and x.is_leaf and x.grad.layout is genesis.sparse_coo
    x.grad = None
    assert x.grad is None and x.detach().grad is None


def test_hooks_are_given_sparse_gradients():
    seen = []
    x = made(requires_grad=True)
    x.register_hook(lambda gradient: seen.append(gradient) or gradient * 2)
    (x @ genesis.ones(3, 1)).sum().backward()
    assert seen[0].layout is genesis.sparse_coo
    assert_close(x.grad.to_dense(), 2 * (made().to_dense() != 0).float())


def test_custom_functions_take_it_without_its_gradient():
    class Product(genesis.Function):
        @staticmethod
        def forward(ctx, sparse, dense):
            ctx.sparse = sparse
            return sparse @ dense

        @staticmethod
        def backward(ctx, grad):
            return None, ctx.sparse.t() @ grad

    sparse = genesis.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    dense = genesis.ones(3, 2, requires_grad=True)
    Product.apply(sparse, dense).sum().backward()
    assert dense.grad.tolist() == [[4.0, 4.0], [0.0, 0.0], [3.0, 3.0]]
    with pytest.raises(TypeError, match="sparse_coo"):
        Product.apply(sparse.requires_grad_(), dense)


def test_custom_functions_save_it_among_others_as_in_torch():
    def gradients(lib):
        class Product(lib.autograd.Function):
            @staticmethod
            def forward(ctx, at, values, dense):
                sparse = lib.sparse_coo_tensor(at, values, (2, 3))
                ctx.save_for_backward(None, sparse, dense)
                return lib.matmul(sparse, dense)

            @staticmethod
            def backward(ctx, grad):
                nothing, sparse, dense = ctx.saved_tensors
                assert nothing is None and sparse.layout is lib.sparse_coo
                row, column = sparse._indices()
                return None, grad.matmul(dense.t())[row, column], sparse.t().matmul(grad)

        values = lib.tensor([3.0, 4.0], requires_grad=True)
        dense = lib.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
        made = Product.apply(lib.tensor([[0, 1], [2, 0]]), values * 2, dense)
        return [g.tolist() for g in lib.autograd.grad((made * made).sum(), [values, dense])]

    assert gradients(genesis) == gradients(torch)


@pytest.mark.parametrize("lib", [genesis, torch])
def test_a_size_alone_may_be_named(lib):
    x = lib.sparse_coo_tensor(size=(2, 3))
    assert x.shape == (2, 3) and x.to_dense().tolist() == [[0.0] * 3] * 2
    with pytest.raises(TypeError):
        lib.sparse_coo_tensor()
    with pytest.raises(TypeError):
        lib.sparse_coo_tensor([[0]])
