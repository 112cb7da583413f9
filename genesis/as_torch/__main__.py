"""`python -m genesis.as_torch script.py [args]`, `-m module [args]`, `-c command`, or `--check FILES`."""

import runpy
import sys
from pathlib import Path

from genesis.as_torch import install
from genesis.as_torch.check import report
from genesis.as_torch.stand_ins.distributed_run import COMMANDS

USAGE = "usage: python -m genesis.as_torch script.py [args] | -m module [args] | -c command | --check FILES"


def main(arguments: list[str]) -> int:
    """Run a script, a module or a command with genesis as `torch`; or list names that files use and genesis lacks."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    first, *rest = arguments
    if first == "--check":
        return report(rest)
    install()
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    elif first == "-m":
        if rest[0] in COMMANDS:
            return COMMANDS[rest[0]](rest[1:])
        sys.argv = rest
        sys.path.insert(0, "")
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(first).resolve().parent))
        runpy.run_path(first, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
