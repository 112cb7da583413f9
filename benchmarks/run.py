"""Run the benchmarks: `python -m benchmarks.run [FAMILY ..] [--quick] [--rounds N] [--json FILE] [--picture FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from benchmarks import compiling, elementwise, first_calls, functions, memory, tracing, training
from benchmarks.measure import Result, Settings
from benchmarks.peers import same_threads
from benchmarks.table import draw, table

FAMILIES = {
    "elementwise": elementwise, "functions": functions, "training": training, "tracing": tracing, "compiling": compiling,
    "first calls": first_calls, "memory": memory,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"{', '.join(FAMILIES)}; all if none")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--rounds", type=int, default=30, help="turns that each contestant takes")
    parser.add_argument("--json", type=Path, default=Path("out/benchmarks.json"), help="where the numbers go")
    parser.add_argument("--picture", type=Path, default=Path("out/benchmarks.png"), help="where they are drawn")
    options = parser.parse_args()
    if unknown := set(options.families) - set(FAMILIES):
        parser.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")

    settings = Settings(options.quick, options.rounds)
    machine = {"processors": os.cpu_count(), "threads": same_threads(), "machine": platform.machine()}
    print(", ".join(f"{name}: {value}" for name, value in machine.items()), "\n")
    results: list[Result] = []
    for name in options.families or FAMILIES:
        for result in FAMILIES[name].run(settings):
            results.append(result)
            print(f"{result}\n", flush=True)
    print(table(results), "\n")
    kept = sum(bar.kept for result in results for bar in result.bars)
    print(f"bars kept: {kept} of {sum(len(result.bars) for result in results)}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**machine, "quick": options.quick, "results": [r.as_dict() for r in results]}, indent=2)
    options.json.write_text(text + "\n", encoding="utf-8")
    draw(results, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
