"""Divergences of every pair that PyTorch has."""

import numpy as np
import pytest
import torch.distributions as theirs
from torch.distributions import kl

import genesis
import genesis.distributions as ours
from genesis.distributions.kl import _exponential_family
from tests.distributions.cases import CASES, both, case, positive, real, same, share
from tests.tolerances import to_numpy

PAIRS = [(p.__name__, q.__name__) for p, q in kl._KL_REGISTRY]
OF_BASES = ["ExponentialFamily", "TransformedDistribution", "Independent"]
SHAPED = {  # parameters of one shape: PyTorch's rules do not all broadcast
    "Beta": [{"concentration1": positive(3), "concentration0": positive(3)} for _ in range(2)],
    "Binomial": [{"total_count": 5, "probs": share(3)}, {"total_count": 7, "probs": share(3)}],
    "Categorical": [{"probs": positive(3)}, {"logits": real(3)}],
    "Dirichlet": [{"concentration": positive(2, 3)} for _ in range(2)],
    "ContinuousBernoulli": [{"probs": share(3)}, {"logits": real(3)}], "Bernoulli": [{"probs": share(3)}, {"logits": real(3)}],
    "OneHotCategorical": [{"probs": positive(3)}, {"logits": real(3)}],
    "Geometric": [{"probs": share(3)}, {"probs": share(3)}],
    "Uniform": [{"low": share(3) * 0.3, "high": 0.5 + share(3) * 0.4}, {"low": share(3) * -5, "high": 2 + share(3)}],
    "Gamma": [{"concentration": positive(3), "rate": positive(3)} for _ in range(2)],
    "LowRankMultivariateNormal": [
        {"loc": real(2, 3), "cov_factor": real(3, 2), "cov_diag": positive(3)},
        {"loc": real(3), "cov_factor": real(2, 3, 1), "cov_diag": positive(3)},
    ],
    "MultivariateNormal": [CASES["MultivariateNormal"][1], CASES["MultivariateNormal"][2]],
    **{name: [{"loc": real(3), "scale": positive(3)} for _ in range(2)] for name in ("Cauchy", "Gumbel", "Laplace", "Normal")},
    "Pareto": [{"scale": positive(3), "alpha": positive(3) + 2}, {"scale": share(3) / 3, "alpha": positive(3)}],
    "Exponential": [{"rate": positive(3)} for _ in range(2)], "Poisson": [{"rate": positive(3)} for _ in range(2)],
    "HalfNormal": [{"scale": positive(3)} for _ in range(2)],
}


def test_every_pair_is_registered():
    assert {(p.__name__, q.__name__) for p, q in ours.kl._KL_REGISTRY} >= {*PAIRS}


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize(("left", "right"), [pair for pair in PAIRS if pair[0] not in OF_BASES])
def test_divergences_are_torchs(left, right):
    for a, b in ((0, 1), (1, 0)):
        (p, mine), (q, other) = both(left, SHAPED[left][a]), both(right, SHAPED[right][b])
        try:
            wanted = theirs.kl_divergence(p, q)
        except NotImplementedError:
            assert (left, right, a) == ("Binomial", "Binomial", 0)
            with pytest.raises(NotImplementedError, match="fewer trials"):
                ours.kl_divergence(mine, other)
            continue
        same(f"{left} and {right}", wanted, ours.kl_divergence(mine, other))


def test_divergences_of_distributions_made_of_others_are_those_of_their_parts():
    (p, mine), (q, other) = both("LogNormal", SHAPED["Normal"][0]), both("LogNormal", SHAPED["Normal"][1])
    same("LogNormal", theirs.kl_divergence(p, q), ours.kl_divergence(mine, other))
    (p, mine), (q, other) = both("Normal", SHAPED["Normal"][0]), both("Normal", SHAPED["Normal"][1])
    found = ours.kl_divergence(ours.Independent(mine, 1), ours.Independent(other, 1))
    same("Independent", theirs.kl_divergence(theirs.Independent(p, 1), theirs.Independent(q, 1)), found)
    with pytest.raises(NotImplementedError, match="none is registered for Normal and Cauchy"):
        ours.kl_divergence(mine, ours.Cauchy(0.0, 1.0))


@pytest.mark.parametrize("name", ["Normal", "Gamma", "Exponential", "Bernoulli", "Poisson", "ContinuousBernoulli", "Dirichlet"])
def test_the_general_divergence_of_an_exponential_family_is_the_special_one(name):
    (_, p), (_, q) = both(name, SHAPED[name][0]), both(name, SHAPED[name][1])
    np.testing.assert_allclose(
        to_numpy(_exponential_family(p, q)), to_numpy(ours.kl_divergence(p, q)), rtol=1e-9, atol=1e-12)
    if name not in ("Poisson", "Dirichlet"):
        np.testing.assert_allclose(to_numpy(ours.ExponentialFamily.entropy(p)), to_numpy(p.entropy()), rtol=1e-9, atol=1e-12)


def test_a_divergence_has_gradients():
    """Those of the parameters of both, beside PyTorch's."""
    for name in ("Gamma", "Laplace", "Normal", "Dirichlet"):
        (p, mine), (q, other) = both(name, SHAPED[name][0]), both(name, SHAPED[name][1])
        parameters = [getattr(d, key) for d in (p, q) for key in SHAPED[name][0]]
        twins = [getattr(d, key) for d in (mine, other) for key in SHAPED[name][0]]
        for tensor in [*parameters, *twins]:
            tensor.requires_grad_()
        theirs.kl_divergence(p, q).sum().backward()
        ours.kl_divergence(mine, other).sum().backward()
        for a, b in zip(parameters, twins, strict=True):
            same(name, a.grad, b.grad, 1e-8)  # of polygamma functions PyTorch has ten digits


def test_the_closest_pair_of_classes_is_taken():
    class Special(ours.Normal):
        pass

    p, q = Special(0.0, 1.0), Special(1.0, 1.0)
    assert ours.kl_divergence(p, q).item() == 0.5

    @ours.register_kl(Special, Special)
    def other(p, q):
        return genesis.tensor(7.0)

    assert ours.kl_divergence(p, q).item() == 7
    assert ours.kl_divergence(p, ours.Normal(1.0, 1.0)).item() == 0.5


def test_a_continuous_bernoulli_within_a_uniform_distribution_is_at_a_finite_distance():
    """PyTorch counts [0, 1] as too narrow for it."""
    _, q = case("ContinuousBernoulli", 0)
    assert np.isfinite(to_numpy(ours.kl_divergence(q, ours.Uniform(0.0, 1.0)))).all()
