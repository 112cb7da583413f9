"""The base of all distributions: shapes, parameters, checks, and what follows from `log_prob`, `rsample` and `support`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, ClassVar, NoReturn

from genesis.distributions import constraints
from genesis.distributions.constraints import Constraint
from genesis.distributions.utils import (
    Number,
    Operand,
    as_tensors,
    declared,
    derived,
    joint_shape,
    logits_to_probs,
    probs_to_logits,
    uniform_inside,
)
from genesis.ir.annotations import Extents
from genesis.ir.replayable import Described, replayable_module
from genesis.tensor.handle import Tensor
from genesis.tensor.size import Size
from genesis.tracing.recording_hooks import is_recording
from genesis.tracing.state import recording, thread_state

__all__ = ["Distribution"]


class Distribution(Described):
    """A distribution of events of `event_shape`, one for each element of `batch_shape`.

    A subclass declares `arg_constraints`, by the names of its parameters, `support` and `has_rsample`, and defines what it
    knows: `log_prob`, `rsample` or `icdf`, `mean`, and so on. The others raise NotImplementedError.

    Parameters and values are checked, which computes them, unless `validate_args` is False; not while `genesis.compile`
    records a call or a transform traces it.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    arg_constraints: Any  # a mapping of names to constraints, or a property
    support: Constraint | Any = constraints.dependent
    _validate_args = __debug__
    _parameter_axes: ClassVar[Mapping[str, int]] = declared()  # of those parameters that are vectors or matrices

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._begin(batch_shape, event_shape, validate_args)
        self._check_parameters()

    def _begin(self, batch_shape: Sequence[int], event_shape: Sequence[int], validate_args: bool | None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their parameters and values where they are not told."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: wants True or False, got {value!r}")
        Distribution._validate_args = value

    # ---- parameters ----
    def _declare(self, validate_args: bool | None, event_dim: int = 0, **parameters: Operand) -> None:
        """Set the parameters, broadcast to one batch shape; `event_dim` of the last axes are an event's."""
        tensors = dict(zip(parameters, as_tensors(*parameters.values()), strict=True))
        batch = joint_shape(*[x.shape[: x.ndim - self._axes(name)] for name, x in tensors.items()])
        self._spread(tensors, batch, self)
        first = next(iter(tensors))
        event = getattr(self, first).shape[len(batch) :][:event_dim]
        self._begin(batch, event, validate_args)
        self._check_parameters({name: x for name, x in parameters.items() if not isinstance(x, Tensor)})

    def _axes(self, name: str) -> int:
        """How many axes of a parameter belong to one event."""
        return self._parameter_axes.get(name, 0)

    def _spread(self, tensors: Mapping[str, Tensor], batch_shape: Sequence[int], onto: Distribution) -> None:
        for name, x in tensors.items():
            shape = (*batch_shape, *x.shape[x.ndim - self._axes(name) :])
            setattr(onto, name, x if tuple(x.shape) == shape else x.expand(shape))

    def _check_parameters(self, numbers: Mapping[str, Number] | None = None) -> None:
        """Raise unless all parameters satisfy their constraints: tensors by one look at all, `numbers` as they are."""
        if not self._validate_args or unseen():
            return
        try:
            known = self.arg_constraints
        except (NotImplementedError, AttributeError):
            return
        answers: list[tuple[str, Constraint, Tensor]] = []
        for name, constraint in known.items():
            if constraints.is_dependent(constraint) or (
                name not in vars(self) and isinstance(getattr(type(self), name, None), derived)
            ):
                continue
            if numbers is not None and name in numbers and isinstance(constraint, constraints.OF_NUMBERS):
                if not bool(constraint.check(numbers[name])):  # type: ignore[arg-type]
                    self._complain(name, constraint)
            else:
                answers.append((name, constraint, constraint.check(getattr(self, name)).all()))
        if answers and not bool(reduce(and_, [answer for _, _, answer in answers])):
            self._complain(*next((name, constraint) for name, constraint, answer in answers if not bool(answer)))

    def _complain(self, name: str, constraint: Constraint) -> NoReturn:
        value = getattr(self, name)
        raise ValueError(
            f"{type(self).__name__}: parameter {name} of shape {tuple(value.shape)} must satisfy {constraint!r}, got\n{value}"
        )

    def _require(self, condition: Callable[[], Tensor], what: str) -> None:
        """Raise ValueError where a condition on several parameters fails, if parameters are checked."""
        if self._validate_args and not unseen() and not bool(condition().all()):
            raise ValueError(f"{type(self).__name__}: {what}")

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The distribution with its parameters expanded to a batch shape, as views.

        >>> genesis.distributions.Normal(0.0, genesis.ones(3)).expand((2, 3)).batch_shape
        genesis.Size([2, 3])
        """
        new = self._get_checked_instance(type(self), _instance)
        names = [name for name in self.arg_constraints if name in vars(self)]
        for name, value in vars(self).items():
            if name not in names:
                setattr(new, name, value)
        self._spread({name: getattr(self, name) for name in names}, tuple(batch_shape), new)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

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
        with recording(False) as again, again:
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Extents = ()) -> Tensor:
        """Samples that are functions of the parameters, which get gradients; here the quantiles of uniform numbers."""
        if type(self).icdf is Distribution.icdf:
            raise NotImplementedError(f"{type(self).__name__}: has no rsample")
        shape, like = self._extended_shape(sample_shape), self._like()
        return self.icdf(uniform_inside(shape, like.dtype, like.device))

    def _like(self) -> Tensor:
        """A parameter, whose dtype and device are those of samples."""
        return next(value for value in vars(self).values() if isinstance(value, Tensor))

    def sample_n(self, n: int) -> Tensor:
        """`n` samples along a new first axis."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of each event."""
        raise NotImplementedError(f"{type(self).__name__}: has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of what is at most `value`."""
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
        """Raise unless `value` fits the shapes and lies in the support."""
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
        except NotImplementedError:
            return
        if not unseen() and not bool(support.check(value).all()):
            raise ValueError(f"{type(self).__name__}: values must lie within the support {support!r}, got\n{value}")

    def _checked(self, value: Operand) -> Tensor:
        """`value`, checked where that is wanted."""
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

    def _declare_odds(
        self, validate_args: bool | None, probs: Operand | None, logits: Operand | None, event_dim: int = 0, **others: Operand
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(f"{type(self).__name__}: either probs or logits must be given, and not both")
        given: dict[str, Any] = {"logits": logits} if probs is None else {"probs": probs}
        self._declare(validate_args, event_dim, **given, **others)

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

    def _like(self) -> Tensor:
        return self._param


def _extents(sample_shape: Extents) -> tuple[int, ...]:
    return (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)


def unseen() -> bool:
    """Whether values must not be looked at: a call is recorded for replays, or traced for a transform."""
    return is_recording() or thread_state.deferred


replayable_module(__name__, but=("set_default_validate_args",))
