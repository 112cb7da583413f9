"""Run a script and print where its time went.

    python -m genesis profile [--by module|line|operation|kernel] [--annotate] [--memory] [--chrome FILE] SCRIPT [ARGS]

Arguments after the script are its own; what it prints goes to stderr.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from genesis.debug.graph_command import run_script
from genesis.profiler.session import profile
from genesis.profiler.tables import BY, SORTS


def profile_command(arguments: Sequence[str]) -> int:
    """Run `python -m genesis profile` with these arguments; returns the exit status.

    >>> profile_command(["no_such_script.py"])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    SystemExit: 2
    """
    parser = argparse.ArgumentParser("profile", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--by", choices=BY, action="append", help="what rows are, once or more; module and line if not given")
    parser.add_argument("--sort", choices=[*SORTS], default="time")
    parser.add_argument("--limit", type=int, default=25, help="rows of a table")
    parser.add_argument("--annotate", action="store_true", help="print the sources with times in the margin")
    parser.add_argument("--memory", action="store_true", help="print what lay in memory when")
    parser.add_argument("--chrome", metavar="FILE", help="write a trace that https://ui.perfetto.dev shows")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("args", nargs=argparse.REMAINDER)
    asked = parser.parse_args(arguments)
    if not os.path.isfile(asked.script):
        parser.error(f"there is no script {asked.script}")
    with profile() as measured:
        run_script(asked.script, asked.args)
    shown: list[str] = [measured.table(by, asked.sort, asked.limit) for by in asked.by or ("module", "line")]
    shown += [str(measured.annotate())] * asked.annotate + [repr(measured.memory())] * asked.memory
    print("\n\n".join(shown))
    if asked.chrome:
        measured.chrome_trace(asked.chrome)
        print(f"\nwrote {asked.chrome}: open it at https://ui.perfetto.dev")
    return 0
