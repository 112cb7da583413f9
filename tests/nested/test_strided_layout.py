"""Nested tensors of the strided layout, PyTorch's default, beside PyTorch's: values, sizes, gradients, what is refused."""

from functools import partial

import numpy as np
import pytest
import torch

import genesis
from genesis.tensor.composite import NotDenseError
from tests.nested import comparing
from tests.tolerances import assert_close

pytestmark = pytest.mark.usefixtures("by_references")
SIZES = (2, 3), (4, 3), (1, 3)


def parts(library, sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [library.tensor(rng.standard_normal(size).astype(np.float32)) for size in sizes]


def made(library, sizes=SIZES, **settings):
    return library.nested.nested_tensor(parts(library, sizes), **settings)


def dense(library, *shape):
    return library.tensor(np.random.default_rng(9).standard_normal(shape).astype(np.float32))


def assert_same_sizes(ours, theirs):
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert ours._nested_tensor_size().tolist() == theirs._nested_tensor_size().tolist()


assert_same = partial(comparing.assert_same, assert_same_sizes=assert_same_sizes)


CASES = {
    "itself": lambda F, x: (x, x.size(0), x.size(2), x.size(-1), x.dim(), x.numel(), x.values(), x.is_nested),
    "tensors": lambda F, x: (x.unbind(), x[0], x[-1], x[0, 1], x[..., 0], x.select(0, 1), x.select(1, 0), x.select(2, 0)),
    "padded": lambda F, x: (x.to_padded_tensor(0.0), x.to_padded_tensor(-1.0, (3, 6, 3)), F.nested.to_padded_tensor(x, 2.0)),
    "arithmetic": lambda F, x: (x + x, x * 2, x - 1, x / 2, -x, x * x, x + F.tensor(1.0), x.neg(), x.abs(), x.sgn()),
    "functions": lambda F, x: (x.sin(), x.cos(), x.tanh(), x.relu(), F.nn.functional.gelu(x), F.nn.functional.silu(x)),
    "predicates": lambda F, x: (x > 0, x.ge(1), x.eq(0), x.isnan(), (x > 0).logical_not(), x.masked_fill(x > 0, 0.5)),
    "sums": lambda F, x: (x.sum(-1, keepdim=True), x.softmax(-1), x.softmax(1)),
    "layers": lambda F, x: (
        F.nn.functional.linear(x, dense(F, 5, 3)), F.nn.functional.linear(x, dense(F, 4, 3), dense(F, 4)),
        F.nn.functional.layer_norm(x, (3,), dense(F, 3), dense(F, 3)),
    ),
    "products": lambda F, x: (x @ x.transpose(1, 2), F.bmm(x, x.transpose(1, 2)), F.matmul(x, x.transpose(-1, -2))),
    "axes": lambda F, x: (x.transpose(1, 2), x.mT, x.unsqueeze(1), x.unsqueeze(-1), x.unsqueeze(2).squeeze(2)),
    "reshaped": lambda F, x: (x.reshape(3, -1, 3, 1), x.reshape(3, -1, 3), x.view(3, -1, 1, 3)),
    "joined": lambda F, x: (F.cat([x, x * 2]), F.cat([x, x * 2], -1), x.chunk(3, -1), x.narrow(0, 1, 2)),
    "converted": lambda F, x: (x.clone(), x.double(), x.to(F.float64), x.half(), x.long(), x.contiguous(), x.detach()),
    "like": lambda F, x: (F.zeros_like(x), F.ones_like(x), F.randn_like(x) * 0, F.nn.functional.dropout(x, 0.5) * 0),
    "in place": lambda F, x: (x.mul_(2), x.add_(x), x.relu_(), x.fill_(3.0), x.zero_(), x.copy_(x + 1), x.is_same_size(x)),
}


@pytest.mark.parametrize("name", CASES)
def test_operations(name):
    assert_same(CASES[name](genesis, made(genesis)), CASES[name](torch, made(torch)))


def test_extents_of_any_axis_may_differ():
    found = [(x, x.size(1), x.to_padded_tensor(0.0), x * 2, x.transpose(2, 3)) for x in (
        made(F, ((3, 2, 4), (3, 5, 1))) for F in (genesis, torch))]
    assert_same(*found)


def test_attention_of_each():
    found = []
    for F in (genesis, torch):
        q, k = (F.nested.nested_tensor(parts(F, sizes, seed)) for seed, sizes in enumerate(
            (((2, 2, 4), (2, 5, 4)), ((2, 3, 4), (2, 1, 4)))))
        found.append((F.nn.functional.scaled_dot_product_attention(q, k, k), q.reshape(2, 2, -1, 2, 2), q.transpose(1, 2)))
    assert_same(*found)


@pytest.mark.parametrize("layout", ["strided", "jagged"])
def test_layers_of_transformers_are_those_of_each_sequence(layout):
    genesis.manual_seed(0)
    layer = genesis.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    given = [x.requires_grad_() for x in parts(genesis, ((2, 4), (5, 4)))]
    kind = {"layout": genesis.nested.jagged} if layout == "jagged" else {}
    found = layer(genesis.nested.as_nested_tensor(given, **kind)).unbind()
    for x, y in zip(given, found, strict=True):
        wanted = layer(x.unsqueeze(0)).squeeze(0)
        assert_close(y, wanted)
        assert_close(*[genesis.autograd.grad(z.square().sum(), x, retain_graph=True)[0] for z in (y, wanted)], scale=4)
    assert_same(*[
        F.nn.functional.softmax(made(F, ((2, 4), (3, 4))).reshape(2, -1, 2, 2), -1) for F in (genesis, torch)])


def test_tables_of_vectors():
    assert_same(*[F.nn.functional.embedding(F.nested.nested_tensor([F.tensor([0, 1]), F.tensor([2])]), dense(F, 3, 4))
                  for F in (genesis, torch)])


MADE = {
    "lists": lambda F: F.nested.nested_tensor([[1, 2], [3]]),
    "numbers": lambda F: F.nested.nested_tensor([F.tensor(1.0), F.tensor(2.0)]),
    "rows of a dense tensor": lambda F: F.nested.as_nested_tensor(F.ones(2, 3)),
    "two dtypes": lambda F: F.nested.nested_tensor([F.ones(2), F.ones(3).double()]),
    "another dtype": lambda F: F.nested.nested_tensor([F.ones(2), F.ones(3)], dtype=F.float64),
    "equal extents": lambda F: F.nested.nested_tensor([F.ones(2, 3), F.ones(2, 3)]).size(1),
    "none": lambda F: F.nested.nested_tensor([]).size(0),
}


@pytest.mark.parametrize("name", MADE)
def test_creation(name):
    assert_same(MADE[name](genesis), MADE[name](torch))


def test_gradients():
    """Of a leaf, and of the tensors that one is made of."""
    found = []
    for F in (genesis, torch):
        leaf, weight = made(F, requires_grad=True), dense(F, 5, 3).requires_grad_()
        y = F.nn.functional.gelu(F.nn.functional.linear(leaf * 2, weight)).softmax(-1)
        y.to_padded_tensor(0.0).square().sum().backward()
        tensors = [t.requires_grad_() for t in parts(F, SIZES)]
        nested = F.nested.as_nested_tensor(tensors)
        (nested @ nested.transpose(1, 2)).to_padded_tensor(0.0).square().sum().backward()
        found.append((leaf.grad, weight.grad, [t.grad for t in tensors]))
    assert_same(*found)


def test_tensors_are_views():
    found = []
    for F in (genesis, torch):
        x = made(F)
        first = x[0]
        x.mul_(2)
        first[0] = 7
        found.append((x, first))
    assert_same(*found)


def test_text():
    for settings in ({}, {"requires_grad": True}):
        assert repr(made(genesis, **settings)) == repr(made(torch, **settings))


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda F, x: x.size(1), "irregular and does not have a size"),
    (lambda F, x: x + F.ones(3), "nested"), (lambda F, x: x + made(F, SIZES[::-1]), "size"),
    (lambda F, x: x.transpose(0, 1), "batch|dimension 0"), (lambda F, x: x.numpy(), "nested"),
    (lambda F, x: F.nested.nested_tensor([F.ones(2), F.ones(2, 3)]), "the same dimension"),
    (lambda F, x: x.to_padded_tensor(0.0, (3, 2, 3)), "output_size|less than|smaller"),
    (lambda F, x: F.nested.as_nested_tensor(x, layout=getattr(F, "jagged", None) or F.nested.jagged), "layout"),
    (lambda F, x: F.nested.nested_tensor([F.ones(2)], layout="jagged"), "layout"),
    (lambda F, x: F.nested.as_nested_tensor([F.ones(2)], layout=F.sparse_coo), "layout"),
    (lambda F, x: F.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=F.ones(2, 2)), "mask"),
    (lambda F, x: x.sort(-1), "nested|NestedTensor"),
])
def test_what_is_refused_is_refused_by_both(wrong, message):
    with pytest.raises((RuntimeError, NotDenseError), match=message):
        wrong(genesis, made(genesis))
    with pytest.raises((RuntimeError, NotImplementedError)):
        wrong(torch, made(torch))
