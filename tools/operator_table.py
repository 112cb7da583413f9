"""Write docs/operators.md, the table of all operations, from the registry.

    python tools/operator_table.py [-o FILE]
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path

import genesis.ops.messages  # and collectives, whose rows come with genesis.distributed
import genesis.optim  # noqa: F401 - whose steps are rows too
from genesis.ops import OPERATIONS, PRIMITIVES, Operation
from genesis.ops.layout import LAYOUT_RULES
from genesis.ops.signatures import signature_of

HEAD = """# Operations

{count} rows, written by `python tools/operator_table.py`. A *primitive* is a node of its own, of the kind given; a
*composite* is written in primitives, and its gradient follows from theirs, where they have one. Under
`genesis.autocast`, arguments become *low* precision, *float32*, or the *widest* type among them; others stay.

| name | arguments | kind | gradient | autocast | |
|---|---|---|---|---|---|
"""


def arguments(operation: Operation) -> str:
    """`input, dim=None, *, dtype=None`: the parameters without their types."""
    plain = [
        p.replace(annotation=p.empty, kind=p.KEYWORD_ONLY if p.name in operation.numbers_between else p.kind)
        for p in signature_of(operation).parameters.values()
    ]
    return str(inspect.Signature(plain))[1:-1]


def kind(operation: Operation) -> str:
    """What a row is made of."""
    if operation.name in LAYOUT_RULES:
        return "primitive: view"
    primitive = PRIMITIVES.get(operation.name)
    return "composite" if primitive is None else f"primitive: {primitive.kind}"


def gradient(operation: Operation) -> str:
    """Whether gradients flow through."""
    if operation.name in LAYOUT_RULES:
        return "yes"
    primitive = PRIMITIVES.get(operation.name)
    return "by its parts" if primitive is None else "yes" if primitive.grad is not None else "no"


def summary(operation: Operation) -> str:
    """The first paragraph of a row's documentation, on one line."""
    return " ".join((inspect.getdoc(operation.define) or "").split("\n\n")[0].split())


def table() -> str:
    """All rows, by name."""
    rows = []
    for name, operation in sorted(OPERATIONS.items()):
        cells = [
            f"`{name}`", f"`{arguments(operation)}`", kind(operation), gradient(operation), operation.autocast or "",
            summary(operation),
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return HEAD.format(count=len(rows)) + "\n".join(rows) + "\n"


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, default=Path("docs/operators.md"))
    parser.parse_args(given).output.write_text(table(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
