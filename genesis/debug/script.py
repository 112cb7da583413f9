"""Runs a script for the commands that watch it."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Sequence


def run_script(script: str, arguments: Sequence[str]) -> None:
    """Run a file as `python script arguments` does, with its output, and the error that ends it, on stderr."""
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [script, *arguments], os.path.dirname(os.path.abspath(script))
    try:
        with contextlib.redirect_stdout(sys.stderr):
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            print(f"{script} exited with {end.code}", file=sys.stderr)
    except Exception as error:
        print(f"{script} raised {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.argv, sys.path[0] = before
