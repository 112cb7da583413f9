"""PyTorch's names for genesis: after `install()`, `import torch` finds genesis. PyTorch need not be there.

`python -m genesis.as_torch script.py` runs a script so, and `python -m genesis.as_torch --check FILES` lists, without
running them, what files use and genesis lacks.
"""

from __future__ import annotations

import multiprocessing
import sys

from genesis.as_torch.classes import name_classes
from genesis.as_torch.constructor import derive_classes, take_sizes, watch_classes
from genesis.as_torch.finder import Door, Finder
from genesis.as_torch.missing import MissingError
from genesis.as_torch.processes import install_in_children
from genesis.as_torch.shown import show_as
from genesis.as_torch.stand_ins.compilers import compile_modules
from genesis.autograd.custom import Context
from genesis.runtime.rng import Generator
from genesis.utils.data import DataLoader

__all__ = ["MissingError", "install", "is_installed"]

_finder = Finder()


def install() -> None:
    """From now on `import torch` finds genesis, in this process: `torch.nn.functional`, `torch.utils.data` and so on too.

    A PyTorch that is installed is left alone, and not found. What it has and genesis lacks raises MissingError when it is
    used. Raises RuntimeError where PyTorch is imported already.

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
        install_in_children()


def is_installed() -> bool:
    """Whether `import torch` finds genesis."""
    return _finder in sys.meta_path
