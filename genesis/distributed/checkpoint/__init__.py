"""Checkpoints that ranks write together, each its part, and that any number of ranks loads: PyTorch's names."""

from genesis.distributed.checkpoint import state_dict, stateful
from genesis.distributed.checkpoint.loading import load
from genesis.distributed.checkpoint.saving import async_save, save

__all__ = ["async_save", "load", "save", "state_dict", "stateful"]
