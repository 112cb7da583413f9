"""Run a script and dump what it flushed.

    python tools/graph_dump.py SCRIPT [--stage trace|lowered|kernels|program] [--format text|dot|html] [-o FILE]

Stages: `trace` is what the script recorded, `lowered` the graph after the passes, `kernels` the code of each kernel,
`program` the instruction list. Flushes that ran one program are shown once. Arguments after `--` go to the script.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
from collections.abc import Sequence

from genesis.debug.page import page
from genesis.debug.program import Flushed, Recording

STAGES = ("trace", "lowered", "kernels", "program")
FORMATS = ("text", "dot", "html")


def record(script: str, arguments: Sequence[str]) -> list[Flushed]:
    """The programs that a script ran, in order. What it prints goes to stderr; an error in it ends the recording."""
    before = sys.argv, sys.path[0]
    sys.argv, sys.path[0] = [script, *arguments], os.path.dirname(os.path.abspath(script))
    try:
        with Recording() as recording, contextlib.redirect_stdout(sys.stderr):
            try:
                runpy.run_path(script, run_name="__main__")
            except SystemExit as end:
                if end.code not in (None, 0):
                    print(f"{script} exited with {end.code}", file=sys.stderr)
            except Exception as error:
                print(f"{script} raised {type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.argv, sys.path[0] = before
    return recording.programs


def text(flushed: Flushed, stage: str) -> str:
    """One program at a stage, for reading."""
    program = flushed.program
    if stage == "kernels":
        return "\n\n".join(
            f"{k.name}: {', '.join(k.ops)}\n  reads {', '.join(k.reads)}\n  writes {', '.join(k.writes)}\n{k.source}"
            for k in program.kernels
        )
    return repr({"trace": flushed.graph, "lowered": program.graph, "program": program}[stage])


def dump(programs: Sequence[Flushed], script: str, stage: str, form: str) -> str:
    """All programs at a stage, in one of FORMATS."""
    if form == "html":
        return page(programs, script, lowered=stage != "trace")
    parts = []
    for number, flushed in enumerate(programs, 1):
        if form == "text":
            body = text(flushed, stage)
        elif stage == "trace":
            body = flushed.graph.to_dot()
        else:
            body = flushed.program.graph.to_dot({} if stage == "lowered" else flushed.program.kernel_of)
        mark = "//" if form == "dot" else "##"
        parts.append(f"{mark} program {number} of {len(programs)}, runs: {flushed.runs}\n{body}\n")
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, rest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("--stage", choices=STAGES, default="trace")
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("-o", "--output", metavar="FILE")
    options = parser.parse_args(given)
    if not os.path.isfile(options.script):
        parser.error(f"there is no script {options.script}")
    result = dump(record(options.script, rest), options.script, options.stage, options.format)
    if options.output is None:
        sys.stdout.write(result)
    else:
        os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
