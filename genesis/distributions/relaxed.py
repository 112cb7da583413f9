"""Continuous relaxations of choices (C. Maddison, A. Mnih, Y. Teh, "The concrete distribution", 2017)."""

from __future__ import annotations

from typing import Any

from genesis.distributions import constraints
from genesis.distributions.bernoulli import softplus
from genesis.distributions.categorical import Categorical, OfCategories
from genesis.distributions.declaration import Alternative, parameter
from genesis.distributions.distribution import ProbsOrLogits
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import ExpTransform, SigmoidTransform
from genesis.distributions.utils import Operand, as_tensors, clamp_probs, uniform_inside
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The log odds of a relaxed Bernoulli number: logistic noise about `logits`, over the temperature."""

    probs: Alternative = parameter(constraints.unit_interval, default=None)
    logits: Alternative = parameter(constraints.real, default=None)
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Operand | None = None, logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._declare(validate_args, probs=probs, logits=logits)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        like = self._param
        u = clamp_probs(uniform_inside(self._extended_shape(sample_shape), like.dtype, like.device))
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        (temperature,) = as_tensors(self.temperature)
        z = self.logits - self._checked(value) * temperature
        return temperature.log() + z - 2 * softplus(z)


class _WithTemperature:
    """The base of transforms of `base_dist`, which has the temperature."""

    base_dist: Any

    @property
    def temperature(self) -> Operand:
        """The temperature."""
        return self.base_dist.temperature  # type: ignore[no-any-return]


class RelaxedBernoulli(_WithTemperature, TransformedDistribution):
    """Numbers in (0, 1), nearer to 0 and 1 the lower the temperature."""

    probs: Alternative = parameter(constraints.unit_interval, of="base_dist")
    logits: Alternative = parameter(constraints.real, of="base_dist")
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Operand | None = None, logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)


class ExpRelaxedCategorical(OfCategories):
    """The logarithms of a relaxed choice: Gumbel noise about `logits`, over the temperature, normalized."""

    support = constraints.real_vector  # of vectors on the surface where exp(x) has the sum 1
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._declare_categories(Categorical(probs, logits), validate_args)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        logits = self.logits
        u = clamp_probs(uniform_inside(self._extended_shape(sample_shape), logits.dtype, logits.device))
        scores = (logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        n, (temperature,) = self._event_shape[0], as_tensors(self.temperature)
        score = self.logits - self._checked(value) * temperature
        score = (score - score.logsumexp(-1, True)).sum(-1)
        return score + (score.new_full((), float(n)).lgamma() + temperature.log() * (n - 1))


class RelaxedOneHotCategorical(_WithTemperature, TransformedDistribution):
    """Points of the simplex, nearer to its corners the lower the temperature."""

    probs: Alternative = parameter(constraints.simplex, of="base_dist")
    logits: Alternative = parameter(constraints.real_vector, of="base_dist")
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
