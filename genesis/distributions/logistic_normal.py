"""Normal vectors on a simplex."""

from __future__ import annotations

from genesis.distributions import constraints
from genesis.distributions.independent import Independent
from genesis.distributions.normal import Normal
from genesis.distributions.transformed_distribution import TransformedDistribution
from genesis.distributions.transforms import StickBreakingTransform
from genesis.distributions.utils import Operand, declared
from genesis.ir.replayable import replayable_module
from genesis.tensor.handle import Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex: normal vectors with mean `loc` and deviations `scale`, by the `StickBreakingTransform`."""

    arg_constraints = declared(loc=constraints.real, scale=constraints.positive)
    support = constraints.simplex
    has_rsample = True
    base_dist: Independent

    def __init__(self, loc: Operand, scale: Operand, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args)

    @property
    def _normal(self) -> Normal:
        return self.base_dist.base_dist  # type: ignore[return-value]

    @property
    def loc(self) -> Tensor:
        """The mean of the normal vectors."""
        return self._normal.loc

    @property
    def scale(self) -> Tensor:
        """The deviations of the normal vectors."""
        return self._normal.scale


replayable_module(__name__)
