"""Data loading and checkpointing."""

import importlib

from genesis.utils import checkpoint

__all__ = ["checkpoint", "data"]


def __getattr__(name: str) -> object:
    """`data` when it is first asked for: what its workers need takes a while to import."""
    if name == "data":
        return importlib.import_module("genesis.utils.data")
    raise AttributeError(f"module 'genesis.utils' has no attribute {name!r}")
