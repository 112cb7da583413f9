"""Fields of structures in LLVM IR written by hand: one line for all that are loaded, or addressed."""

from __future__ import annotations

import re

__all__ = ["with_fields"]


def with_fields(text: str) -> str:
    """`text` with each line `  load %s: 1 i64 a, ..` spelled out, which loads fields of the structure %s that %s points to, and
    each line `  fields %s: 1 a, ..`, which takes their addresses.

    >>> print(with_fields("  load %s: 1 i64 a"), end="")
      %a.at = getelementptr %s, ptr %s, i32 0, i32 1
      %a = load i64, ptr %a.at
    """
    return re.sub(r"^  (load|fields) %(\w+): (.*)$", _spelled_out, text, flags=re.MULTILINE)


def _spelled_out(line: re.Match[str]) -> str:
    what, struct, fields = line.groups()
    found = []
    for number, *kind, name in (field.split() for field in fields.split(", ")):
        address = f"{name}.at" if kind else name
        found.append(f"  %{address} = getelementptr %{struct}, ptr %{struct}, i32 0, i32 {number}")
        found += [f"  %{name} = load {kind[0]}, ptr %{address}"] if what == "load" else []
    return "\n".join(found)
