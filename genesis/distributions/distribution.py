"""The base of all distributions: shapes, parameters, checks, and methods derived from `log_prob`, `rsample` and `support`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from genesis.autograd.gradients import grad
from genesis.distributions.declaration import Declared
from genesis.distributions.utils import (
    Operand, derived, joint_shape, lazy_property, logits_to_probs, probs_to_logits, sum_rightmost, uniform_inside,
)
from genesis.ir.annotations import Extents
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size
from genesis.tracing.recording_hooks import reads_forbidden
from genesis.tracing.state import grad_mode


class Distribution(Declared):
    """A distribution of events of `event_shape`, one for each element of `batch_shape`.

    A subclass declares `arg_constraints`, by the names of its parameters, `support` and `has_rsample`, and defines what it
    knows: `log_prob`, `rsample` or `icdf`, `mean`, and so on. The others raise NotImplementedError.

    Parameters and values are checked, which computes them, unless `validate_args` is False; not while `genesis.compile`
    records a call or a transform traces it.
    """

    has_rsample: ClassVar[Any] = False
    has_enumerate_support: ClassVar[Any] = False

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._begin(batch_shape, event_shape, validate_args)
        self._check_parameters({})

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their parameters and values by default."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: wants True or False, got {value!r}")
        Distribution._validate_args = value

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a batch shape, as views.

        >>> genesis.distributions.Normal(0.0, genesis.ones(3)).expand((2, 3)).batch_shape
        genesis.Size([2, 3])
        """
        new = self._get_checked_instance(type(self), _instance)
        for name, value in self._expanded(tuple(batch_shape)).items():
            setattr(new, name, value)
        new._begin(batch_shape, self._event_shape, self._validate_args)
        return new

    def _expanded(self, batch_shape: tuple[int, ...]) -> dict[str, object]:
        """The attributes of a distribution that is expanded."""
        parameters = {name: getattr(self, name) for name in (*self._declared, *self.arg_constraints) if name in vars(self)}
        others = {name: value for name, value in vars(self).items()
                  if not isinstance(getattr(type(self), name, None), lazy_property)}
        return {**others, **self._spread(parameters, batch_shape)}

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty instance; a subclass with an `__init__` of its own must expand itself."""
        if _instance is None and type(self).__init__ is not getattr(cls, "__init__"):  # noqa: B009
            raise NotImplementedError(f"{type(self).__name__}: has its own __init__, and must have its own expand")
        return type(self).__new__(type(self)) if _instance is None else _instance

    # ---- shapes ----
    @property
    def batch_shape(self) -> Size:
        """The shape of the distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Extents = ()) -> Size:
        return Size((*_extents(sample_shape), *self._batch_shape, *self._event_shape))

    # ---- numbers ----
    def sample(self, sample_shape: Extents = ()) -> Tensor:
        """Samples of shape sample_shape + batch_shape + event_shape, without a gradient.

        >>> genesis.distributions.Normal(0.0, 1.0).sample((2, 3)).shape
        (2, 3)
        """
        with grad_mode(False):
            return self._drawn(sample_shape)

    def _drawn(self, sample_shape: Extents) -> Tensor:
        """What `sample` returns, which calls it without recording derivations."""
        return self.rsample(sample_shape)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Samples that are functions of the parameters, which get gradients; here the quantiles of uniform numbers."""
        if type(self).icdf is Distribution.icdf:
            raise NotImplementedError(f"{type(self).__name__}: has no rsample")
        shape, like = self._extended_shape(sample_shape), self._like()
        return self.icdf(uniform_inside(shape, like.dtype, like.device))

    def _like(self) -> Tensor:
        """A parameter with the dtype and device of samples."""
        return next(value for value in vars(self).values() if isinstance(value, Tensor))

    def sample_n(self, n: int) -> Tensor:
        """`n` samples along a new first axis."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of each event."""
        raise NotImplementedError(f"{type(self).__name__}: has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of numbers up to `value`."""
        raise NotImplementedError(f"{type(self).__name__}: has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`: quantiles."""
        raise NotImplementedError(f"{type(self).__name__}: has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along a new first axis; without `expand`, the batch axes are 1."""
        raise NotImplementedError(f"{type(self).__name__}: has no enumerate_support")

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    def entropy(self) -> Tensor:
        """The entropy of each distribution of the batch, in nats."""
        raise NotImplementedError(f"{type(self).__name__}: has no entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__}: has no mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__}: has no mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__}: has no variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    # ---- checks ----
    def _validate_sample(self, value: Tensor) -> None:
        """Raise unless `value` fits the shapes and is in the support."""
        if not isinstance(value, Tensor):
            raise ValueError(f"{type(self).__name__}: the value must be a tensor, got {type(value).__name__}")
        event = len(self._event_shape)
        if event and tuple(value.shape[value.ndim - event :]) != tuple(self._event_shape):
            raise ValueError(
                f"{type(self).__name__}: the value has shape {tuple(value.shape)}; want {tuple(self._event_shape)} on the right"
            )
        joint_shape(value.shape, self._batch_shape + self._event_shape)
        try:
            support = self.support
        except NotImplementedError:  # a property that does not know
            return
        if not reads_forbidden() and not bool(support.check(value).all()):
            raise ValueError(f"{type(self).__name__}: values must lie within the support {support!r}, got\n{value}")

    def _checked(self, value: Operand) -> Tensor:
        """`value`, checked unless checks are off."""
        if self._validate_args:
            self._validate_sample(value)  # type: ignore[arg-type]
        return value  # type: ignore[return-value]

    def __repr__(self) -> str:
        named = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        shown = [f"{name}: {x.item() if x.numel() == 1 else x.shape}" if isinstance(x, Tensor) else f"{name}: {x}"
                 for name, x in named.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


class ProbsOrLogits(Distribution):
    """Distributions that are given by probabilities or by logits, which are log odds where `_is_binary`."""

    _is_binary: ClassVar[bool] = True

    @derived
    def logits(self) -> Tensor:
        """Log odds, or logarithms of probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @derived
    def probs(self) -> Tensor:
        """Probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self) -> Tensor:
        return vars(self)["probs"] if "probs" in vars(self) else vars(self)["logits"]

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` or `logits`."""
        return Size(self._param.shape)

    def _like(self) -> Tensor: return self._param


def _extents(sample_shape: Extents) -> tuple[int, ...]:
    return (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)


class ExponentialFamily(Distribution):
    """Distributions that know their natural parameters theta and the log normalizer F, whose gradient is the mean of T."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__}: has no natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: has no log normalizer")

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        """The mean of k(x)."""
        raise NotImplementedError(f"{type(self).__name__}: has no mean of the carrier measure")

    def _bregman(self) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """F, the natural parameters and the gradient of F by them, which is itself differentiable."""
        with grad_mode(True):
            natural = [p if p.requires_grad else p.detach().requires_grad_() for p in self._natural_params]
            level = self._log_normalizer(*natural)
            means = grad(level.sum(), natural, create_graph=True)
        return level, natural, [*means]

    def entropy(self) -> Tensor:
        """F(theta) - <theta, grad F(theta)> - E k(x) (F. Nielsen and R. Nock, 2010)."""
        level, natural, means = self._bregman()
        result = level - self._mean_carrier_measure
        for theta, mean in zip(natural, means, strict=True):
            result = result - sum_rightmost(theta * mean, theta.ndim - level.ndim)
        return result


NOT_REPLAYABLE = ("set_default_validate_args",)
