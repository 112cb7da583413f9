"""Every distribution beside PyTorch: densities, moments, quantiles, shapes, samples."""

import numpy as np
import pytest
import scipy.stats
import torch
import torch.distributions as theirs

import genesis
import genesis.distributions as ours
from tests.distributions.cases import CASES, KEYS, LOOSE, both, case, mean_of, rounded, same
from tests.tolerances import to_numpy

ids = pytest.mark.parametrize(("name", "number"), KEYS)


def asked(distribution, ask):
    """An answer, or None where there is none."""
    try:
        return ask(distribution)
    except NotImplementedError:
        return None


def test_all_names_are_there():
    assert {*theirs.__all__} - {*dir(ours)} == set()
    assert {name for name in theirs.__all__ if isinstance(getattr(theirs, name), type)
            and issubclass(getattr(theirs, name), theirs.Distribution)} - {*CASES} == {
        "Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily", "TransformedDistribution"}


@pytest.mark.usefixtures("by_references")
@ids
def test_moments_densities_and_shapes_are_torchs(name, number):
    p, q = case(name, number)
    tolerance = LOOSE.get(name, 1e-10)
    assert (tuple(p.batch_shape), tuple(p.event_shape)) == (tuple(q.batch_shape), tuple(q.event_shape))
    asks = {
        "mean": lambda d: d.mean, "mode": lambda d: d.mode, "variance": lambda d: d.variance, "stddev": lambda d: d.stddev,
        "entropy": lambda d: d.entropy(), "perplexity": lambda d: d.perplexity(),
        "enumerate_support": lambda d: d.enumerate_support(), "unexpanded": lambda d: d.enumerate_support(expand=False),
    }
    if name == "Kumaraswamy":
        del asks["mode"]  # PyTorch's is NaN: see below
    for what, ask in asks.items():
        wanted = asked(p, ask)
        if wanted is not None:
            same(what, wanted, ask(q), tolerance)
    x = p.sample((4,))
    y, u = genesis.tensor(x.numpy()), torch.rand(5, *p.batch_shape, dtype=torch.float64)
    same("log_prob", p.log_prob(x), q.log_prob(y), tolerance)
    for what, ask, (a, b) in (
        ("cdf", lambda d, v: d.cdf(v), (x, y)), ("icdf", lambda d, v: d.icdf(v), (u, genesis.tensor(u.numpy()))),
    ):
        wanted = asked(p, lambda d, ask=ask, a=a: ask(d, a))
        if wanted is not None:
            same(what, wanted, ask(q, b), tolerance)
    wide = q.expand((2, *p.batch_shape))
    assert type(wide) is type(q)
    assert tuple(wide.batch_shape) == (2, *p.batch_shape)
    same("expanded", p.log_prob(x)[:, None].expand(4, 2, *p.batch_shape), wide.log_prob(y[:, None]), tolerance)
    assert wide.sample((3,)).shape == (3, 2, *p.batch_shape, *p.event_shape)


@pytest.mark.usefixtures("by_references")  # their kernels: see test_gradients.py and test_accuracy_of_densities.py
@pytest.mark.parametrize(("name", "number"), {(name, *CASES[name][number]): (name, number) for name, number in KEYS}.values())
def test_densities_of_float32_are_torchs(name, number):
    torch.set_default_dtype(torch.float32)
    p, q = case(name, number, np.float32)
    x = p.sample((4,))
    torch.set_default_dtype(torch.float64)
    if name in ("Uniform", "Pareto", "GeneralizedPareto"):  # not at the end of the support, which rounding moves
        x = x * 0.999 + p.icdf(torch.tensor(0.5)) * 0.001
    reference, _ = both(name, rounded(CASES[name][number]))
    reference._validate_args = False  # float32 meets constraints less exactly
    found = q.log_prob(genesis.tensor(x.numpy()))
    assert found.dtype is genesis.float32
    same("log_prob", reference.log_prob(x.double()).float(), found, 1e-5)


@pytest.mark.usefixtures("by_references")
@ids
def test_samples_have_their_moments(name, number):
    genesis.manual_seed(number)
    p, q = case(name, number)
    samples = q.sample((4000,))
    assert samples.shape == (4000, *p.batch_shape, *p.event_shape)
    assert not samples.requires_grad
    q._validate_sample(samples)
    if name in ("Cauchy", "HalfCauchy"):
        half = q.cdf(samples)
        assert np.abs(mean_of(half) - 0.5).max() < 5 / 12**0.5 / 4000**0.5
        return
    if name == "Categorical":
        samples = ours.OneHotCategorical(probs=q.probs).log_prob(genesis.eye(q._num_events, dtype=genesis.float64)[samples])
        assert np.abs(mean_of(samples.exp()) - mean_of(q.probs.square().sum(-1, True).movedim(-1, 0))).max() < 0.03
        return
    values = to_numpy(samples).astype(np.float64)
    if name == "VonMises":
        values = np.cos(values - to_numpy(q.loc))
        wanted, spread = 1 - to_numpy(q.variance), 1.0
    elif name in ("LogisticNormal", "RelaxedBernoulli", "RelaxedOneHotCategorical", "LKJCholesky"):
        torch.manual_seed(0)
        many = to_numpy(p.sample((4000,)))
        wanted, spread = many.mean(0), many.std(0) * 2**0.5
        if name == "LKJCholesky":
            values, wanted = values @ np.swapaxes(values, -1, -2), np.eye(p.dim)
            spread = 1.0
    else:
        wanted, spread = to_numpy(q.mean), to_numpy(q.variance) ** 0.5
    assert (np.abs(values.mean(0) - wanted) <= 5 * spread / 4000**0.5 + 1e-9).all()


def test_correlations_have_the_variance_of_their_density():
    """Each correlation is 2 b - 1 of a beta number b of equal concentrations n / 2 - 1 + eta."""
    genesis.manual_seed(0)
    for n, eta in ((3, 1.5), (4, 0.7)):
        lower = ours.LKJCholesky(n, genesis.tensor(eta, dtype=genesis.float64)).sample((8000,)).numpy()
        correlations = lower @ np.swapaxes(lower, -1, -2)
        wanted = 1 / (2 * eta + n - 1)
        for i in range(n):
            for j in range(i):
                assert correlations[:, i, j].var() == pytest.approx(wanted, rel=0.08)


@pytest.mark.parametrize(("name", "parameters", "scipys"), [
    ("Gamma", (2.5, 1.5), scipy.stats.gamma(2.5, scale=1 / 1.5)), ("Beta", (0.7, 2.5), scipy.stats.beta(0.7, 2.5)),
    ("StudentT", (3.5, 0.3, 1.2), scipy.stats.t(3.5, 0.3, 1.2)), ("VonMises", (0.3, 2.5), scipy.stats.vonmises(2.5, 0.3)),
    ("FisherSnedecor", (3.0, 7.0), scipy.stats.f(3, 7)), ("InverseGamma", (4.0, 1.5), scipy.stats.invgamma(4, scale=1.5)),
    ("GeneralizedPareto", (0.2, 1.5, 0.3), scipy.stats.genpareto(0.3, 0.2, 1.5)),
    ("Weibull", (1.5, 2.5), scipy.stats.weibull_min(2.5, scale=1.5)), ("Gumbel", (0.3, 1.5), scipy.stats.gumbel_r(0.3, 1.5)),
    ("LogNormal", (0.3, 0.8), scipy.stats.lognorm(0.8, scale=np.exp(0.3))),
    ("Pareto", (1.5, 3.5), scipy.stats.pareto(3.5, scale=1.5)),
    ("HalfCauchy", (1.5,), scipy.stats.halfcauchy(scale=1.5)), ("HalfNormal", (1.5,), scipy.stats.halfnorm(scale=1.5)),
    ("Laplace", (0.3, 1.5), scipy.stats.laplace(0.3, 1.5)), ("Chi2", (3.5,), scipy.stats.chi2(3.5)),
])
def test_densities_and_quantiles_are_scipys(name, parameters, scipys, by_references):
    distribution = getattr(ours, name)(*[genesis.tensor(p, dtype=genesis.float64) for p in parameters])
    x = scipys.ppf(np.linspace(0.02, 0.98, 13))
    values = genesis.tensor(x)
    np.testing.assert_allclose(to_numpy(distribution.log_prob(values)), scipys.logpdf(x), rtol=1e-10, atol=1e-10)
    for ask in (lambda: distribution.cdf(values), lambda: distribution.cdf(distribution.icdf(values * 0 + 0.3))):
        found = asked(distribution, lambda _, ask=ask: ask())
        if found is not None:
            wanted = scipys.cdf(x) if ask() is not None and np.ptp(to_numpy(found)) > 1e-6 else np.full(x.shape, 0.3)
            np.testing.assert_allclose(to_numpy(found), wanted, rtol=1e-9)


def test_the_mode_of_kumaraswamys_distribution_is_where_its_density_is_highest():
    q = ours.Kumaraswamy(genesis.tensor([1.5, 3.0]), genesis.tensor([2.5, 1.2]))
    x = genesis.linspace(0.001, 0.999, 999)
    highest = x[q.log_prob(x[:, None]).argmax(0)]
    assert np.abs(to_numpy(highest - q.mode)).max() < 2e-3


def test_a_mixture_is_torchs():
    weights = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    for name, parameters, probs in (
        ("Normal", {"loc": weights * 5, "scale": weights + 1}, weights),
        ("MultivariateNormal", {"loc": weights.T @ weights, "covariance_matrix": np.eye(3)}, weights[0]),
    ):
        (p, q), (a, b) = both(name, parameters), both("Categorical", {"probs": probs})
        mine, other = ours.MixtureSameFamily(b, q), theirs.MixtureSameFamily(a, p)
        x = other.sample((5,))
        y = genesis.tensor(x.numpy())
        same("log_prob", other.log_prob(x), mine.log_prob(y))
        same("mean", other.mean, mine.mean)
        same("variance", other.variance, mine.variance)
        if name == "Normal":
            same("cdf", other.cdf(x), mine.cdf(y))
        genesis.manual_seed(0)
        samples = mine.expand((2, *mine.batch_shape)).sample((3000,))
        assert np.abs(mean_of(samples) - to_numpy(mine.mean)).max() < 0.2


def test_parameters_and_values_are_checked_unless_one_says_not_to():
    with pytest.raises(ValueError, match=r"Normal: parameter scale of shape \(\) must satisfy GreaterThan\(lower_bound=0.0\)"):
        ours.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match=r"Normal: values must lie within the support Real\(\)"):
        ours.Normal(0.0, 1.0).log_prob(genesis.tensor(float("nan")))
    with pytest.raises(ValueError, match="Uniform: low must be less than high"):
        ours.Uniform(1.0, 1.0)
    with pytest.raises(ValueError, match="either probs or logits must be given, and not both"):
        ours.Bernoulli()
    with pytest.raises(ValueError, match=r"shape \(2,\); want \(3,\) on the right"):
        ours.MultivariateNormal(genesis.zeros(3), genesis.eye(3)).log_prob(genesis.zeros(2))
    assert ours.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    ours.Distribution.set_default_validate_args(False)
    try:
        ours.Normal(0.0, -1.0)
    finally:
        ours.Distribution.set_default_validate_args(True)


def test_a_subclass_with_an_init_of_its_own_must_expand_itself():
    class Standard(ours.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    assert ours.Normal(0.0, 1.0).expand((2,)).loc.shape == (2,)
    assert Standard().log_prob(genesis.tensor(0.0)).item() == pytest.approx(-0.9189385)


@pytest.mark.parametrize(("name", "settings"), [("Cauchy", (1.0, 2.0)), ("HalfCauchy", (2.0,))])
def test_a_probability_of_negative_zero_is_one_of_zero(name, settings):
    at, below = getattr(ours, name)(*settings).icdf(genesis.tensor([0.0, -0.0])).tolist()
    assert at == below <= getattr(theirs, name)(*settings).icdf(torch.tensor(0.0)).item()
