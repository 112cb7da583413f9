"""Data loading and checkpointing."""

from genesis.ir.lazy_imports import LazyNames

__all__ = ["checkpoint", "data"]
__dir__ = __all__.copy
__getattr__ = LazyNames("genesis.utils", {"genesis.utils": "checkpoint data"})  # workers need modules that take a while
