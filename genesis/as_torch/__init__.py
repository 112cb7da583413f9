"""Installs genesis as PyTorch: after `install()`, `import torch` finds genesis, with or without PyTorch.

`python -m genesis.as_torch script.py` runs a script this way, and `python -m genesis.as_torch --check FILES` lists, without
running them, names that files use and genesis lacks.
"""

from __future__ import annotations

import multiprocessing
import sys

from genesis.as_torch.classes import name_classes, name_stand_ins, show_as
from genesis.as_torch.constructor import derive_classes, take_sizes, watch_classes
from genesis.as_torch.finder import Door, Finder
from genesis.as_torch.missing import MissingError
from genesis.as_torch.processes import install_in_children
from genesis.as_torch.stand_ins.compiler import compile_modules
from genesis.autograd.custom import Context
from genesis.runtime.rng import Generator
from genesis.tensor.call_modes import prepare
from genesis.utils.data import DataLoader

__all__ = ["MissingError", "install", "is_installed"]

_finder = Finder()


def install() -> None:
    """Make `import torch` find genesis in this process, including `torch.nn.functional`, `torch.utils.data` and so on.

    An installed PyTorch is not touched and not found. Names that it has and genesis lacks raise MissingError when used. Raises
    RuntimeError if PyTorch is already imported.

    >>> import genesis.as_torch
    >>> genesis.as_torch.is_installed()
    False
    """
    there = sys.modules.get("torch")
    if there is not None and not isinstance(there, Door):
        raise RuntimeError("as_torch.install: PyTorch is imported already; call install() before the first `import torch`")
    if not is_installed():
        sys.meta_path.insert(0, _finder)
        show_as("torch")
        Generator.in_pytorchs_order = True
        DataLoader.default_context = multiprocessing
        Context.sequence = tuple
        take_sizes()
        derive_classes()
        watch_classes()
        compile_modules()
        name_classes()
        name_stand_ins()
        prepare()  # libraries compare functions, as `torch.Tensor.to`, with those that overrides get
        install_in_children()


def is_installed() -> bool:
    """Whether `import torch` finds genesis."""
    return _finder in sys.meta_path
