"""A run of benchmarks from the command line: what it may be asked for, and what becomes of its results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.measure import Result
from benchmarks.table import table

__all__ = ["parser", "report"]


def parser(description: str | None, path: str) -> argparse.ArgumentParser:
    """The options of every run; the numbers go to `path` unless it is told otherwise."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    options.add_argument("--rounds", type=int, default=30, help="turns that each contestant takes")
    options.add_argument("--json", type=Path, default=Path(path), help="where the numbers go")
    return options


def report(results: Iterable[Result], machine: dict[str, Any], options: argparse.Namespace) -> list[Result]:
    """The results, each printed as it comes; then the table of all, and the file of numbers."""
    print(", ".join(f"{name}: {value}" for name, value in machine.items()), "\n")
    found = []
    for result in results:
        found.append(result)
        print(f"{result}\n", flush=True)
    print(table(found), "\n")
    kept = sum(bar.kept for result in found for bar in result.bars)
    print(f"bars kept: {kept} of {sum(len(result.bars) for result in found)}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**machine, "quick": options.quick, "results": [r.as_dict() for r in found]}, indent=2)
    options.json.write_text(text + "\n", encoding="utf-8")
    return found
