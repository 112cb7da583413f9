"""Gradients of samples, and distributions in compiled functions and transforms."""

import mpmath
import numpy as np
import pytest

import genesis
import genesis.distributions as d
from genesis.ops.registry import OPERATIONS, Operation
from genesis.tensor.dispatch import call
from tests.tolerances import to_numpy

BY_QUANTILES = {
    "Normal": (0.3, 1.2), "Laplace": (0.3, 1.2), "Cauchy": (0.3, 1.2), "Gumbel": (0.3, 1.2), "LogNormal": (0.3, 0.5),
    "HalfNormal": (1.2,), "HalfCauchy": (1.2,), "Uniform": (-1.0, 2.0), "Exponential": (1.5,), "Pareto": (1.0, 3.0),
    "Weibull": (1.0, 2.0), "Kumaraswamy": (1.5, 2.5), "GeneralizedPareto": (0.0, 1.0, 0.3), "ContinuousBernoulli": (0.3,),
}


def double(*values, **settings):
    return [genesis.tensor(v, dtype=genesis.float64, **settings) for v in values]


@pytest.mark.parametrize("name", BY_QUANTILES)
def test_samples_move_with_the_parameters(name):
    """Beside differences of the samples that the same numbers make of other parameters."""
    values = BY_QUANTILES[name]

    def samples(parameters):
        genesis.manual_seed(1)
        return getattr(d, name)(*parameters).rsample((5,)).sum()

    parameters = double(*values, requires_grad=True)
    gradients = genesis.autograd.grad(samples(parameters), parameters)
    for place, gradient in enumerate(gradients):
        up, down = [samples(double(*[v + step * (i == place) for i, v in enumerate(values)])).item() for step in (1e-6, -1e-6)]
        assert gradient.item() == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(("name", "values", "of", "wanted"), [
    ("Gamma", (2.0, 3.0), lambda x: x, (1 / 3, -2 / 9)), ("Beta", (2.0, 3.0), lambda x: x, (3 / 25, -2 / 25)),
    ("Chi2", (5.0,), lambda x: x, (1.0,)), ("InverseGamma", (5.0, 8.0), lambda x: x, (-0.5, 0.25)),
    ("StudentT", (9.0, 1.0, 2.0), lambda x: x * x, (-8 / 49, 2.0, 36 / 7)),
    ("FisherSnedecor", (5.0, 12.0), lambda x: x, (0.0, -0.02)),
    ("VonMises", (0.3, 2.0), lambda x: x.cos(), (-0.697774658 * 0.295520207, 0.955336489 * 0.164223)),
])
def test_mean_gradients_of_samples_are_gradients_of_means(name, values, of, wanted):
    genesis.manual_seed(0)
    parameters = double(*values, requires_grad=True)
    gradients = genesis.autograd.grad(of(getattr(d, name)(*parameters).rsample((20000,))).mean(), parameters)
    for gradient, value in zip(gradients, wanted, strict=True):
        assert gradient.item() == pytest.approx(value, rel=0.06, abs=0.02)


def test_shares_move_with_all_concentrations():
    genesis.manual_seed(0)
    (a,) = double([1.0, 2.0, 3.0], requires_grad=True)
    x = d.Dirichlet(a).rsample((20000,))
    found = [genesis.autograd.grad(x[:, i].mean(), a, retain_graph=True)[0].tolist() for i in range(3)]
    np.testing.assert_allclose(found, (np.eye(3) * 6 - np.array([[1], [2], [3]])) / 36, atol=4e-3)


def slope(name, *parameters):
    """What a draw gives, and how it moves with each parameter."""
    primitive = {"gamma": "standard_gamma", "beta": "standard_beta", "von_mises": "von_mises"}[name]
    given = [p.requires_grad_() for p in parameters]
    drawn = call(OPERATIONS[primitive], (*given, 0, 0))
    gradients = genesis.autograd.grad(drawn.sum(), given)
    return drawn, gradients


@pytest.mark.parametrize("a", [1e-2, 0.05, 0.7, 1.0, 3.0, 40.0, 1e3])
def test_gamma_numbers_move_as_the_quantile_does(a):
    """Beside derivatives of the incomplete gamma function, of 30 digits."""
    drawn, (gradient,) = slope("gamma", *double([a] * 3))
    with mpmath.workdps(30):
        for x, found in zip(drawn.tolist(), gradient.tolist(), strict=True):
            density = mpmath.mpf(x) ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)
            by_a = mpmath.diff(lambda b, x=x: mpmath.gammainc(b, 0, x, regularized=True), a, h=mpmath.mpf(10) ** -9)
            assert found == pytest.approx(float(-by_a / density), rel=1e-10)


@pytest.mark.parametrize(("a", "b"), [(0.05, 0.3), (0.7, 30.0), (3.0, 2.0), (200.0, 1.0)])
def test_beta_numbers_move_as_the_quantile_does(a, b):
    drawn, gradients = slope("beta", *double([a] * 2, [b] * 2))
    with mpmath.workdps(30):
        for i, x in enumerate(drawn.tolist()):
            density = mpmath.mpf(x) ** (a - 1) * (1 - mpmath.mpf(x)) ** (b - 1) / mpmath.beta(a, b)
            for place in range(2):
                def below(p, place=place, x=x):
                    return mpmath.betainc(*((p, b) if place == 0 else (a, p)), 0, x, regularized=True)

                by = mpmath.diff(below, (a, b)[place], h=mpmath.mpf(10) ** -9)
                assert gradients[place].tolist()[i] == pytest.approx(float(-by / density), rel=1e-9)


def test_gradients_of_incomplete_gamma_functions_are_differences_to_the_second_order():
    a, x = double([0.5, 2.0, 30.0], [0.3, 2.5, 33.0], requires_grad=True)
    for function in (genesis.igamma, genesis.igammac):
        assert genesis.autograd.gradcheck(function, (a, x))
        assert genesis.autograd.gradgradcheck(function, (a, x))


def test_slopes_of_quantiles_have_derivatives_of_any_order():
    """What the rules derive of the integrals, beside differences."""
    a, b, x, k, angle = double([0.5, 3.0], [2.0, 0.8], [0.3, 0.6], [0.7, 4.0], [-0.4, 2.0], requires_grad=True)

    def integral(name, *powers):
        keys = dict(zip("nm", powers, strict=False))

        def of(*values):
            def define(*given):
                return given[-1].graph.add(name, given, given[-1].shape, given[-1].dtype, keys)

            return call(Operation("integral", define, frozenset(), public=False), values)

        return of

    for function, values in ((integral("gamma_tail", 1), (a, x)), (integral("beta_tail", 1, 0), (a, b, x)),
                             (integral("beta_tail", 0, 1), (a, b, x)), (integral("von_mises_tail", 1), (k, angle))):
        assert genesis.autograd.gradcheck(function, values)
        assert genesis.autograd.gradgradcheck(function, values)


def test_a_draw_is_the_same_each_time_and_another_the_next():
    gamma = d.Gamma(genesis.full((50,), 0.5), 1.0)
    genesis.manual_seed(5)
    first, second = gamma.sample(), gamma.sample()
    genesis.manual_seed(5)
    np.testing.assert_array_equal(to_numpy(first), to_numpy(gamma.sample()))
    assert not np.array_equal(to_numpy(first), to_numpy(second))


def test_small_concentrations_do_not_leave_the_support():
    for dtype in (genesis.float32, genesis.float64):
        a = genesis.full((500, 3), 1e-3, dtype=dtype)
        x = d.Dirichlet(a).sample()
        assert bool(d.constraints.simplex.check(x).all())
        assert bool((d.Gamma(a, 1.0).sample() > 0).all())
        b = d.Beta(a, a).sample()
        assert bool(((b > 0) & (b < 1)).all())


def test_compiled_functions_replay_distributions_made_within_and_outside():
    shift = genesis.zeros(3, requires_grad=True)
    shifted = d.TransformedDistribution(d.Normal(genesis.zeros(3), 1.0), [d.AffineTransform(genesis.ones(3), 2.0)])
    prior = d.Independent(shifted, 1)

    def loss(x):
        posterior = d.Normal(x + shift, x.abs() + 0.5)
        z = posterior.rsample((4,))
        return (posterior.log_prob(z).sum(-1) - prior.log_prob(z)).mean() + d.kl_divergence(posterior, d.Normal(0.0, 1.0)).sum()

    compiled, x = genesis.compile(loss), genesis.tensor([0.5, -1.0, 2.0])
    for _ in range(4):
        genesis.manual_seed(1)
        wanted = loss(x).item()
        genesis.manual_seed(1)
        assert compiled(x).item() == pytest.approx(wanted, rel=1e-6)
    assert len(compiled.entries) == 1
    prior.base_dist.transforms[0].loc = genesis.ones(3) * 5  # attributes of what is outside are compared
    genesis.manual_seed(1)
    wanted = loss(x).item()
    genesis.manual_seed(1)
    assert compiled(x).item() == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(("make", "value"), [
    (lambda a: d.Gamma(a, 2.0), 0.7), (lambda a: d.Categorical(logits=a * genesis.arange(4)), 1),
    (lambda a: d.StudentT(a), 0.7),
    (lambda a: d.MultivariateNormal(genesis.zeros(2), a * genesis.eye(2)), [0.5, 1.0]), (lambda a: d.Poisson(a), 3.0),
    (lambda a: d.Wishart(a, covariance_matrix=genesis.eye(2)), [[2.0, 0.5], [0.5, 1.0]]), (lambda a: d.Weibull(a, 1.5), 0.7),
    (lambda a: d.MixtureSameFamily(d.Categorical(genesis.ones(3)), d.Normal(genesis.arange(3) * a, 1.0)), 0.7),
])
def test_compiled_densities_are_those_of_plain_calls(make, value):
    a, x = genesis.tensor(2.5, requires_grad=True), genesis.tensor(value)

    def drawn_and_weighed(x):
        distribution = make(a)
        return distribution.log_prob(x), distribution.sample((2,))

    compiled = genesis.compile(drawn_and_weighed)
    for _ in range(3):
        genesis.manual_seed(2)
        wanted = [to_numpy(y) for y in drawn_and_weighed(x)]
        genesis.manual_seed(2)
        for y, z in zip(compiled(x), wanted, strict=True):
            np.testing.assert_allclose(to_numpy(y), z, rtol=1e-6)
    assert len(compiled.entries) == 1


def test_a_density_is_one_kernel():
    loc, x = genesis.randn(3), genesis.randn(100, 3)
    for distribution in (d.Normal(loc, 2.0), d.Laplace(loc, 2.0), d.Gumbel(loc, 2.0), d.Cauchy(loc, 2.0)):
        distribution.log_prob(x).sum().item()
        distribution._validate_args = False
        genesis.debug.reset_stats()
        total = distribution.log_prob(x)
        assert genesis.debug.stats()["flushes"] == 0
        total.numpy()
        assert genesis.debug.stats()["native_calls"] == 1


def test_vmap_and_jacobians_pass_through_densities():
    x = genesis.randn(5)
    mapped = genesis.vmap(lambda v: d.Normal(v, 1.0, validate_args=False).log_prob(v * 2))(x)
    np.testing.assert_allclose(to_numpy(mapped), to_numpy(d.Normal(x, 1.0).log_prob(x * 2)), rtol=1e-6)
    gradient = genesis.func.grad(lambda v: d.Gamma(2.0, 1.0).log_prob(v).sum())(x.abs() + 0.1)
    np.testing.assert_allclose(to_numpy(gradient), to_numpy(1 / (x.abs() + 0.1) - 1), rtol=1e-5)


@pytest.mark.parametrize("make", [
    lambda a: d.Gamma(a, 2.0), lambda a: d.Beta(a, 2.0), lambda a: d.StudentT(a), lambda a: d.Poisson(a),
    lambda a: d.FisherSnedecor(a, 3.0), lambda a: d.NegativeBinomial(a, logits=genesis.zeros(())),
], ids=["Gamma", "Beta", "StudentT", "Poisson", "FisherSnedecor", "NegativeBinomial"])
def test_a_density_with_gamma_functions_is_one_program_with_its_gradient(make):
    """The host computes nothing on the way."""
    a, x = genesis.tensor(2.5, requires_grad=True), genesis.rand(100) * 0.9 + 0.05
    d.Distribution.set_default_validate_args(False)
    try:
        for _ in range(2):
            a.grad = None
            genesis.debug.reset_stats()
            make(a).log_prob(x).sum().backward()
            assert np.isfinite(a.grad.item())
    finally:
        d.Distribution.set_default_validate_args(True)
    assert genesis.debug.stats()["native_calls"] == 1
