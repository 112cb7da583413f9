"""Signal processing."""

from genesis.signal import windows

__all__ = ["windows"]
