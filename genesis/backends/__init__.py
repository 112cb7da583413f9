"""Settings of what computes, by PyTorch's names."""

from genesis.backends import cuda, cudnn, mps

__all__ = ["cuda", "cudnn", "mps"]
__dir__ = __all__.copy
