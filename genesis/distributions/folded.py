"""Distributions of absolute values."""

from __future__ import annotations

from math import log as ln
from typing import Any, ClassVar

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import AbsTransform
from genesis.distributions.utils import Operand, formula
from genesis.functions.creation import zeros_like
from genesis.functions.selection import where
from genesis.tensor.handle import Tensor


class Folded(TransformedDistribution):
    """The absolute value of a number of the distribution `whole`, which is symmetric about 0."""

    scale: Parameter = parameter(constraints.positive, of="base_dist")
    support = constraints.nonnegative
    has_rsample = True
    whole: ClassVar[Any]
    mode = formula(lambda d: zeros_like(d.scale))

    def __init__(self, scale: Operand, validate_args: bool | None = None) -> None:
        super().__init__(self.whole(0, scale, validate_args=False), AbsTransform(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        density = self.base_dist.log_prob(self._checked(value)) + ln(2)
        return where(value >= 0, density, float("-inf"))

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - ln(2)  # type: ignore[no-any-return]
