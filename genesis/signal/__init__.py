"""Signal processing."""

from genesis.signal import windows

__all__ = ["windows"]
__dir__ = __all__.copy
