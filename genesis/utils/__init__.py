"""Data loading, checkpointing, files for TensorBoard."""

from genesis.runtime.deferred import LazyNames

__all__ = ["checkpoint", "data", "tensorboard"]
__dir__ = __all__.copy
# Workers of the loader need modules that take a while.
__getattr__ = LazyNames("genesis.utils", {"genesis.utils": "checkpoint data tensorboard"})
