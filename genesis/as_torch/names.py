"""The names that PyTorch has, of a file which `tools/torch_names.py` writes: a module and its names on each line."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_DEEP = "torch._inductor.", "torch.ao.", "torch.testing._", "torch._refs.", "torch._export."  # not listed below these
_FILE = Path(__file__).with_name("names.txt")


@cache
def _listed() -> dict[str, frozenset[str]]:
    return {path: frozenset(names) for path, *names in (line.split() for line in _FILE.read_text().splitlines())}


def version() -> str:
    """The PyTorch whose names these are."""
    (number,) = _listed()["version"]
    return number


@cache
def modules() -> frozenset[str]:
    """The paths of PyTorch's modules: those whose names are listed, and others that have whatever they are asked for."""
    return frozenset(_listed()) - {"version", "unlisted", "torch.Tensor"} | _listed()["unlisted"]


def names_of(path: str) -> frozenset[str]:
    """The names in a module of PyTorch, or of its class `torch.Tensor`; none of a module that is not listed."""
    return _listed().get(path, frozenset())


def is_open(path: str) -> bool:
    """Whether a module is one of those that scripts do not name, and so has whatever it is asked for."""
    return path in _listed()["unlisted"] or path.startswith(_DEEP)
