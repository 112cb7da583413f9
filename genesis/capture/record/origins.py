"""The origin of a frame's code: the user, a layer, genesis or the standard library."""

from __future__ import annotations

import os
import sys
from types import FrameType

from genesis.capture.guards.kinds import is_librarys
from genesis.ir import made_methods
from genesis.nn.module import Module

_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = os.sep + "site-packages" + os.sep
LIBRARY = ("genesis", "layer")
origins: dict[str, str] = {}  # by file


def origin_of(frame: FrameType) -> str:
    """The origin of a frame's code: "user", "layer" (`nn`, or a file with modules), "genesis" or "standard" (Python, NumPy)."""
    name = frame.f_code.co_filename
    origin = origins.get(name)
    if origin is None:
        module = str(frame.f_globals.get("__name__"))
        origin = _origin(name, module)
        # An origin per file; but generated methods belong to the modules of their classes.
        if name not in ("<string>", made_methods.__file__) and (origin == "standard" or not name.startswith("<")):
            origins[name] = origin
    return origin


def _origin(name: str, module: str) -> str:
    if module.startswith("llvmlite."):  # which links kernels
        return "genesis"
    if is_librarys(module):
        return "layer" if _has_layers(module) and not name.startswith("<") else "genesis"
    if name == "<string>":
        return "standard" if module.startswith("namedtuple_") else "user"
    if name.startswith("<frozen") or (name.startswith(_STANDARD) and _INSTALLED not in name):
        return "standard"
    return "standard" if module.partition(".")[0] == "numpy" else "user"


def _has_layers(module: str) -> bool:
    """Whether a module of the library has layers: guards compare the attributes that its code names."""
    defined = [thing for thing in vars(sys.modules[module]).values() if getattr(thing, "__module__", None) == module]
    return module.startswith("genesis.nn.") or any(
        isinstance(thing, type) and (issubclass(thing, Module) or hasattr(thing, "forward")) for thing in defined)


def users_frame() -> FrameType | None:
    """The nearest frame that runs the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and origin_of(frame) != "user":
        frame = frame.f_back
    return frame
