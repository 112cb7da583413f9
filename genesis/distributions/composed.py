"""Distributions made of others: of larger events, of transformed samples, and relaxed choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from genesis.distributions import constraints
from genesis.distributions.categorical import Categorical, OfCategories
from genesis.distributions.declaration import Alternative, parameter
from genesis.distributions.distribution import Distribution, ProbsOrLogits
from genesis.distributions.transforms import ComposeTransform, ExpTransform, SigmoidTransform, Transform
from genesis.distributions.utils import Operand, as_tensors, clamp_probs, formula, sum_rightmost, uniform_inside
from genesis.functions.methods.table import functions_of
from genesis.functions.selection import where
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor

(softplus,) = functions_of("softplus")


class Independent(Distribution):
    """A distribution whose last `reinterpreted_batch_ndims` batch axes are axes of the event.

    >>> d = genesis.distributions
    >>> d.Independent(d.Normal(genesis.zeros(2, 3), 1.0), 1).log_prob(genesis.zeros(2, 3))
    tensor([-2.7568, -2.7568])
    """

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        batch, count = base_distribution.batch_shape, reinterpreted_batch_ndims
        if count > len(batch):
            raise ValueError(f"Independent: {count} batch axes of a distribution of batch shape {tuple(batch)}; it has fewer")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, count
        cut = len(batch) - count
        super().__init__(batch[:cut], (*batch[cut:], *base_distribution.event_shape), validate_args)

    def _expanded(self, batch_shape: tuple[int, ...]) -> dict[str, object]:
        count = self.reinterpreted_batch_ndims
        base = self.base_dist.expand((*batch_shape, *self._event_shape[:count]))
        return {"base_dist": base, "reinterpreted_batch_ndims": count}

    has_rsample = formula(lambda d: d.base_dist.has_rsample)
    has_enumerate_support = formula(lambda d: not d.reinterpreted_batch_ndims and d.base_dist.has_enumerate_support)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        base, count = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(base, count) if count else base  # type: ignore[no-any-return]

    mean = formula(lambda d: d.base_dist.mean)
    mode = formula(lambda d: d.base_dist.mode)
    variance = formula(lambda d: d.base_dist.variance)
    def sample(self, sample_shape: Extents = ()) -> Tensor: return self.base_dist.sample(sample_shape)
    def rsample(self, sample_shape: Extents = ()) -> Tensor: return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: the support of a product of distributions is not enumerated")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str: return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of transforms of samples of `base_distribution`, the first transform first.

    >>> d = genesis.distributions
    >>> d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()]).log_prob(genesis.tensor(1.0))
    tensor(-0.9189)
    """

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | Sequence[Transform], validate_args: bool | None = None
    ) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for transform in self.transforms:
            if not isinstance(transform, Transform):
                raise ValueError(f"TransformedDistribution: wants transforms, got {type(transform).__name__}")
        base, whole = base_distribution, ComposeTransform(self.transforms)
        shape = tuple(base.batch_shape + base.event_shape)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(f"TransformedDistribution: {whole!r} wants {whole.domain.event_dim} axes or more, got {shape}")
        spread = tuple(whole.inverse_shape(whole.forward_shape(shape)))
        if spread != shape:
            base = base.expand(spread[: len(spread) - len(base.event_shape)])
        more = whole.domain.event_dim - len(base.event_shape)
        self.base_dist: Any = Independent(base, more) if more > 0 else base
        result = tuple(whole.forward_shape(spread))
        axes = whole.codomain.event_dim + max(len(base.event_shape) - whole.domain.event_dim, 0)
        super().__init__(result[: len(result) - axes], result[len(result) - axes :], validate_args)

    def _expanded(self, batch_shape: tuple[int, ...]) -> dict[str, object]:
        shape = tuple(self._whole.inverse_shape((*batch_shape, *self._event_shape)))
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        return {"base_dist": base, "transforms": self.transforms}

    has_rsample = formula(lambda d: d.base_dist.has_rsample)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support  # type: ignore[no-any-return]
        last = self.transforms[-1].codomain
        more = len(self._event_shape) - last.event_dim
        return constraints.independent(last, more) if more > 0 else last  # type: ignore[no-any-return]

    _whole = formula(lambda d: ComposeTransform(d.transforms))
    def _drawn(self, sample_shape: Extents) -> Tensor: return self._whole(self.base_dist.sample(sample_shape))
    def rsample(self, sample_shape: Extents = ()) -> Tensor: return self._whole(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The density at the inverse, less the logarithms of the Jacobians' determinants."""
        y, axes, total = self._checked(value), len(self._event_shape), None
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            axes += transform.domain.event_dim - transform.codomain.event_dim
            term = sum_rightmost(transform.log_abs_det_jacobian(x, y), axes - transform.domain.event_dim)
            total = term if total is None else total + term
            y = x
        density = sum_rightmost(self.base_dist.log_prob(y), axes - len(self.base_dist.event_shape))
        return density if total is None else density - total  # type: ignore[no-any-return]

    def _mirrored(self, probability: Tensor) -> Tensor:
        """1 - probability if the transforms are decreasing."""
        sign = self._whole.sign
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return where(sign > 0, probability, 1 - probability)

    def cdf(self, value: Tensor) -> Tensor:
        y = self._whole.inv(self._checked(value))
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(y)
        return self._mirrored(self.base_dist.cdf(y))

    def icdf(self, value: Tensor) -> Tensor: return self._whole(self.base_dist.icdf(self._mirrored(value)))


class Composed(TransformedDistribution):
    """Distributions whose base or transforms depend on their declared parameters."""

    _expanded = Distribution._expanded

    def _parts(self) -> tuple[Distribution, list[Transform]]:
        """The base and the transforms."""
        raise NotImplementedError

    def _declare(self, validate_args: bool | None, **parameters: Operand | None) -> None:
        self._set(parameters)
        super().__init__(*self._parts(), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new.base_dist, new.transforms = new._parts()
        return new


# ---- continuous relaxations of choices (C. Maddison, A. Mnih, Y. Teh, "The concrete distribution", 2017) ----
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


class _Relaxed(TransformedDistribution):
    """Relaxed choices: transforms `by` of a distribution of `scores`."""

    scores: ClassVar[Any]
    by: ClassVar[type[Transform]]
    temperature = formula(lambda d: d.base_dist.temperature)
    has_rsample = True

    def __init__(
        self, temperature: Operand, probs: Operand | None = None, logits: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(self.scores(temperature, probs, logits, validate_args), self.by(), validate_args)


class RelaxedBernoulli(_Relaxed):
    """Numbers in (0, 1), nearer to 0 and 1 the lower the temperature."""

    probs: Alternative = parameter(constraints.unit_interval, of="base_dist")
    logits: Alternative = parameter(constraints.real, of="base_dist")
    support = constraints.unit_interval
    scores, by = LogitRelaxedBernoulli, SigmoidTransform


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


class RelaxedOneHotCategorical(_Relaxed):
    """Points of the simplex, nearer to its corners the lower the temperature."""

    probs: Alternative = parameter(constraints.simplex, of="base_dist")
    logits: Alternative = parameter(constraints.real_vector, of="base_dist")
    support = constraints.simplex
    scores, by = ExpRelaxedCategorical, ExpTransform
