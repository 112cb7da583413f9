"""Mixed precision under the names of `torch.cuda.amp`; `genesis.amp` has the whole of it."""

from __future__ import annotations

from genesis.amp import GradScaler, autocast as any_autocast
from genesis.ir.dtypes import DType, float16

__all__ = ["GradScaler", "autocast"]
__dir__ = __all__.copy


class autocast(any_autocast):
    """`genesis.autocast` with PyTorch's default for GPUs, float16, which wants a GradScaler.

    >>> with genesis.cuda.amp.autocast(enabled=False):
    ...     (genesis.ones(2, 3) @ genesis.ones(3, 2)).dtype
    genesis.float32
    """

    def __init__(self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda" if enabled else None, dtype, enabled, cache_enabled)
