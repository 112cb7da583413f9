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

from genesis.ir.replayable import replayable_package
from genesis.distributions import constraints, kl_between, kl_within, transforms, utils
from genesis.distributions.bernoulli import Bernoulli, ContinuousBernoulli, Geometric
from genesis.distributions.beta import Beta, Dirichlet
from genesis.distributions.categorical import (
    Categorical, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough,
)
from genesis.distributions.cauchy import Cauchy, HalfCauchy, StudentT
from genesis.distributions.constraint_registry import biject_to, transform_to
from genesis.distributions.counts import Binomial, NegativeBinomial, Poisson
from genesis.distributions.distribution import Distribution
from genesis.distributions.exp_family import ExponentialFamily
from genesis.distributions.exponential import Exponential, GeneralizedPareto, Kumaraswamy, Pareto, Weibull
from genesis.distributions.gamma import Chi2, FisherSnedecor, Gamma, InverseGamma
from genesis.distributions.independent import Independent
from genesis.distributions.kl import kl_divergence, register_kl
from genesis.distributions.logistic_normal import LogisticNormal
from genesis.distributions.matrices import LKJCholesky, Wishart
from genesis.distributions.mixture_same_family import MixtureSameFamily
from genesis.distributions.multivariate_normal import LowRankMultivariateNormal, MultivariateNormal
from genesis.distributions.normal import HalfNormal, LogNormal, Normal
from genesis.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import *  # noqa: F403
from genesis.distributions.uniform import Gumbel, Laplace, Uniform
from genesis.distributions.von_mises import VonMises

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
_REGISTERED = kl_within, kl_between  # at their import

replayable_package(__name__)
