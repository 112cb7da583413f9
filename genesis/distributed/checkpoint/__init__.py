"""Distributed checkpoints: each rank writes its part, and any number of ranks can load them: PyTorch's API."""

from genesis.distributed.checkpoint import state_dict, stateful
from genesis.distributed.checkpoint.loading import load
from genesis.distributed.checkpoint.saving import async_save, save

__all__ = ["async_save", "load", "save", "state_dict", "stateful"]
