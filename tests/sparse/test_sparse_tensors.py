"""What sparse tensors refuse, how they are checked, copied, saved and changed in place."""

import copy
import io
import pickle

import numpy as np
import pytest

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
    with pytest.raises((NotDenseError, TypeError), match=r"sparse_coo one of shape \(2, 3\); to_dense\(\)"):
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
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), genesis.load(file, weights_only=False)["x"], x.clone()):
        assert other is not x and other.layout is layout and other.requires_grad
        assert_close(other.detach().to_dense(), made().to_dense())


def test_it_is_a_tensor():
    x = made()
    assert isinstance(x, genesis.Tensor) and genesis.is_tensor(x)
    assert x.device.type == "cpu" and x.is_cpu and not x.is_cuda and not x.is_contiguous() and x.stride() == (0, 0)
    assert x.dtype is genesis.float32 and x.size(1) == 3 and x.is_floating_point() and x.element_size() == 4


def test_changed_in_place():
    x = made()
    x.mul_(2).neg_()
    x += made()
    assert_close(x.to_dense(), -made().to_dense())
    with pytest.raises(RuntimeError, match="cannot hold it"):
        x.transpose(0, 1).add_(x.transpose(0, 1).double())
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
