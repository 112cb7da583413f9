"""Settings of what computes, by PyTorch's names."""

from genesis.backends import cuda

__all__ = ["cuda"]
