"""Compiled functions of sparse tensors are replayed, whatever their values and positions are, by name or as arguments."""

import numpy as np

import genesis
from tests.tolerances import assert_close


def adjacency(seed=0, n=6, count=9):
    rng = np.random.default_rng(seed)
    positions = genesis.tensor(rng.integers(0, n, (2, count)))
    return genesis.sparse_coo_tensor(positions, genesis.tensor(rng.standard_normal(count).astype(np.float32)), (n, n))


def assert_replayed(compiled, times):
    assert compiled.refusals == [] and [entry.replays for entry in compiled.entries] == [times]


def test_sparse_arguments():
    @genesis.compile
    def product(a, x):
        return genesis.sparse.mm(a, x).relu()

    for seed in range(5):
        a, x = adjacency(seed), genesis.randn(6, 3)
        assert_close(product(a, x), (a.to_dense() @ x).relu(), scale=10)
    assert_replayed(product, 4)
    a = adjacency(0, 7)
    assert_close(product(a, genesis.ones(7, 3)), (a.to_dense() @ genesis.ones(7, 3)).relu(), scale=10)
    assert len(product.entries) == 2


def test_sparse_results():
    @genesis.compile
    def results(a):
        return a * 2, a.t(), a.to_dense()

    for seed in range(4):
        a = adjacency(seed)
        twice, across, dense = results(a)
        assert_close(twice.to_dense(), dense * 2)
        assert_close(across.to_dense(), dense.T)
        assert not twice.is_coalesced() and across.layout is genesis.sparse_coo
    assert_replayed(results, 3)


def test_a_network_with_a_sparse_buffer_trains():
    class Layer(genesis.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = genesis.nn.Linear(3, 2)
            self.register_buffer("adjacency", adjacency(3).to_sparse_csr())

        def forward(self, x):
            return genesis.mm(self.adjacency, self.inner(x))

    def losses(decorate):
        genesis.manual_seed(0)
        layer, x = Layer(), genesis.randn(6, 3)
        optimizer = genesis.optim.Adam(layer.parameters(), lr=0.1)

        @decorate
        def step(x):
            optimizer.zero_grad()
            loss = layer(x).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        return [step(x).item() for _ in range(5)], step

    compiled, step = losses(genesis.compile)
    assert_close(compiled, losses(lambda function: function)[0])
    assert_replayed(step, 4)


def test_gradients_by_a_sparse_leaf():
    leaf = adjacency().coalesce().requires_grad_()

    @genesis.compile
    def gradient(x):
        leaf.grad = None
        (leaf @ x).square().sum().backward()
        return leaf.grad.to_dense()

    for seed in range(4):
        x = genesis.tensor(np.random.default_rng(seed).standard_normal((6, 2)).astype(np.float32))
        whole = leaf.to_dense().detach().requires_grad_()
        (whole @ x).square().sum().backward()
        assert_close(gradient(x), whole.grad * (leaf.detach().to_dense() != 0), scale=10)
    assert_replayed(gradient, 3)


def test_a_tensor_that_a_name_refers_to_may_become_another():
    held = {"a": adjacency(0)}

    @genesis.compile
    def product(x):
        return held["a"] @ x

    for seed in (0, 0, 1, 1):
        held["a"] = adjacency(seed)
        assert_close(product(genesis.eye(6)), held["a"].to_dense())
