"""Saving to files and loading: pickle, which by default builds nothing but tensors and plain containers."""

from __future__ import annotations

import os
import pickle
from typing import Any, BinaryIO

from genesis.runtime.devices import device_of

__all__ = ["load", "save"]

_TENSOR, _WHERE = ("genesis.functions.methods.conversion", "_rebuilt"), 6  # what makes a tensor, and which argument says where
_HARMLESS = {
    _TENSOR, ("collections", "OrderedDict"), ("genesis.runtime.devices", "Device"), ("genesis.ir.dtypes", "_named"),
    ("genesis.nn.parameter", "Parameter"), ("genesis.tensor.handle", "Tensor"),
}

_MOVED = {  # modules as files of earlier versions name them
    "genesis.devices": "genesis.runtime.devices", "genesis.methods.conversion": "genesis.functions.methods.conversion",
    "genesis.tensor": "genesis.tensor.handle", "genesis.variable": "genesis.functions.variable",
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


def load(f: str | os.PathLike[str] | BinaryIO, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read what `save` wrote; the tensors are where they were, or on the device `map_location`.

    With `weights_only`, a file that asks for anything but tensors, dtypes, numbers, strings and their containers raises
    pickle.UnpicklingError. Without it, a pickle may run any code: do so only with files of your own.
    """
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return load(file, map_location, weights_only=weights_only)
    place = None if map_location is None else str(device_of(map_location))
    return _Unpickler(f, weights_only, place).load()


class _Unpickler(pickle.Unpickler):
    """An Unpickler that, if `careful`, knows tensors and plain containers alone, and puts tensors on `place`."""

    def __init__(self, file: BinaryIO, careful: bool, place: str | None) -> None:
        super().__init__(file)
        self._careful = careful
        self._place = place

    def find_class(self, module: str, name: str) -> Any:
        module = _MOVED.get(module, module)
        if self._careful and (module, name) not in _HARMLESS:
            raise pickle.UnpicklingError(f"load: the file asks for {module}.{name}; if you trust it, give weights_only=False")
        found = super().find_class(module, name)
        if (module, name) != _TENSOR:
            return found
        return lambda *parts: found(*parts[:_WHERE], _found_place(self._place or "".join(parts[_WHERE:]) or "cpu"))


def _found_place(name: str) -> str:
    """The name of a device that is here. Raises RuntimeError for another."""
    try:
        return str(device_of(name))
    except ValueError as problem:
        raise RuntimeError(f"load: a tensor's {problem}; with map_location='cpu' it comes to the CPU") from None
