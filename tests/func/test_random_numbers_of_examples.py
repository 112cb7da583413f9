"""Random numbers within `vmap` and Jacobians: refused, the same for all examples, or each example's own."""

import math

import pytest

import genesis
from genesis import nn
from genesis.func import functional_call, grad, jacfwd, jacrev, vmap

X = genesis.arange(12.0).reshape(4, 3)
# Functions of one example, by what they draw.
DRAWS = {
    "dropout": lambda x: nn.functional.dropout(x * 0 + 1 + genesis.arange(20.0)[:, None]),
    "rand_like": lambda x: genesis.rand_like(x) + x * 0,
    "float64": lambda x: genesis.randn(3, dtype=genesis.float64) + x * 0,
    "randint": lambda x: genesis.randint(0, 1_000_000, (3,)) + x.long() * 0,
    "bernoulli": lambda x: genesis.bernoulli(genesis.full((40,), 0.5)) + x.sum() * 0,
    "randperm": lambda x: genesis.randperm(20) + x.sum().long() * 0,
    "of nothing": lambda x: genesis.rand(3),
    "gamma": lambda x: genesis.distributions.Gamma(x * 0 + 2.0, genesis.ones(3)).rsample(),
    "poisson": lambda x: genesis.poisson(x * 0 + 500.0),
}


@pytest.fixture(params=[False, True], ids=["called", "compiled"])
def called(request):
    return genesis.compile if request.param else lambda f: f


def apart(rows):
    """How many rows differ."""
    return len({tuple(row) for row in rows.flatten(1).tolist()})


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_refused_shared_or_each_examples_own(name, called):
    with pytest.raises(RuntimeError, match="want randomness='different'"):
        vmap(DRAWS[name])(X)
    for randomness, want in (("different", 4), ("same", 1)):
        of_all = called(vmap(DRAWS[name], randomness=randomness))
        first, second, third = of_all(X), of_all(X), of_all(X)
        assert [apart(rows) for rows in (first, second, third)] == [want] * 3
        assert not first.equal(second) and not second.equal(third)


@pytest.mark.parametrize(("outer", "inner", "want"), [
    ("different", "different", 24), ("different", "same", 8), ("same", "different", 6), ("same", "same", 2),
])
def test_nested_functions_choose_each_for_their_own_examples(outer, inner, want):
    noise = vmap(lambda x: vmap(lambda y: genesis.rand(2) + y * 0, randomness=inner)(x), randomness=outer)(X)
    assert noise.shape == (4, 3, 2) and noise.flatten().unique().numel() == want


def test_one_that_refuses_them_refuses_those_of_inner_functions():
    with pytest.raises(RuntimeError, match="draws random numbers"):
        vmap(lambda x: vmap(lambda y: genesis.rand(2) + y, randomness="different")(x))(X)


def test_numbers_of_different_examples_are_uniform_and_their_gradients_flow():
    noise = vmap(lambda x: genesis.rand(2000) + x.sum() * 0, randomness="different")(X)
    assert abs(noise.mean().item() - 0.5) < 4 * math.sqrt(1 / 12 / 8000)
    assert abs(genesis.corrcoef(noise)[0, 1].item()) < 0.1
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    parameters = dict(net.named_parameters())
    loss = grad(lambda p, x: functional_call(net, p, (x,)).sum())
    of_each = vmap(loss, in_dims=(None, 0), randomness="different")(parameters, genesis.ones(6, 3))
    assert apart(of_each["2.weight"]) > 1
    assert apart(vmap(loss, in_dims=(None, 0), randomness="same")(parameters, genesis.ones(6, 3))["2.weight"]) == 1


@pytest.mark.parametrize("size", [None, 1, 3, 4, 9])
def test_chunks_give_what_all_at_once_gives(size):
    product, total = vmap(lambda x, y: (x * y, x.sum()), in_dims=(0, None), out_dims=(1, 0), chunk_size=size)(X, X[0])
    assert product.equal((X * X[0]).T) and total.equal(X.sum(1))
    noise = vmap(lambda x: genesis.rand(2) + x[0] * 0, randomness="same", chunk_size=size)(X)
    assert apart(noise) == 1
    assert apart(vmap(lambda x: genesis.rand(2) + x[0] * 0, randomness="different", chunk_size=size)(X)) == 4
    rows = jacrev(lambda x: (x**3).sum(1), chunk_size=size)(X)
    assert rows.equal(jacrev(lambda x: (x**3).sum(1))(X))


def test_jacobians_are_those_of_one_draw():
    with pytest.raises(RuntimeError, match="draws random numbers"):
        jacfwd(lambda x: x * genesis.rand(2))(genesis.ones(2))
    jacobian = jacfwd(lambda x: x * genesis.rand(2), randomness="same")(genesis.ones(2))
    assert jacobian[0, 1] == jacobian[1, 0] == 0 < jacobian[0, 0]


def test_settings_that_are_none_are_refused():
    with pytest.raises(RuntimeError, match="'error', 'different' or 'same'"):
        vmap(lambda x: x, randomness="other")
    for transform in (vmap, jacrev):
        with pytest.raises(ValueError, match="chunk_size is 0"):
            transform(lambda x: x, chunk_size=0)
    with pytest.raises(RuntimeError, match="strict=True"):
        genesis.func.jvp(lambda x: genesis.ones(2), (X,), (X,), strict=True)


# ---- modules with tensors at several paths ----
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.b.weight = self.a.weight
        for parameter in self.parameters():
            nn.init.constant_(parameter, 0.5)

    def forward(self, x):
        return self.b(self.a(x)).sum()


def test_tied_parameters_are_replaced_together_or_apart():
    zeros, x, tied = genesis.zeros(2, 2), genesis.ones(1, 2), Tied()
    for path in ("a.weight", "b.weight"):
        assert functional_call(tied, {path: zeros}, x).item() == 1.0
    assert functional_call(tied, {"b.weight": zeros}, x, tie_weights=False).item() == 1.0
    assert functional_call(tied, {"a.weight": zeros}, x, tie_weights=False).item() == 2.0
    with pytest.raises(ValueError, match="are one tensor"):
        functional_call(tied, {"a.weight": zeros, "b.weight": zeros + 1}, x)
    with pytest.raises(RuntimeError, match=r"has a\.bias, b\.bias as well"):
        functional_call(tied, {"a.weight": zeros}, x, strict=True)
    biases = {"a.bias": zeros[0], "b.bias": zeros[0]}
    assert functional_call(tied, {"a.weight": zeros} | biases, x, strict=True).item() == 0.0
    assert tied(x).item() == 4.0


@pytest.mark.parametrize(("randomness", "places"), [("different", 3), ("same", 1)])
def test_an_index_that_is_drawn_selects_and_sets_an_element_of_each_example(randomness, places):
    def marked(x):
        place = genesis.randint(0, 3, ())
        y = x.clone()
        y[place] = -1
        return x[place], place, y

    rows = genesis.arange(90.0).view(30, 3)
    chosen, at, y = vmap(marked, randomness=randomness)(rows)
    assert chosen.equal(rows[genesis.arange(30), at]) and at.unique().numel() == places
    assert y.equal(rows.index_put((genesis.arange(30), at), genesis.tensor(-1.0)))
