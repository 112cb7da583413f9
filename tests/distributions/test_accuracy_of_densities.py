"""Densities and quantiles of float32 beside those of float64, which other tests compare, for parameters of any size."""

import mpmath
import numpy as np
import pytest
import torch
import torch.distributions as theirs

import genesis
import genesis.distributions as ours
from genesis.functions.methods.table import functions_of
from tests.distributions.cases import CASES, KEYS, LOOSE
from tests.tolerances import to_numpy

RANDOM = np.random.default_rng(0)
TOLERANCE = 1e-5


def powers(least, most):
    return (10 ** RANDOM.uniform(least, most, 400)).astype(np.float32)


def numbers(scale=10):
    return (RANDOM.normal(size=400) * scale).astype(np.float32)


def shares(least=1e-4):
    small = 10 ** RANDOM.uniform(np.log10(least), -1, 200)
    return np.concatenate([small, 1 - small[:100], RANDOM.uniform(0.1, 0.9, 100)]).astype(np.float32)


LARGE = {
    "Beta": (powers(-2, 4), powers(-2, 4)), "Binomial": (np.floor(powers(0, 5)), shares()),
    "Cauchy": (numbers(), powers(-2, 2)), "Chi2": (powers(-2, 5),), "Exponential": (powers(-2, 2),),
    "FisherSnedecor": (powers(-1, 4), powers(-1, 4)),
    "Gamma": (powers(-2, 5), powers(-2, 2)), "Gumbel": (numbers(), powers(-2, 2)), "HalfCauchy": (powers(-2, 2),),
    "HalfNormal": (powers(-2, 2),), "InverseGamma": (powers(-1, 4), powers(-2, 2)),
    "Kumaraswamy": (powers(-1, 2), powers(-1, 2)), "Laplace": (numbers(), powers(-2, 2)),
    "NegativeBinomial": (powers(-1, 4), shares(1e-3)), "Normal": (numbers(), powers(-2, 2)), "Poisson": (powers(-2, 6),),
    "StudentT": (powers(-1, 5), numbers(), powers(-2, 2)), "VonMises": (numbers(1), powers(-2, 5)),
    "Weibull": (powers(-2, 2), powers(-0.5, 2)),
}


def both_precisions(name):
    return [getattr(ours, name)(*[genesis.tensor(p.astype(dtype)) for p in LARGE[name]], validate_args=False)
            for dtype in (np.float32, np.float64)]


def close(found, wanted):
    found, wanted = to_numpy(found).astype(np.float64), to_numpy(wanted)
    usual = np.isfinite(wanted)
    assert usual.sum() > 300
    np.testing.assert_allclose(found[usual], wanted[usual], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", LARGE)
def test_densities_and_entropies_have_the_digits_of_float32(name):
    genesis.manual_seed(0)
    rough, exact = both_precisions(name)
    x = to_numpy(exact.sample()).astype(np.float32)
    close(rough.log_prob(genesis.tensor(x)), exact.log_prob(genesis.tensor(x.astype(np.float64))))
    if type(exact).entropy not in (ours.Distribution.entropy, ours.ExponentialFamily.entropy) and name != "Binomial":
        close(rough.entropy(), exact.entropy())


@pytest.mark.parametrize("name", [
    "Cauchy", "Exponential", "Gumbel", "HalfCauchy", "HalfNormal", "Kumaraswamy", "Laplace", "Normal", "Weibull",
])
def test_probabilities_and_quantiles_have_digits_in_the_tails(name):
    """Relative to the size: of one millionth or of 1e-20, and of what is all but 1."""
    sizes = {"Cauchy": (0, 1), "Laplace": (0, 1), "Normal": (0, 1), "Gumbel": (0, 1)}.get(name, (1.0, 1.5))
    count = {"Exponential": 1, "HalfCauchy": 1, "HalfNormal": 1}.get(name, 2)
    rough, exact = [getattr(ours, name)(*[genesis.tensor(float(s), dtype=dtype) for s in sizes[:count]])
                    for dtype in (genesis.float32, genesis.float64)]
    p = np.array([1e-20, 1e-6, 0.01, 0.3, 0.5, 0.7, 0.99, 1 - 2.0**-20, 1 - 2.0**-24], np.float32)
    wanted = to_numpy(exact.icdf(genesis.tensor(p.astype(np.float64))))
    found = to_numpy(rough.icdf(genesis.tensor(p)))
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=1e-7 * (name in ("Cauchy", "Laplace", "Normal")))
    at = wanted.astype(np.float32)
    wanted = to_numpy(exact.cdf(genesis.tensor(at.astype(np.float64))))
    np.testing.assert_allclose(to_numpy(rough.cdf(genesis.tensor(at))), wanted, rtol=TOLERANCE)


def test_logarithms_of_gamma_functions_are_exact_for_arguments_of_any_size():
    stirling_error, digamma_error, log_beta = functions_of("stirling_error", "digamma_error", "log_beta")
    with mpmath.workdps(40):
        a, b = (10 ** RANDOM.uniform(-3, 6, (2, 100))).tolist()
        for row, arguments, formula in (
            (stirling_error, (a,),
             lambda x: mpmath.loggamma(x) - (x - 0.5) * mpmath.log(x) + x - mpmath.log(mpmath.pi * 2) / 2),
            (digamma_error, (a,), lambda x: mpmath.log(x) - mpmath.digamma(x)),
            (log_beta, (a, b), lambda x, y: mpmath.log(mpmath.beta(x, y))),
        ):
            wanted = [float(formula(*[mpmath.mpf(x) for x in xs])) for xs in zip(*arguments, strict=True)]
            found = row(*[genesis.tensor(x, dtype=genesis.float64) for x in arguments])
            np.testing.assert_allclose(to_numpy(found), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", ["Beta", "Exponential", "Gamma", "Poisson"])
def test_divergences_of_near_distributions_have_the_digits_of_float32(name):
    first = [np.minimum(p, 300) if name == "Beta" else p for p in LARGE[name]]
    second = [(p * (1 + RANDOM.normal(size=p.shape) / 10)).astype(np.float32) for p in first]
    found, wanted = [
        ours.kl_divergence(*[
            getattr(ours, name)(*[genesis.tensor(p.astype(dtype)) for p in parameters]) for parameters in (first, second)
        ]) for dtype in (np.float32, np.float64)]
    close(found, wanted)


@pytest.mark.usefixtures("by_references")
@pytest.mark.parametrize(("name", "number"), KEYS)
def test_gradients_of_densities_are_torchs(name, number):
    given = {key: np.asarray(x, np.float64) for key, x in CASES[name][number].items() if not isinstance(x, int)}
    others = {key: x for key, x in CASES[name][number].items() if isinstance(x, int)}
    leaves = [{key: tensor(x).requires_grad_() for key, x in given.items()} for tensor in (torch.tensor, genesis.tensor)]
    p, q = [getattr(library, name)(**others, **of) for library, of in zip((theirs, ours), leaves, strict=True)]
    x = p.sample((3,))
    p.log_prob(x).sum().backward()
    q.log_prob(genesis.tensor(x.numpy())).sum().backward()
    for key, leaf in leaves[0].items():
        tolerance, wanted = 10 * LOOSE.get(name, 1e-10), leaf.grad.numpy()
        wanted = np.tril(wanted) if key == "scale_tril" else wanted  # what lies above is not read
        np.testing.assert_allclose(to_numpy(leaves[1][key].grad), wanted, tolerance, tolerance, err_msg=key)


@pytest.mark.parametrize(("name", "parameters", "value"), [
    ("Gamma", {"concentration": 1.0, "rate": 2.0}, 0.0), ("Poisson", {"rate": 2.0}, 0.0),
    ("Binomial", {"total_count": 5.0, "logits": -200.0}, 2.0), ("Binomial", {"total_count": 5.0, "logits": 50.0}, 5.0),
    ("NegativeBinomial", {"total_count": 5.0, "logits": 0.3}, 0.0),
    ("Beta", {"concentration1": 1.0, "concentration0": 3.0}, 0.0),
    ("Beta", {"concentration1": 2.0, "concentration0": 3.0}, 0.0), ("Gamma", {"concentration": 3.0, "rate": 2.0}, 0.0),
    ("Gamma", {"concentration": 1.0, "rate": 2.0}, np.inf),
])
def test_densities_at_the_edge_of_the_support_are_torchs(name, parameters, value):
    p, q = [getattr(library, name)(**{key: tensor(x) for key, x in parameters.items()})
            for library, tensor in ((theirs, torch.tensor), (ours, lambda x: genesis.tensor(x, dtype=genesis.float64)))]
    wanted = p.log_prob(torch.tensor(value)).item()
    rates = [key for key in parameters if key in ("rate", "logits")]
    for key in rates:
        setattr(q, key, getattr(q, key).requires_grad_())
        setattr(p, key, getattr(p, key).requires_grad_())
    found = q.log_prob(genesis.tensor(value, dtype=genesis.float64))
    assert found.item() == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    for key in rates:
        found.backward()
        p.log_prob(torch.tensor(value)).backward()
        if np.isfinite(wanted):
            assert getattr(q, key).grad.item() == pytest.approx(getattr(p, key).grad.item(), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("name", "parameters", "values"), [
    ("Uniform", (1.0, 3.0), [0.0, 1.0, 2.0, 3.0, 4.0]), ("Gamma", (0.5, 2.0), [0.0, 1.0]), ("Poisson", (2.0,), [-1.0, 3.0]),
])
def test_densities_and_gradients_at_and_beyond_the_edge_are_torchs(name, parameters, values):
    found = []
    for library, tensors in ((theirs, torch), (ours, genesis)):
        x, *leaves = [tensors.tensor(v, dtype=tensors.float64, requires_grad=True) for v in (values, *parameters)]
        density = getattr(library, name)(*leaves, validate_args=False).log_prob(x)
        wanted = leaves if name == "Uniform" else [x] if name == "Gamma" else []
        found.append([density, *(tensors.autograd.grad(density.sum(), wanted) if wanted else ())])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(to_numpy(b), a.detach().numpy(), 1e-10)


def test_a_continuous_bernoullis_probabilities_beyond_its_support_are_0_and_1():
    values = [-np.inf, -1.0, 2.0, 1e30, np.inf]
    found = ours.ContinuousBernoulli(probs=0.3, validate_args=False).cdf(genesis.tensor(values))
    np.testing.assert_allclose(found.numpy(), [0, 0, 1, 1, 1], atol=1e-6)
