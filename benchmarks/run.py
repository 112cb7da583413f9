"""Run the benchmarks: `python -m benchmarks.run [FAMILY ..] [--quick] [--rounds N] [--json FILE] [--picture FILE]`."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from benchmarks import (
    compiling,
    decoding,
    elementwise,
    first_calls,
    functions,
    larger_networks,
    memory,
    new_lengths,
    operations,
    tracing,
    training,
    transforms,
)
from benchmarks.measure import Settings
from benchmarks.peers import same_threads
from benchmarks.session import parser, report
from benchmarks.table import draw

FAMILIES = {
    "elementwise": elementwise, "functions": functions, "operations": operations, "training": training,
    "larger networks": larger_networks, "tracing": tracing, "compiling": compiling, "first calls": first_calls,
    "memory": memory, "transforms": transforms, "decoding": decoding, "new lengths": new_lengths,
}


def main() -> int:
    arguments = parser(__doc__, "out/benchmarks.json")
    arguments.add_argument("families", nargs="*", metavar="FAMILY", help=f"{', '.join(FAMILIES)}; all if none")
    arguments.add_argument("--picture", type=Path, default=Path("out/benchmarks.png"), help="where they are drawn")
    options = arguments.parse_args()
    if unknown := set(options.families) - set(FAMILIES):
        arguments.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")

    settings = Settings(options.quick, options.rounds)
    machine = {"processors": os.cpu_count(), "threads": same_threads(), "machine": platform.machine()}
    results = (result for name in options.families or FAMILIES for result in FAMILIES[name].run(settings))
    draw(report(results, machine, options), options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
