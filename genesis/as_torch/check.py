"""Finds names of PyTorch that files use and genesis lacks, in their syntax trees, without running them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from genesis.as_torch.finder import has, is_known, is_module, source_of
from genesis.as_torch.names import names_of
from genesis.tensor.handle import Tensor


class Use(NamedTuple):
    """A line that uses a missing name; not `surely` if only a method name matches."""

    path: str
    file: str
    line: int
    surely: bool


def report(paths: Iterable[str]) -> int:
    """Print the missing names that files, or those below folders, use. Returns 1 if there are any, else 0."""
    files = [file for path in paths for file in _files(Path(path))]
    uses = [use for file in files for use in missing_in(file.read_text(errors="replace"), str(file))]
    for surely, title in ((True, "missing"), (False, "perhaps missing: methods of these names, if they are called on tensors")):
        chosen = [use for use in uses if use.surely is surely]
        if chosen:
            print(f"{title}:")
        for name in sorted({use.path for use in chosen}):
            lines = [f"{use.file}:{use.line}" for use in chosen if use.path == name]
            print(f"  {name:48} {', '.join(lines[:3])}{f' and {len(lines) - 3} more' if len(lines) > 3 else ''}")
    print(f"{len(files)} files, {len({use.path for use in uses if use.surely})} names missing")
    return 1 if any(use.surely for use in uses) else 0


def _files(path: Path) -> Iterator[Path]:
    yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def missing_in(text: str, file: str = "<string>") -> list[Use]:
    """The uses of missing names in a module's text; none, with a line on stderr, if it is not Python.

    >>> [(use.path, use.line) for use in missing_in("import torch.nn as nn\\nnn.Linear(1, 2)\\nnn.quantized.dynamic.LSTM()")]
    [('torch.nn.quantized.dynamic.LSTM', 3)]
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as problem:
        print(f"{file}: not Python: {problem}", file=sys.stderr)
        return []
    named = dict(_imported(tree))
    found = {Use(lack, file, line, True) for path, line in _paths(tree, named) if (lack := _first_missing(path)) is not None}
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    methods = names_of("torch.Tensor") - defined - {name for name in dir(Tensor)}
    for node in ast.walk(tree) if named else ():
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in methods and _chain(called, named) is None:
            found.add(Use(f"Tensor.{called.attr}", file, called.lineno, False))
    return sorted(found, key=lambda use: (use.line, use.path))


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(name, path) of all names that imports bind to PyTorch's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    yield (alias.asname, alias.name) if alias.asname else ("torch", "torch")
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _paths(tree: ast.AST, named: dict[str, str]) -> Iterator[tuple[str, int]]:
    """(path, line) of all of PyTorch's names that are imported or used."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.split(".")[0] == "torch")
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "torch":
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Attribute) and id(node) not in inner and (path := _chain(node, named)) is not None:
            yield path, node.lineno


def _chain(node: ast.expr, named: dict[str, str]) -> str | None:
    """The path that `a.b.c` names, if `a` is bound to something of PyTorch's."""
    if isinstance(node, ast.Name):
        return named.get(node.id)
    if isinstance(node, ast.Attribute) and (path := _chain(node.value, named)) is not None:
        return f"{path}.{node.attr}"
    return None


def _first_missing(path: str) -> str | None:
    """The shortest prefix of the path that PyTorch has and genesis lacks; None if there is none."""
    parts = path.split(".")
    for n in range(1, len(parts)):
        home, name = ".".join(parts[:n]), parts[n]
        if home != "torch.Tensor" and not is_module(home):
            return None  # an attribute of a class or of a function
        if has(source_of(home), home, name):
            continue
        if is_module(f"{home}.{name}") and n + 1 < len(parts):
            continue
        listed = home == "torch.Tensor" and name in names_of(home)
        return f"{home}.{name}" if listed or is_known(home, name) or is_module(f"{home}.{name}") else None
    return None
