"""Settings of GPUs.

>>> genesis.backends.cuda.matmul.allow_tf32
False
"""

from genesis.runtime.cuda.cublas import matmul

__all__ = ["matmul"]
__dir__ = __all__.copy
