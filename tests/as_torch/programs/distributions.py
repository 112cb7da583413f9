"""What libraries import of torch.distributions, and numbers that follow from no random ones."""

import torch
from torch.distributions import (
    Beta,
    Categorical,
    Gamma,
    Independent,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    TransformedDistribution,
    biject_to,
    constraints,
    kl_divergence,
    register_kl,
    transforms,
)
from torch.distributions.constraint_registry import ConstraintRegistry
from torch.distributions.kl import _KL_REGISTRY
from torch.distributions.normal import Normal as Same
from torch.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
from torch.distributions.transforms import Transform, _InverseTransform
from torch.distributions.utils import _standard_normal, _sum_rightmost, broadcast_all, lazy_property, probs_to_logits


class Shifted(Normal):
    """A subclass, as libraries write it."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}  # noqa: RUF012

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        torch.distributions.Distribution.__init__(self, self.loc.size(), validate_args=validate_args)

    @lazy_property
    def precision(self):
        return self.scale.pow(-2)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._get_checked_instance(Shifted, _instance))


@register_kl(Shifted, Gamma)
def _shifted_gamma(p, q):
    return p.precision * 0 + 7.0


class Double(Transform):
    domain = codomain = constraints.real
    bijective = True
    sign = 1

    def _call(self, x):
        return x * 2

    def _inverse(self, y):
        return y / 2

    def log_abs_det_jacobian(self, x, y):
        return torch.full_like(x, 2.0).log()


print(Same is Normal, issubclass(LogitRelaxedBernoulli, torch.distributions.Distribution))
print(isinstance(biject_to, ConstraintRegistry))
shifted = Shifted(0.5, torch.tensor([1.0, 2.0])).expand((3, 2))
print(type(shifted).__name__, shifted.precision, shifted, (Normal, Normal) in _KL_REGISTRY)
print(kl_divergence(shifted, Gamma(1.0, 1.0)), _sum_rightmost(torch.ones(2, 3), 1))
doubled = TransformedDistribution(Normal(0.0, 1.0), [Double(), transforms.ExpTransform()])
print(doubled.log_prob(torch.tensor(1.5)), doubled.cdf(torch.tensor(1.5)), isinstance(Double().inv, _InverseTransform))
print(biject_to(constraints.interval(0.0, 2.0))(torch.tensor(0.3)), constraints.positive)
print(probs_to_logits(torch.tensor([0.25, 0.75])))
mixture = MixtureSameFamily(Categorical(torch.ones(2)), Independent(Normal(torch.arange(4.0).reshape(2, 2), 1.0), 1))
print(mixture.log_prob(torch.zeros(2)), mixture.batch_shape, mixture.event_shape)
weight = torch.tensor([1.5, 2.5], requires_grad=True)
normal = MultivariateNormal(weight, torch.eye(2))
loss = kl_divergence(Beta(weight, 2.0), Beta(1.0, 1.0)).sum() - normal.log_prob(torch.zeros(2))
loss.backward()
print(loss.item(), weight.grad, _standard_normal(torch.Size([2]), torch.float32, torch.device("cpu")).shape)
try:
    Normal(0.0, -1.0)
except ValueError:
    print("refused")
