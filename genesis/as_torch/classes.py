"""PyTorch's names for genesis' classes: `type(x)` is `<class 'torch.Tensor'>`, because libraries dispatch on
`type(x).__module__`; and the names of stand-ins.

A class gets the name and module of the corresponding PyTorch class, where `import torch` finds it, so plain pickles use that
name.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from genesis.as_torch.finder import look_up
from genesis.as_torch.table import NAMES
from genesis.ir.library import Library
from genesis.ir.made_methods import name_by_place
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.handle import Tensor
from genesis.tensor.return_types import all_return_types
from genesis.tensor.size import Size

_FILE = Path(__file__).with_name("classes.txt")  # each line has a module of PyTorch and its classes


@cache
def _defined() -> tuple[tuple[str, str], ...]:
    lines = (line.split() for line in _FILE.read_text().splitlines())
    return tuple((path, name) for path, *names in lines for name in names)


def name_classes() -> None:
    """Rename genesis' classes as PyTorch's; a class that corresponds to several takes the name equal to its own."""
    found: dict[type, list[tuple[str, str]]] = {}
    for path, name in _defined():
        value = look_up(path, name)
        if isinstance(value, type) and value.__module__.startswith("genesis."):
            found.setdefault(value, []).append((path, name))
    for kind, names in found.items():
        path, name = min(names, key=lambda pair: (pair[1] != kind.__name__, pair[0].count("."), pair))
        if name == kind.__name__ or len({name for _, name in names}) == 1:
            kind.__module__, kind.__name__, kind.__qualname__ = path, name, name
            vars(kind).get("__annotations__", {}).clear()  # strings that refer to the defining module


def name_stand_ins() -> None:
    """Name stand-ins that one function makes, as `always(1)`, after their modules' names for them, or after PyTorch's."""
    for path, module in list(sys.modules.items()):
        if path.startswith("genesis.as_torch.stand_ins."):
            name_by_place(vars(module), path)
    for path, value in NAMES.items():
        home, _, name = path.rpartition(".")
        name_by_place({name: value}, home)


# ---- how values print: `torch.float32` and `torch.Size([2, 3])` ----
def show_as(library: str) -> None:
    """Print dtypes and sizes as those of `library`, and make a tensor's shape a Size."""
    Library.name, Library.strict = library, True
    for kind in all_return_types:
        kind.__module__ = f"{library}.return_types"
    plain, made = Tensor.shape.fget, tuple.__new__  # type: ignore[attr-defined]

    def shape(self: Tensor) -> Size:
        """The extents."""
        return made(Size, plain(self))  # known to be ints

    extents = SparseTensor.shape.fget  # type: ignore[attr-defined]
    SparseTensor.shape = property(lambda self: Size(extents(self)))  # type: ignore[assignment, misc]
    Tensor.shape = property(shape)  # type: ignore[assignment, misc]
