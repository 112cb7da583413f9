"""The kernel of sparse products: any width, type, number of threads; empty rows; operands that lie otherwise."""

import numpy as np
import pytest
import scipy.sparse

import genesis
from genesis.execution.plan import plan_for
from genesis.tracing.state import current_trace
from tests.tolerances import assert_close


def matrix(rows=200, columns=150, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    found = scipy.sparse.random(rows, columns, 0.05, "csr", dtype, rng, rng.standard_normal)
    found.data[found.indptr[rows // 8] : found.indptr[rows // 4]] = 0
    found.eliminate_zeros()
    pointers, columns = (part.astype(np.int64) for part in (found.indptr, found.indices))
    return genesis.sparse_csr_tensor(pointers, columns, found.data, found.shape), found


@pytest.mark.parametrize("width", [1, 2, 7, 8, 15, 16, 31, 33, 64, 100, 129, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_width(width, dtype):
    ours, theirs = matrix(dtype=np.dtype(dtype).type)
    dense = np.random.default_rng(1).standard_normal((150, width)).astype(dtype)
    assert_close(ours @ genesis.tensor(dense), theirs @ dense, scale=10)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same(threads):
    ours, theirs = matrix(3000, 2000)
    dense = genesis.tensor(np.random.default_rng(1).standard_normal((2000, 40)).astype(np.float32))
    before = genesis.get_num_threads()
    try:
        genesis.set_num_threads(1)
        want = (ours @ dense).numpy().copy()
        genesis.set_num_threads(threads)
        assert ((ours @ dense).numpy() == want).all()
    finally:
        genesis.set_num_threads(before)
    assert_close(want, theirs @ dense.numpy(), scale=10)


def test_operands_that_lie_otherwise():
    ours, theirs = matrix()
    dense = np.random.default_rng(1).standard_normal((40, 300)).astype(np.float32)
    x = genesis.tensor(dense)
    assert_close(ours @ x[:, ::2].T, theirs @ dense[:, ::2].T, scale=10)
    assert_close(ours @ x[:, 7:157].T.contiguous()[:, 3:20], theirs @ dense[:, 7:157].T[:, 3:20], scale=10)
    assert_close(ours @ genesis.ones(1, 5).expand(150, 5), theirs @ np.ones((150, 5), np.float32), scale=10)
    assert_close((ours.t() @ genesis.ones(200, 3)), theirs.T @ np.ones((200, 3), np.float32), scale=10)


def test_other_dtypes_have_a_way_of_their_own():
    ours, theirs = matrix()
    x = np.ones((150, 3))
    assert_close(ours.int() @ genesis.ones(150, 3, dtype=genesis.int32), theirs.astype(np.int32) @ x.astype(np.int32))
    assert_close(ours.half().float() @ genesis.tensor(x).float(), ours.to_dense().half().float() @ genesis.tensor(x).float(),
                 scale=10)


def test_no_elements_and_no_rows():
    none = genesis.sparse_csr_tensor([0, 0, 0], genesis.zeros(0, dtype=genesis.int64), genesis.zeros(0), (2, 3))
    assert_close(none @ genesis.ones(3, 4), np.zeros((2, 4), np.float32))
    assert (genesis.sparse_coo_tensor((0, 3)) @ genesis.ones(3, 4)).shape == (0, 4)
    assert (none @ genesis.ones(3, 0)).shape == (2, 0)


def test_wrong_pointers_lead_nowhere_and_wrong_columns_are_named():
    wild = genesis.sparse_csr_tensor([0, 1 << 40, -(1 << 40)], [0], [1.0], (2, 3))
    assert (wild @ genesis.ones(3, 4)).shape == (2, 4)
    outside = genesis.sparse_csr_tensor([0, 1], [3], [1.0], (1, 3))
    with pytest.raises(IndexError, match="matmul: index 3 is out of range for extent 3"):
        (outside @ genesis.ones(3, 4)).tolist()


def test_one_program_computes_it_with_what_surrounds_it():
    ours, theirs = matrix()
    x = genesis.ones(150, 4)
    y = (ours @ (x * 2)).relu()
    assert len(plan_for(current_trace()).segments) == 1
    assert "native  csr_matmul: " in str(genesis.debug.program(y))
    assert_close(y, np.maximum(theirs @ np.full((150, 4), 2, np.float32), 0), scale=10)


def test_derivatives_of_any_order():
    ours, _ = matrix(6, 5, np.float64)
    values = ours.values().detach().requires_grad_()
    dense = genesis.tensor(np.random.default_rng(1).standard_normal((5, 3)), requires_grad=True)

    def product(values, dense):
        return ours.with_elements(values) @ dense

    assert genesis.autograd.gradcheck(product, (values, dense))
    assert genesis.autograd.gradgradcheck(product, (values, dense))


def test_mapped_over_examples():
    ours, theirs = matrix(6, 5)
    x = np.random.default_rng(1).standard_normal((3, 5, 2)).astype(np.float32)
    assert_close(genesis.vmap(lambda one: ours @ one)(genesis.tensor(x)), np.stack([theirs @ one for one in x]), scale=10)
