"""The directories of this user's compiled kernels and measured choices."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory(name: str) -> Path | None:
    """The private directory `name` under $GENESIS_CACHE_DIR, $XDG_CACHE_HOME/genesis or ~/.cache/genesis.

    Made if need be. None if there can be none, or if others could write machine code into it. It may be read-only.
    """
    try:
        directory = _root() / name
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory if _is_private(directory) else None
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        return None


def _root() -> Path:
    if chosen := os.environ.get("GENESIS_CACHE_DIR"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "genesis"
    return Path.home() / ".cache" / "genesis"


def _is_private(directory: Path) -> bool:
    """Whether only this user or root can write here; a directory of our own is made so if it is not."""
    status = directory.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        directory.chmod(0o700)
        status = directory.stat()
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022
