"""The names of classes under the door: `type(x)` is `<class 'torch.Tensor'>`, for libraries choose by `type(x).__module__`.

A class has the name and the module of PyTorch's class that it stands for, where `import torch` finds it again:
plain pickles name it so.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from genesis.as_torch.finder import look_up

_FILE = Path(__file__).with_name("classes.txt")  # a module of PyTorch's and the classes it defines on each line


@cache
def _defined() -> tuple[tuple[str, str], ...]:
    lines = (line.split() for line in _FILE.read_text().splitlines())
    return tuple((path, name) for path, *names in lines for name in names)


def name_classes() -> None:
    """Have genesis' classes be named as PyTorch's; one that stands for several, as the one that is called as it is here."""
    found: dict[type, list[tuple[str, str]]] = {}
    for path, name in _defined():
        value = look_up(path, name)
        if isinstance(value, type) and value.__module__.startswith("genesis."):
            found.setdefault(value, []).append((path, name))
    for kind, names in found.items():
        path, name = min(names, key=lambda pair: (pair[1] != kind.__name__, pair[0].count("."), pair))
        if name == kind.__name__ or len({name for _, name in names}) == 1:
            kind.__module__, kind.__name__, kind.__qualname__ = path, name, name
            vars(kind).get("__annotations__", {}).clear()  # texts that mean what they say in the module that it was defined in
