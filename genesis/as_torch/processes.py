"""Processes that are started under the door are under it too, those that do not inherit this one's memory as well."""

from __future__ import annotations

import multiprocessing.forkserver
import multiprocessing.spawn
import os
from pathlib import Path
from typing import Any

MAIN = "GENESIS_AS_TORCH_MAIN"  # in the environment of a child: the script, or the module, that it is to import as its main one


def install_in_children() -> None:
    """Have processes of `multiprocessing` that begin anew (spawn, forkserver) begin with `genesis.as_torch.child`.

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
