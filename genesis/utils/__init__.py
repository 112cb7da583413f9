"""What stands beside training: feeding it data, and saving its memory."""

from genesis.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
