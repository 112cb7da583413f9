"""Installs genesis as PyTorch in child processes, also in those that do not inherit this one's memory."""

from __future__ import annotations

import multiprocessing.forkserver
import multiprocessing.spawn
import os
from pathlib import Path
from typing import Any

MAIN = "GENESIS_AS_TORCH_MAIN"  # a child's environment variable: the script or module to import as its main module


def install_in_children() -> None:
    """Make processes of `multiprocessing` (spawn, forkserver) start with `genesis.as_torch.child`.

    Other Python processes find `genesis.as_torch.children.torch` when they import torch.
    """
    path = str(Path(__file__).with_name("children"))
    os.environ["PYTHONPATH"] = os.pathsep.join([path, *filter(None, [os.environ.get("PYTHONPATH")])])
    plain = multiprocessing.spawn.get_preparation_data

    def prepared(name: str) -> dict[str, Any]:
        data = plain(name)
        path, module = data.pop("init_main_from_path", None), data.pop("init_main_from_name", None)
        os.environ[MAIN] = f"path {path}" if path else f"name {module}" if module else ""
        return {**data, "init_main_from_name": "genesis.as_torch.child"}

    multiprocessing.spawn.get_preparation_data = prepared
