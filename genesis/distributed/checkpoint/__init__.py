"""Distributed checkpoints: each rank writes its part, and any number of ranks can load them: PyTorch's API."""

from genesis.distributed.checkpoint import state_dict, stateful
from genesis.distributed.checkpoint.file_system import (
    CheckpointException, DefaultLoadPlanner, DefaultSavePlanner, FileSystemReader, FileSystemWriter, LoadPlanner, SavePlanner,
    StorageReader, StorageWriter,
)
from genesis.distributed.checkpoint.loading import load, load_state_dict
from genesis.distributed.checkpoint.saving import async_save, save, save_state_dict

__all__ = [
    "CheckpointException", "DefaultLoadPlanner", "DefaultSavePlanner", "FileSystemReader", "FileSystemWriter", "LoadPlanner",
    "SavePlanner", "StorageReader", "StorageWriter", "async_save", "load", "load_state_dict", "save", "save_state_dict",
    "state_dict", "stateful",
]
