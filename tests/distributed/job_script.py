"""Scripts of checks, one after the other in one job: `SCRIPT` for all of its checks, `SCRIPT:CHECK,..` for these."""

import importlib
import sys

from checks import run


def part(argument):
    script, _, checks = argument.partition(":")
    return vars(importlib.import_module(script)), checks.split(",") if checks else []


if __name__ == "__main__":
    run(*map(part, sys.argv[1:]))
