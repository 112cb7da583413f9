"""Settings of what computes, by PyTorch's names."""

from genesis.backends import cuda, cudnn, mha, mps

__all__ = ["cuda", "cudnn", "mha", "mps"]
__dir__ = __all__.copy
