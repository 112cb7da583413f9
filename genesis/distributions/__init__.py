"""Probability distributions under PyTorch's names: densities, samples with gradients, transforms, divergences.

All are composed of Tensor's operations, so densities fuse and differentiate with the surrounding program. Numbers that are
drawn by rejection (gamma, beta, Dirichlet, von Mises, Poisson, binomial) come from the host; their gradients are those of
the quantile at a fixed probability, of any order.

>>> import genesis
>>> d = genesis.distributions
>>> d.Normal(0.0, 1.0).log_prob(genesis.tensor([0.0, 1.0]))
tensor([-0.9189, -1.4189])
>>> rate = genesis.tensor(2.0, requires_grad=True)
>>> d.Gamma(3.0, rate).rsample((1000,)).mean().backward()
>>> -1.0 < rate.grad.item() < -0.5
True
"""

from genesis.distributions import constraints, transforms, utils
from genesis.distributions.categorical import (
    Categorical, MixtureSameFamily, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough,
)
from genesis.distributions.composed import Independent, RelaxedBernoulli, RelaxedOneHotCategorical, TransformedDistribution
from genesis.distributions.constraint_registry import biject_to, transform_to
from genesis.distributions.counts import Bernoulli, Binomial, ContinuousBernoulli, Geometric, NegativeBinomial, Poisson
from genesis.distributions.distribution import Distribution, ExponentialFamily
from genesis.distributions.exponential import Exponential, GeneralizedPareto, Kumaraswamy, Pareto, Weibull
from genesis.distributions.gamma import Beta, Chi2, Dirichlet, FisherSnedecor, Gamma, InverseGamma
from genesis.distributions.kl import kl_divergence, register_kl
from genesis.distributions.location_scale import (
    Cauchy, Gumbel, HalfCauchy, HalfNormal, Laplace, LogisticNormal, LogNormal, Normal, StudentT, Uniform, VonMises,
)
from genesis.distributions.matrices import LKJCholesky, LowRankMultivariateNormal, MultivariateNormal, Wishart
from genesis.distributions.transforms import *  # noqa: F403

__all__ = [
    "Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution",
    "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy",
    "HalfNormal", "Independent", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal",
    "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "StudentT", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
    "biject_to", "constraints", "kl_divergence", "register_kl", "transform_to", "transforms", "utils",
    *transforms.__all__,
]
__dir__ = __all__.copy
