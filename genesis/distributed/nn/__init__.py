"""Differentiable distributed operations."""

from genesis.distributed.nn import functional

__all__ = ["functional"]
