"""What stands beside training: feeding it data, and trading its time for memory."""

from genesis.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
