"""Tables whose gradients are sparse, and the optimizers that move the rows these have, beside PyTorch."""

import numpy as np
import pytest
import torch

import genesis
from genesis import nn, optim
from tests.tolerances import assert_close

TABLE = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
PLACES = np.random.default_rng(1).integers(0, 7, size=(4, 2, 4, 5))  # steps, backwards, bags, positions


def trained(library, optimizer, settings, layer):
    """A table after some steps, with the gradient of the last one."""
    kind = library.nn.EmbeddingBag if "mode" in layer else library.nn.Embedding
    model = kind(7, 3, sparse=True, _weight=library.tensor(TABLE.copy()), **layer)
    moves = getattr(library.optim, optimizer)(model.parameters(), lr=0.1, **settings)
    for step in PLACES:
        moves.zero_grad()
        for places in step:  # gradients are accumulated
            found = model(library.tensor(places))
            (found * found).sum().backward()
        assert model.weight.grad.is_sparse
        moves.step()
    return model.weight.detach().numpy(), model.weight.grad.to_dense().numpy()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("optimizer", "settings", "layer"), [
    ("SGD", {}, {"padding_idx": 2}), ("SGD", {"momentum": 0.5, "nesterov": True}, {}),
    ("SGD", {"maximize": True}, {"mode": "sum"}),
    ("Adagrad", {"lr_decay": 0.1}, {}), ("SparseAdam", {}, {}), ("SparseAdam", {}, {"mode": "mean", "padding_idx": 1}),
])
def test_steps_are_those_of_torch(optimizer, settings, layer):
    for got, want in zip(*[trained(library, optimizer, settings, layer) for library in (genesis, torch)], strict=True):
        assert_close(got, want)


def test_gradients_have_a_row_for_each_position():
    table = nn.Embedding(7, 3, padding_idx=2, sparse=True)
    table(genesis.tensor([[1, 2], [1, 6]])).sum().backward()
    gradient = table.weight.grad
    assert gradient._indices().tolist() == [[1, 1, 6]] and gradient._values().tolist() == [[1.0] * 3] * 3
    assert not gradient.is_coalesced()
    table.zero_grad(set_to_none=False)
    assert table.weight.grad._nnz() == 0


def test_tables_that_are_used_otherwise_too_have_dense_gradients():
    table = genesis.tensor(TABLE, requires_grad=True)
    rows = nn.functional.embedding(genesis.tensor([1, 1]), table, sparse=True)
    (rows.sum() + (table * table).sum()).backward()
    want = 2 * TABLE
    want[1] += 2
    assert not table.grad.is_sparse
    assert_close(table.grad, want)


def test_gradients_of_gradients():
    table = genesis.tensor(TABLE.astype(np.float64), requires_grad=True)
    (first,) = genesis.autograd.grad((nn.functional.embedding(genesis.tensor([1, 3, 1]), table, sparse=True) ** 3).sum(), table,
                                     create_graph=True)
    (second,) = genesis.autograd.grad((first.to_dense() ** 2).sum(), table)
    wide = torch.tensor(TABLE.astype(np.float64), requires_grad=True)
    (want,) = torch.autograd.grad((wide[torch.tensor([1, 3, 1])] ** 3).sum(), wide, create_graph=True)
    (want,) = torch.autograd.grad((want**2).sum(), wide)
    assert_close(second.to_dense(), want.numpy())


def test_hooks_see_sparse_gradients_and_replace_them():
    table = genesis.tensor(TABLE, requires_grad=True)
    table.register_hook(lambda gradient: gradient * 2)
    custom = genesis.autograd.Function
    kept = type("Kept", (custom,), {
        "forward": staticmethod(lambda ctx, x: x * 1), "backward": staticmethod(lambda ctx, gradient: gradient)})
    loss = kept.apply(nn.functional.embedding(genesis.tensor([4]), table, sparse=True)).sum()
    assert genesis.autograd.grad(loss, table)[0].coalesce().values().tolist() == [[2.0] * 3]


def test_norms_are_clipped():
    table = genesis.tensor(TABLE, requires_grad=True)
    nn.functional.embedding(genesis.tensor([4, 4, 0]), table, sparse=True).sum().backward()
    assert_close(nn.utils.clip_grad_norm_([table], 1.0), np.float32(np.sqrt(15)))
    assert_close(table.grad.to_dense()[4], np.full(3, 2 / np.sqrt(15), np.float32))


def test_scaled_gradients_are_divided():
    table = genesis.tensor(TABLE, requires_grad=True)
    optimizer, scaler = optim.SGD([table], lr=1.0), genesis.amp.GradScaler(init_scale=8.0)
    scaler.scale(nn.functional.embedding(genesis.tensor([4]), table, sparse=True).sum()).backward()
    scaler.step(optimizer)
    assert_close(table.detach()[4], TABLE[4] - 1)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "NAdam", "Adamax", "Adafactor"])
def test_other_optimizers_refuse_them(name):
    table = genesis.tensor(TABLE, requires_grad=True)
    nn.functional.embedding(genesis.tensor([4]), table, sparse=True).sum().backward()
    optimizer = getattr(optim, name)([table])
    advice = ", please consider SparseAdam instead" if name in ("Adam", "AdamW") else ""
    with pytest.raises(RuntimeError, match=f"^{name} does not support sparse gradients{advice}$"):
        optimizer.step()
    assert_close(table, TABLE)
    assert not optimizer.state[table]["step"]


@pytest.mark.parametrize("library", [genesis, torch])
def test_zeroed_gradients_are_empty_and_are_added_to(library):
    layer = library.nn.Embedding(7, 3, sparse=True)
    for _ in range(2):
        layer(library.tensor([4, 1])).sum().backward()
        assert layer.weight.grad.to_dense().sum().item() == 6
        seen = layer.weight.grad
        layer.zero_grad(set_to_none=False)
        assert seen is layer.weight.grad and seen.is_sparse and seen._nnz() == 0 and not seen.requires_grad


def test_what_has_no_meaning_for_them_is_refused():
    table, places = genesis.tensor(TABLE, requires_grad=True), genesis.tensor([4])
    nn.functional.embedding(places, table, sparse=True).sum().backward()
    for kind in (optim.SGD, optim.Adagrad):
        with pytest.raises(RuntimeError, match=r"weight_decay .*is not compatible with sparse gradients"):
            kind([table], lr=0.1, weight_decay=0.1).step()
    with pytest.raises(ValueError, match="scale_grad_by_freq is not for sparse gradients"):
        nn.functional.embedding(places, table, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(ValueError, match="mode 'max' and scale_grad_by_freq are not for sparse gradients"):
        nn.functional.embedding_bag(places.unsqueeze(0), table, mode="max", sparse=True)
    table.grad = table.grad.to_dense()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        optim.SparseAdam([table]).step()


def test_compiled_functions_say_why_they_are_not_replayed():
    table, places = genesis.tensor(TABLE, requires_grad=True), genesis.tensor([4, 4])

    @genesis.compile
    def loss(places):
        return nn.functional.embedding(places, table, sparse=True).sum()

    for _ in range(2):
        table.grad = None
        loss(places).backward()
        assert table.grad._nnz() == 2
    assert "a gradient is to be sparse" in str(genesis.debug.explain(loss, places))
