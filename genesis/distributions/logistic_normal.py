"""Normal vectors on a simplex."""

from __future__ import annotations

from genesis.distributions import constraints
from genesis.distributions.declaration import Parameter, parameter
from genesis.distributions.normal import Normal
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import StickBreakingTransform
from genesis.distributions.utils import Operand

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: normal vectors with mean `loc` and deviations `scale`, by the `StickBreakingTransform`."""

    loc: Parameter = parameter(constraints.real, of="_normal")
    scale: Parameter = parameter(constraints.positive, of="_normal")
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def _normal(self) -> Normal:
        return self.base_dist.base_dist  # type: ignore[no-any-return]
