"""The documents' own code as scripts, run once each: what they print, and what their names hold at the end."""

import contextlib
import functools
import io
import runpy
import warnings
from pathlib import Path
from typing import Any

import genesis

SCRIPTS = Path(__file__).parent / "scripts"


@functools.cache
def document(name: str) -> tuple[str, dict[str, Any]]:
    """(what the script printed, its names), with every switch and registration undone."""
    printed = io.StringIO()
    genesis.manual_seed(0)
    try:
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = runpy.run_path(str(SCRIPTS / f"{name}.py"))
    finally:
        genesis.set_grad_enabled(True)
        genesis.enable_autocast = False
        for operation in ("add", "matmul", "relu"):
            with contextlib.suppress(ValueError):
                genesis.ops.unregister_function(operation)
        with contextlib.suppress(ValueError):
            genesis.ops.unregister_operation("custom_op")
    return printed.getvalue(), names
