"""Support of IPython and notebooks: the names of cells, and hiding our frames in tracebacks."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def shell() -> Any:
    """The running IPython, or None."""
    interactive = sys.modules.get("IPython")
    return interactive.get_ipython() if interactive is not None and hasattr(interactive, "get_ipython") else None


def cell_name(file: str) -> str | None:
    """`Cell In[7]` for the file name of that cell; None for a real file."""
    running = shell()
    found = running.compile.format_code_name(file) if running is not None else None
    return None if found is None else " ".join(found)


def hide_frames(traceback: TracebackType | None) -> None:
    """Mark our frames as those that IPython and pytest leave out of tracebacks."""
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            traceback.tb_frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


def fold_tracebacks() -> None:
    """Hide our frames in the running IPython's tracebacks; `%xmode Verbose` shows them.

    An error handler that is set already is kept.
    """
    running = shell()
    if running is not None and not running.custom_exceptions:
        running.set_custom_exc((Exception,), _show)


def _show(
    running: Any, kind: type[BaseException], error: BaseException, traceback: TracebackType, tb_offset: int | None = None
) -> None:
    if running.InteractiveTB.mode != "Verbose":
        hide_frames(traceback)
    running.showtraceback((kind, error, traceback), tb_offset=tb_offset)
