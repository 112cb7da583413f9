"""Run a script and show the programs that it ran.

    python -m genesis graph SCRIPT [-o PAGE.html]
    python -m genesis graph SCRIPT --stage trace|lowered|kernels|program [--format text|dot] [-o FILE]

Without `--stage`, it writes a page to explore, `out/SCRIPT.html` if no other is named. Stages are printed: `trace` is what
the script recorded, `lowered` the graph after the passes, `kernels` the code of each kernel, `program` the instruction list.
Programs that ran often are shown once. Arguments after `--` go to the script.
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


STAGES = ("trace", "lowered", "kernels", "program")
FORMATS = ("text", "dot")


def graph_command(arguments: Sequence[str] | None = None) -> int:
    """Runs `python -m genesis graph` with these arguments; returns the exit status.

    >>> graph_command(["no_such_script.py"])  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    SystemExit: 2
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, rest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    parser = argparse.ArgumentParser("graph", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--format", choices=FORMATS, default="text")
    parser.add_argument("-o", "--output", metavar="FILE")
    options = parser.parse_args(given)
    if not os.path.isfile(options.script):
        parser.error(f"there is no script {options.script}")
    with Recording() as recording:
        run_script(options.script, rest)
    if options.stage is None:
        output = options.output or os.path.join("out", f"{os.path.splitext(os.path.basename(options.script))[0]}.html")
        _write(page(recording.programs, options.script), output)
        print(f"open {output} in a browser")
        return 0
    result = dump(recording.programs, options.stage, options.format)
    if options.output is None:
        sys.stdout.write(result)
    else:
        _write(result, options.output)
    return 0


def _write(text: str, output: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


def dump(programs: Sequence[Flushed], stage: str, form: str) -> str:
    """All programs at one of STAGES, in one of FORMATS."""
    parts = []
    for number, flushed in enumerate(programs, 1):
        if form == "text":
            body = _text(flushed, stage)
        elif stage == "trace":
            body = flushed.graph.to_dot()
        else:
            body = flushed.program.graph.to_dot({} if stage == "lowered" else flushed.program.kernel_of)
        mark = "//" if form == "dot" else "##"
        parts.append(f"{mark} program {number} of {len(programs)}, runs: {flushed.runs}\n{body}\n")
    return "\n".join(parts)


def _text(flushed: Flushed, stage: str) -> str:
    program = flushed.program
    if stage == "kernels":
        return "\n\n".join(
            f"{k.name}: {', '.join(k.ops)}\n  reads {', '.join(k.reads)}\n  writes {', '.join(k.writes)}\n{k.source}"
            for k in program.kernels
        )
    if stage == "program":
        return program.text(detail=True)
    return (flushed.graph if stage == "trace" else program.graph).text(detail=True)
