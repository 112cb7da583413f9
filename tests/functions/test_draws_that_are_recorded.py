"""Random choices and counts are rows: compiled functions and transforms draw them."""

import numpy as np
import pytest
import torch

import genesis

WEIGHTS = genesis.tensor([[0.1, 0.0, 3.0, 0.9], [1.0, 1.0, 0.0, 0.0]])
DRAWS = {
    "randperm": lambda x: genesis.arange(9.0)[genesis.randperm(9)] * x.sum(),
    "one": lambda x: x.multinomial(1), "several": lambda x: x.multinomial(2), "again": lambda x: x.multinomial(7, True),
    "poisson": lambda x: genesis.poisson(x * 10), "binomial": lambda x: genesis.binomial(x.floor() + 5, x / 4),
}


@pytest.mark.parametrize("name", DRAWS)
def test_replays_draw_what_plain_calls_do_each_time_anew(name):
    compiled, found = genesis.compile(DRAWS[name]), []
    for number in range(4):
        genesis.manual_seed(number)
        wanted = DRAWS[name](WEIGHTS).tolist()
        genesis.manual_seed(number)
        found.append(compiled(WEIGHTS).tolist())
        assert found[-1] == wanted
    assert len(compiled.entries) == 1, compiled.missed
    assert any(draw != found[0] for draw in found)


def test_orders_are_of_whole_numbers_that_their_dtype_has():
    for n in (np.int64(5), genesis.tensor(5), 5):
        assert genesis.randperm(n, dtype=genesis.uint8).sort().values.tolist() == [0, 1, 2, 3, 4]
    for n, dtype, problem in ((5.0, "int64", TypeError), (-1, "int64", ValueError), (300, "uint8", ValueError)):
        with pytest.raises(problem, match="randperm"):
            genesis.randperm(n, dtype=getattr(genesis, dtype))


@pytest.mark.parametrize("mean, std", [("float16", "float32"), ("float32", "float16"), (None, "float64"), ("float64", None)])
def test_normal_numbers_have_the_first_tensors_dtype_and_no_gradient(mean, std):
    def run(lib):
        tensors = [lib.ones(shape, dtype=getattr(lib, dtype), requires_grad=True) if dtype else 1.0
                   for shape, dtype in (((2, 1), mean), ((3,), std))]
        drawn = lib.normal(*tensors)
        drawn.sum().backward()
        return str(drawn.dtype)[-7:], [*drawn.shape], [x.grad.tolist() for x in tensors if not isinstance(x, float)]

    assert run(genesis) == run(torch)
    with pytest.raises(ValueError, match="complex64"):
        genesis.normal(0.0, genesis.ones(2, dtype=genesis.complex64))


def test_one_choice_is_that_of_several_draws_first():
    for replacement in (False, True):
        counts = np.zeros(4)
        for _ in range(40):
            counts += np.bincount(WEIGHTS[0].expand(50, 4).multinomial(1, replacement)[:, 0].numpy(), minlength=4)
        assert counts[1] == 0
        assert np.abs(counts / 2000 - WEIGHTS[0].numpy() / 4).max() < 0.05


def test_what_is_drawn_of_no_parameter_raises_also_when_it_is_replayed():
    compiled = genesis.compile(lambda rate: genesis.poisson(rate) + 1)
    for rate in (1.0, 2.0):
        compiled(genesis.tensor([rate])).numpy()
    with pytest.raises(ValueError, match="poisson: a parameter is infinite, NaN or negative"):
        compiled(genesis.tensor([-1.0])).numpy()
    with genesis.eager(), pytest.raises(ValueError, match="poisson: a parameter is infinite, NaN or negative"):
        genesis.distributions.Poisson(genesis.tensor(-1.0), validate_args=False).sample().item()


def test_counts_of_a_batch_are_drawn_apart():
    genesis.manual_seed(0)
    draws = genesis.func.vmap(lambda rate: genesis.poisson(rate.expand(50)), randomness="different")(genesis.full((3,), 20.0))
    assert draws.shape == (3, 50)
    assert len({tuple(row) for row in draws.tolist()}) == 3
