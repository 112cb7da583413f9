"""Saving to files and loading: pickle, which by default builds nothing but tensors and plain containers."""

from __future__ import annotations

import os
import pickle
from typing import Any, BinaryIO

__all__ = ["load", "save"]

_HARMLESS = {
    ("collections", "OrderedDict"), ("genesis.ir.dtypes", "_named"), ("genesis.methods.conversion", "_rebuilt"),
    ("genesis.nn.parameter", "Parameter"), ("genesis.tensor", "Tensor"),
}


def save(obj: Any, f: str | os.PathLike[str] | BinaryIO) -> None:
    """Write `obj` (a tensor, a state dict, anything that pickles) to a path or an open binary file.

    >>> import genesis, io
    >>> file = io.BytesIO()
    >>> save({"weight": genesis.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> load(file)
    {'weight': tensor([1., 1.])}
    """
    if isinstance(f, str | os.PathLike):
        with open(f, "wb") as file:
            pickle.dump(obj, file, protocol=5)
    else:
        pickle.dump(obj, f, protocol=5)


def load(f: str | os.PathLike[str] | BinaryIO, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote.

    With `weights_only`, a file that asks for anything but tensors, dtypes, numbers, strings and their containers raises
    pickle.UnpicklingError. Without it, a pickle may run any code: do so only with files of your own.
    """
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return load(file, weights_only=weights_only)
    return _Careful(f).load() if weights_only else pickle.load(f)


class _Careful(pickle.Unpickler):
    """An Unpickler that knows tensors and plain containers alone."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(f"load: the file asks for {module}.{name}; if you trust it, give weights_only=False")
        return super().find_class(module, name)
