"""Nested tensors of the jagged layout beside PyTorch's: values, shapes, gradients."""

from functools import partial

import numpy as np
import pytest
import torch

import genesis
from genesis.tensor.composite import NotDenseError
from tests.nested import comparing
from tests.tolerances import assert_close

LENGTHS = 2, 5, 1


def sequences(library, *rest, seed=0):
    rng = np.random.default_rng(seed)
    return [library.tensor(rng.standard_normal((length, *rest)).astype(np.float32)) for length in LENGTHS]


def made(library, *rest, requires_grad=False):
    layout = torch.jagged if library is torch else genesis.nested.jagged
    return library.nested.nested_tensor(sequences(library, *rest), requires_grad=requires_grad, layout=layout)


def extents(x):
    return [extent if type(extent) is int else "j" for extent in x.shape]


def assert_same_sizes(ours, theirs):
    assert extents(ours) == extents(theirs)
    assert_close(ours.offsets(), theirs.offsets())


assert_same = partial(comparing.assert_same, assert_same_sizes=assert_same_sizes)


def dense(F, *shape):
    return F.tensor(np.random.default_rng(9).standard_normal(shape).astype(np.float32))


CASES = {
    "itself": lambda F, x: (x, x.values(), x.offsets(), x.lengths(), x.dim(), x.numel(), x.size(0), x.size(-1), len(x)),
    "sequences": lambda F, x: (x.unbind(), [*x], x[0], x[-1], F.unbind(x)),
    "padded": lambda F, x: (
        x.to_padded_tensor(0.0), F.nested.to_padded_tensor(x, -1.0), x.transpose(1, 2).to_padded_tensor(2.0)),
    "arithmetic": lambda F, x: (x * 2, x + x, 1 - x, x / 3, -x, x * x.sin(), x**2, F.where(x > 0, x, -x)),
    "dense operands": lambda F, x: (x + dense(F, 4), x * dense(F, 3, 1, 4), x - dense(F, 1), x + dense(F, 1, 1, 4)),
    "functions": lambda F, x: (x.exp(), F.relu(x), F.nn.functional.gelu(x), F.sigmoid(x), x.abs(), F.nn.functional.silu(x)),
    "sums": lambda F, x: (x.sum(1), x.sum(1, keepdim=True), x.sum(-1), x.sum(), x.sum(2, keepdim=True)),
    "means": lambda F, x: (x.mean(1), x.mean(-1), x.mean(), x.amax(1), x.amin(1), x.amax(-1)),
    "softmax": lambda F, x: (F.softmax(x, -1), F.softmax(x, 1), x.log_softmax(-1)),
    "axes": lambda F, x: (x.transpose(1, 2), x.unsqueeze(-1), x.unflatten(-1, (2, 2)), x.unflatten(-1, (2, 2)).flatten(-2)),
    "heads": lambda F, x: (x.unflatten(-1, (2, 2)).transpose(1, 2), x.unflatten(-1, (2, 2)).transpose(1, 2).transpose(1, 2)),
    "slices": lambda F, x: (x[..., :2], x.select(2, 1), x.chunk(2, -1), x.narrow(2, 1, 2)),
    "reshaped": lambda F, x: (x.reshape(3, -1, 2, 2), x.unsqueeze(2).expand(3, -1, 5, 4)),
    "joined": lambda F, x: F.cat([x, x * 2], -1),
    "products": lambda F, x: (x @ dense(F, 4, 2), F.matmul(x, dense(F, 4, 3)), F.nn.functional.linear(x, dense(F, 5, 4))),
    "norms": lambda F, x: (F.nn.functional.layer_norm(x, (4,)), F.nn.functional.rms_norm(x, (4,))),
    "like": lambda F, x: (F.zeros_like(x), F.ones_like(x), x.clone(), x.detach(), x.double(), x.to(F.float64)),
    "attention": lambda F, x: F.nn.functional.scaled_dot_product_attention(
        *[y.unflatten(-1, (2, 2)).transpose(1, 2) for y in (x, x * 2, x.sin())]),
}


@pytest.mark.parametrize("name", CASES)
def test_operations(name):
    assert_same(CASES[name](genesis, made(genesis, 4)), CASES[name](torch, made(torch, 4)))


MADE = {
    "from offsets": lambda F: F.nested.nested_tensor_from_jagged(dense(F, 5, 2), F.tensor([0, 2, 5])),
    "from lengths": lambda F: F.nested.nested_tensor_from_jagged(dense(F, 5, 2), lengths=F.tensor([2, 3])),
    "empty sequences": lambda F: F.nested.nested_tensor_from_jagged(dense(F, 5, 2), F.tensor([0, 0, 5, 5])),
    "ints": lambda F: F.nested.nested_tensor_from_jagged(F.arange(5), F.tensor([0, 2, 5])),
}


@pytest.mark.parametrize("name", MADE)
def test_creation(name):
    assert_same(MADE[name](genesis), MADE[name](torch))


def test_parts_of_dense_tensors():
    x = genesis.arange(12).reshape(2, 3, 2)
    assert [y.tolist() for y in genesis.nested.narrow(
            x, 1, genesis.tensor([0, 1]), 2, genesis.nested.jagged)] == [
        [[0, 1], [2, 3]], [[8, 9], [10, 11]]]
    mask = genesis.tensor([[True, False], [True, True]])
    assert [y.tolist() for y in genesis.nested.masked_select(genesis.arange(4).reshape(2, 2), mask)] == [[0], [2, 3]]


class Block:
    """A block of a transformer, of either library."""

    def __init__(self, F):
        torch.manual_seed(0)
        def layers(nn):
            return [nn.LayerNorm(4), *[nn.Linear(4, 16, bias=False) for _ in range(3)], nn.Linear(16, 4), nn.Linear(4, 8)]

        self.layers = reference = layers(torch.nn)
        if F is genesis:
            self.layers = layers(genesis.nn)
            for ours, theirs in zip(self.layers, reference, strict=True):
                ours.load_state_dict({name: genesis.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
        self.F = F

    def __call__(self, x):
        norm, *projections, out, wide = self.layers
        q, k, v = [project(norm(x)).unflatten(-1, (2, 8)).transpose(1, 2) for project in projections]
        x = x + out(self.F.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))
        return self.F.nn.functional.gelu(wide(x))


def test_a_block_of_a_transformer_and_its_gradients():
    found = []
    for F in (genesis, torch):
        block, x = Block(F), made(F, 4, requires_grad=True)
        y = block(x)
        y.values().square().sum().backward()
        found.append((y.detach(), x.grad, *[p.grad for layer in block.layers for p in layer.parameters()]))
    assert_same(*found)


def test_attention_drops_other_weights_in_each_sequence():
    q = genesis.nested.nested_tensor([genesis.ones(40, 2, 8)] * 2, layout=genesis.nested.jagged).transpose(1, 2)
    genesis.manual_seed(0)
    first, second = genesis.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5).unbind()
    assert 0.8 < first.mean().item() < 1.2 and not genesis.allclose(first, second)


def test_gradients_flow_to_sequences():
    parts = [x.requires_grad_() for x in sequences(genesis, 2)]
    x = genesis.nested.as_nested_tensor(parts, layout=genesis.nested.jagged)
    (x * 2).sum(1)[1].sum().backward()
    assert [float(p.grad.sum().item()) for p in parts] == [0.0, 20.0, 0.0]
    assert not genesis.nested.nested_tensor(parts).requires_grad


def test_compiled_calls_are_replayed():
    block = Block(genesis)

    @genesis.compile
    def step(x):
        return block(x).sum(1)

    for seed in range(4):
        x = genesis.nested.nested_tensor(sequences(genesis, 4, seed=seed), layout=genesis.nested.jagged)
        assert_close(step(x), block(x).sum(1), scale=4)
    assert step.refusals == [] and [entry.replays for entry in step.entries] == [3]


def test_compiled_calls_of_the_strided_layout_are_replayed():
    step = genesis.compile(lambda x: (x * 2).softmax(-1).to_padded_tensor(0.0))
    for seed in range(4):
        x = genesis.nested.nested_tensor(sequences(genesis, 4, seed=seed))
        assert_close(step(x), (x * 2).softmax(-1).to_padded_tensor(0.0))
    assert step.refusals == [] and [entry.replays for entry in step.entries] == [3]


@pytest.mark.parametrize("wrong", [
    lambda x: x.numpy(), lambda x: x.sum(0), lambda x: x.cumsum(1), lambda x: x.flatten(0), lambda x: x.sort(-1),
    lambda x: genesis.nn.functional.layer_norm(x, (5, 4)), lambda x: x.tolist(), lambda x: x @ x,
])
def test_what_a_nested_tensor_cannot_do_says_so(wrong):
    with pytest.raises((NotDenseError, ValueError), match=r"nested one of shape \(3, j, 4\)|inner extents"):
        wrong(made(genesis, 4))


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda x: x + genesis.ones(3, 5, 4), "want an extent of 1"),
    (lambda x: x + x.narrow(0, 0, 2), "want equal sequences"),
    (lambda x: genesis.nested.as_nested_tensor([genesis.ones(2, 3), genesis.ones(2, 4)], layout=genesis.nested.jagged),
     "equal but for their first extent"),
    (lambda x: genesis.nested.nested_tensor_from_jagged(genesis.ones(3), genesis.tensor([0, 2, 1])), "rise from 0"),
    (lambda x: x[:, 0], "want all of the batch"),
])
def test_wrong_arguments(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong(made(genesis, 4))


def test_text():
    assert repr(made(genesis, 4)) == "NestedTensor(size=(3, j, 4), offsets=tensor([0, 2, 7, 8]), contiguous=True)"
    assert "requires_grad=True" in repr(made(genesis, 4, requires_grad=True))
    assert made(genesis, 4).layout is genesis.nested.jagged and isinstance(made(genesis, 4), genesis.Tensor)
