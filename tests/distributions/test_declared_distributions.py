"""Distributions as declarations, and classes of users that build on them."""

import inspect

import pytest

import genesis
import genesis.distributions as d
from genesis.distributions import constraints
from genesis.distributions.declaration import Alternative, Parameter, formula, parameter
from genesis.distributions.distribution import Distribution
from genesis.distributions.utils import lazy_property


class Triangular(Distribution):
    """A declared class of one's own."""

    low: Parameter = parameter(constraints.real)
    width: Parameter = parameter(constraints.positive, default=1.0)
    support = constraints.real
    mean = mode = formula(lambda d: d.low + d.width / 2)


class Directions(Distribution):
    axis: Alternative = parameter(constraints.real_vector, default=None)
    angle: Alternative = parameter(constraints.real, default=None)
    weight: Parameter = parameter(constraints.positive, default=1.0)
    support = constraints.real_vector


def test_parameters_make_the_signature_the_constraints_and_the_shapes():
    assert list(inspect.signature(Triangular).parameters) == ["low", "width", "validate_args"]
    assert Triangular.arg_constraints == {"low": constraints.real, "width": constraints.positive}
    made = Triangular(genesis.zeros(3))
    assert made.width.shape == made.batch_shape == (3,)
    assert made.mean.tolist() == [0.5] * 3
    assert made.expand((2, 3)).mode.shape == (2, 3)
    with pytest.raises(ValueError, match="Triangular: parameter width"):
        Triangular(0.0, -1.0)
    with pytest.raises(AttributeError):
        made.mean = 0.0
    with pytest.raises(TypeError, match="low"):
        Triangular()


def test_an_event_has_the_axes_of_the_support_and_one_alternative_is_given():
    made = Directions(genesis.ones(2, 3), weight=genesis.ones(4, 1))
    assert (tuple(made.batch_shape), tuple(made.event_shape), tuple(made.weight.shape)) == ((4, 2), (3,), (4, 2))
    assert made.expand((5, 4, 2)).axis.shape == (5, 4, 2, 3)
    for given in ((), (genesis.ones(3), 0.5)):
        with pytest.raises(ValueError, match="Directions: either axis or angle must be given, and not both"):
            Directions(*given)


def test_of_three_alternatives_one_is_given():
    eye = genesis.eye(2)
    with pytest.raises(ValueError, match=r"either covariance_matrix, .* or scale_tril must be given, and not several"):
        d.MultivariateNormal(genesis.zeros(2), eye, scale_tril=eye)
    with pytest.raises(ValueError, match=r"Wishart: a matrix covariance_matrix.* must be given, got none"):
        d.Wishart(3.0)
    with pytest.raises(ValueError, match=r"got one of shape \(2,\)"):
        d.MultivariateNormal(genesis.zeros(2), genesis.ones(2))


def test_what_a_subclass_has_computed_of_its_parameters_is_computed_anew_when_it_is_expanded():
    class Sharp(d.Normal):
        @lazy_property
        def precision(self):
            return self.scale.pow(-2)

    sharp = Sharp(0.0, genesis.ones(3))
    assert sharp.precision is sharp.precision
    assert sharp.expand((2, 3)).precision.shape == (2, 3)
    scale = genesis.ones(3, requires_grad=True)
    sharp = Sharp(0.0, scale)
    with genesis.no_grad():
        assert sharp.precision.requires_grad
    sharp.precision.sum().backward()
    assert scale.grad.tolist() == [-2, -2, -2]


def test_classes_that_bring_their_own_base_read_its_parameters():
    class Own(d.LogNormal):
        def __init__(self, loc, scale):
            d.TransformedDistribution.__init__(self, d.Normal(loc, scale), d.ExpTransform())

    own = Own(genesis.zeros(3), 2.0)
    assert own.scale.tolist() == [2.0] * 3
    assert type(own.expand((2, 3))) is Own
    assert own.expand((2, 3)).mean.shape == (2, 3)


@pytest.mark.parametrize("make", [
    lambda: d.Pareto(genesis.ones(3), 2.0), lambda: d.Gumbel(0.0, genesis.ones(3)), lambda: d.Chi2(genesis.ones(3)),
    lambda: d.Kumaraswamy(genesis.ones(3), 2.0), lambda: d.HalfCauchy(genesis.ones(3)),
    lambda: d.RelaxedBernoulli(0.5, genesis.full((3,), 0.3)), lambda: d.MultivariateNormal(genesis.zeros(3, 2), genesis.eye(2)),
])
def test_a_given_instance_becomes_the_expanded_distribution(make):
    plain = make()

    class Mine(type(plain)):
        def __init__(self):
            raise AssertionError("an instance is given")

    empty = Mine.__new__(Mine)
    found = plain.expand((2, 3), _instance=empty)
    assert found is empty
    genesis.manual_seed(0)
    x = plain.sample((2,))
    assert found.log_prob(x).tolist() == plain.log_prob(x).tolist()
    with pytest.raises(ValueError, match="values must lie within the support"):
        found.log_prob(x * float("nan"))


def test_constraints_that_are_not_known_are_not_checked_and_errors_on_the_way_to_them_are_shown():
    class Unknown(Distribution):
        @property
        def arg_constraints(self):
            raise NotImplementedError

    class Mistaken(Distribution):
        @property
        def arg_constraints(self):
            return self.missing

    assert Unknown((2,)).batch_shape == (2,)
    assert Distribution((2,)).arg_constraints == {}
    with pytest.raises(AttributeError, match="missing"):
        Mistaken((2,))


def test_formulas_have_the_docstrings_of_what_they_define():
    assert inspect.getdoc(d.Normal.mean) == "The mean." and inspect.getdoc(d.Normal.mode) == "The most probable value."
    assert inspect.getdoc(d.HalfCauchy.variance) == "The variance." == inspect.getdoc(d.Normal.variance)
    assert inspect.getdoc(d.Normal.cdf) == inspect.getdoc(d.Distribution.cdf) and d.Normal.cdf.__qualname__ == "Normal.cdf"

    class Own(d.Distribution):
        support = d.constraints.dependent_property(is_discrete=True, event_dim=0)  # without a function

        @d.constraints.dependent_property(is_discrete=False, event_dim=0)
        def region(self):
            return d.constraints.real

        renamed = region

    assert Own.renamed is Own.region and Own.region.event_dim == 0 and Own.support.is_discrete


def test_a_support_may_be_that_of_another_distribution():
    class Bounded(d.Normal):
        support = d.Uniform.support
        low, high = -3.0, 3.0

    assert Bounded.support.event_dim == 0 and repr(Bounded(0.0, 1.0).support) == repr(d.constraints.interval(-3.0, 3.0))
    with pytest.raises(ValueError, match="support"):
        Bounded(0.0, 1.0).log_prob(genesis.tensor(4.0))
