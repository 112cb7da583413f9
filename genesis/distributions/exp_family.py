"""Exponential families: log p(x) = <T(x), theta> - F(theta) + k(x)."""

from __future__ import annotations

from genesis.autograd.gradients import grad
from genesis.distributions.distribution import Distribution
from genesis.distributions.utils import sum_rightmost
from genesis.tensor.handle import Tensor
from genesis.tracing.state import recording

__all__ = ["ExponentialFamily"]


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
        with recording(True) as again, again:
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
