"""What of distributed computing has gradients."""

from genesis.distributed.nn import functional

__all__ = ["functional"]
