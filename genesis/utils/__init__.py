"""What stands beside training: feeding it data."""

from genesis.utils import data

__all__ = ["data"]
