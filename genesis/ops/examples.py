"""Examples for rows whose docstrings have none.

Each entry of `examples.txt` is a name, a Python session and an empty line.
"""

from __future__ import annotations

import functools
import inspect
from pathlib import Path

from genesis.ops.registry import Operation


@functools.cache
def _sessions() -> dict[str, str]:
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    return {name: session for name, _, session in (block.strip("\n").partition("\n") for block in text.split("\n\n"))}


def documented(operation: Operation) -> str | None:
    """The docstring of a row's function, with an example.

    >>> documented(genesis.ops.OPERATIONS["exp"]).splitlines()[2:]
    ['>>> genesis.exp(genesis.tensor([-1.0, 0.0, 2.0]))', 'tensor([0.3679, 1.0000, 7.3891])']
    """
    own, session = operation.define.__doc__ or "", _sessions().get(operation.name)
    if not session:
        return own or None
    return f"{inspect.cleandoc(own) if len(own.splitlines()) > 1 else own}\n\n{session}"
