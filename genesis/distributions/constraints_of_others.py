"""Constraints composed of others: with more axes, of components, of parts."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.distributions.constraint import Constraint
from genesis.distributions.utils import all_rightmost, formula
from genesis.functions.methods.table import functions_of
from genesis.tensor.handle import Tensor

_stacked, _joined = functions_of("stack", "cat")


class _OfAnother(Constraint):
    """A constraint by another; it is discrete as that one is, and has its events."""

    base_constraint: Constraint

    is_discrete = formula(lambda c: c.base_constraint.is_discrete)
    event_dim = formula(lambda c: c.base_constraint.event_dim)


class _IndependentConstraint(_OfAnother):
    """A constraint of each element, as one of events with more axes."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        if reinterpreted_batch_ndims < 0:
            raise ValueError(f"independent: {reinterpreted_batch_ndims} axes; want 0 or more")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    event_dim = formula(lambda c: c.base_constraint.event_dim + c.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        if value.ndim < self.event_dim:
            raise ValueError(f"{self!r}: an event has {self.event_dim} axes, got a value of shape {tuple(value.shape)}")
        return all_rightmost(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(_OfAnother):
    """The support of a mixture: the intersection of its components' supports."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    def check(self, value: Tensor) -> Tensor: return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _OfParts(Constraint):
    """Constraints of parts of a value."""

    cseq: list[Constraint]

    is_discrete = formula(lambda c: any([part.is_discrete for part in c.cseq]))
    event_dim = formula(lambda c: max([part.event_dim for part in c.cseq]))


class _Stack(_OfParts):
    """Constraints of the slices along `dim`, one for each."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most event axes of a constraint; at least enough to include `dim`."""
        most = super().event_dim
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Tensor) -> Tensor:
        parts = [c.check(value.select(self.dim, i)) for i, c in enumerate(self.cseq)]
        return _stacked(parts, self.dim)


class _Cat(_OfParts):
    """Constraints of the parts along `dim`, of the extents `lengths`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        parts = [c.check(value.narrow(self.dim, begin, length))
                 for c, begin, length in zip(self.cseq, starts, self.lengths, strict=True)]
        return _joined(parts, self.dim)
