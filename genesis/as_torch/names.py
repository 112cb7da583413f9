"""PyTorch's names, from a file written by `tools/torch_names.py`: a module and its names on each line."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_DEEP = "torch._inductor.", "torch.ao.", "torch.testing._", "torch._refs.", "torch._export."  # names below these are not listed
_FILE = Path(__file__).with_name("names.txt")


@cache
def _listed() -> dict[str, frozenset[str]]:
    return {path: frozenset(names) for path, *names in (line.split() for line in _FILE.read_text().splitlines())}


def version() -> str:
    """The version of PyTorch with these names."""
    (number,) = _listed()["version"]
    return number


@cache
def modules() -> frozenset[str]:
    """The paths of PyTorch's modules: those with listed names, and open ones, which accept any name."""
    return frozenset(_listed()) - {"version", "unlisted", "torch.Tensor"} | _listed()["unlisted"]


def names_of(path: str) -> frozenset[str]:
    """The names in a module of PyTorch, or in its class `torch.Tensor`; none for modules that are not listed."""
    return _listed().get(path, frozenset())


def is_open(path: str) -> bool:
    """Whether a module's names are not listed, so that it accepts any name."""
    return path in _listed()["unlisted"] or path.startswith(_DEEP)
