"""Continuous relaxations of choices (C. Maddison, A. Mnih, Y. Teh, "The concrete distribution", 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.distributions import constraints
from genesis.distributions.bernoulli import softplus
from genesis.distributions.categorical import Categorical
from genesis.distributions.distribution import Distribution, ProbsOrLogits
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import ExpTransform, SigmoidTransform
from genesis.distributions.utils import Operand, as_tensors, clamp_probs, declared, uniform_inside
from genesis.ir.annotations import Extents
from genesis.ir.replayable import replayable_module
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(ProbsOrLogits):
    """The log odds of a relaxed Bernoulli number: logistic noise about `logits`, over the temperature."""

    arg_constraints = declared(probs=constraints.unit_interval, logits=constraints.real)
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Operand | None = None, logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._declare_odds(validate_args, probs, logits)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        like = self._param
        u = clamp_probs(uniform_inside(self._extended_shape(sample_shape), like.dtype, like.device))
        return (u.log() - (-u).log1p() + self.logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        (temperature,) = as_tensors(self.temperature)
        z = self.logits - self._checked(value) * temperature
        return temperature.log() + z - 2 * softplus(z)


class RelaxedBernoulli(TransformedDistribution):
    """Numbers in (0, 1), nearer to 0 and 1 the lower the temperature."""

    arg_constraints = declared(probs=constraints.unit_interval, logits=constraints.real)
    support = constraints.unit_interval
    has_rsample = True
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self, temperature: Operand, probs: Operand | None = None, logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args)

    @property
    def temperature(self) -> Operand:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.base_dist.probs


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a relaxed choice: Gumbel noise about `logits`, over the temperature, normalized."""

    arg_constraints = declared(probs=constraints.simplex, logits=constraints.real_vector)
    support = constraints.real_vector  # of vectors on the surface where exp(x) has the sum 1
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical, self.temperature = Categorical(probs, logits), temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        new.temperature, new._categorical = self.temperature, self._categorical.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` or `logits`."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """Logarithms of probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self._categorical.probs

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


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex, nearer to its corners the lower the temperature."""

    arg_constraints = declared(probs=constraints.simplex, logits=constraints.real_vector)
    support = constraints.simplex
    has_rsample = True
    base_dist: ExpRelaxedCategorical

    def __init__(
        self, temperature: Operand, probs: Tensor | None = None, logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def temperature(self) -> Operand:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """Logarithms of probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities."""
        return self.base_dist.probs


replayable_module(__name__)
