"""The import hook: `torch` and its submodules are modules that export genesis' objects under PyTorch's names.

A name is looked up in the table of names, in the genesis modules that the table lists for this module, and, on demand, among
submodules. A name that PyTorch has and genesis lacks is a stand-in that raises when used; a name that PyTorch lacks too raises
AttributeError.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from inspect import isfunction
from types import ModuleType
from typing import Any

from genesis.as_torch.missing import missing
from genesis.as_torch.names import is_open, modules, names_of, version
from genesis.as_torch.stand_ins.torch_state import __version__
from genesis.as_torch.table import AMENDED, COMMON, EVERYTHING, MODULES, NAMES

ABSENT = object()


def is_module(path: str) -> bool:
    """Whether there is a module of that path, in PyTorch or in the table."""
    return path in modules() or _has_row(path) or is_open(path) or path in _packages()


def _has_row(path: str) -> bool:
    return path in MODULES or f"{path}.*" in MODULES


def source_of(path: str) -> Sequence[object]:
    """The objects whose attributes a module exports, in lookup order."""
    known = MODULES.get(path, MODULES.get(f"{path}.*"))
    while known is None and "." in path:
        path = path.rpartition(".")[0]
        known = MODULES.get(f"{path}.*")
    return known or ()


@cache
def _packages() -> frozenset[str]:
    """The paths of what has a name in the table."""
    return frozenset([path[:end] for path in (*MODULES, *NAMES) for end, letter in enumerate(path) if letter == "."])


def is_known(path: str, name: str) -> bool:
    """Whether PyTorch's module has the name, or may have it."""
    return name in names_of(path) or (is_open(path) and not name.startswith("__"))


def look_up(path: str, name: str) -> object:
    """Genesis' object for a name of a module; `ABSENT` if there is none."""
    full = f"{path}.{name}"
    if full in NAMES:
        return NAMES[full]
    known = is_known(path, name)
    if known and name in COMMON:
        return COMMON[name]
    if known or (path in EVERYTHING and not name.startswith("__")):
        for source in source_of(path):
            value = getattr(source, name, ABSENT)
            if value is ABSENT or _is_foreign(value) or (path == "torch" and _has_row(full) and isfunction(value)):
                continue  # `genesis.export` is a function, `torch.export` a module
            return value
    return ABSENT


def _is_foreign(value: object) -> bool:
    """Whether it is a module: modules of genesis are never exported themselves."""
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "genesis"


def has(sources: Iterable[object], path: str, name: str) -> bool:
    """Whether genesis has a name that PyTorch has."""
    if path == "torch.Tensor":
        return hasattr(COMMON["Tensor"], name)
    full = f"{path}.{name}"
    return look_up(path, name) is not ABSENT or _has_row(full) or (is_module(full) and bool(source_of(full)))


class Door(ModuleType):
    """A module of PyTorch, implemented by genesis."""

    def __getattr__(self, name: str) -> Any:
        path = self.__name__
        found = look_up(path, name)
        if found is ABSENT and is_module(f"{path}.{name}") and not name.startswith("__"):
            __import__(f"{path}.{name}")
            found = sys.modules[f"{path}.{name}"]
        if found is ABSENT and is_known(path, name):
            found = missing(f"{path}.{name}")
        if found is ABSENT:
            raise AttributeError(f"module {path!r} has no attribute {name!r}")
        vars(self)[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Replace an exported name, also where genesis itself looks it up: layers then call the user's function.

        Importing a submodule keeps a name that PyTorch's package binds to something else: `autograd.gradcheck` is a function.
        """
        shown = vars(self).get(name, ABSENT)
        if isinstance(value, Door) and not isinstance(shown, Door) and shown is not ABSENT:
            return
        for source in source_of(self.__name__) if shown is not ABSENT else ():
            if isinstance(source, ModuleType) and vars(source).get(name, ABSENT) is shown:
                setattr(source, name, value)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *(name for name in names_of(self.__name__) if not name.startswith("_"))})


class _Opens(Loader):
    """Makes the module, with the names that genesis implements."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Door(spec.name, f"PyTorch's {spec.name}, of genesis.")

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "torch":
            vars(module)["__version__"] = __version__
            vars(module)["torch"] = module  # some annotations use `torch.torch.Tensor`
        for name in names_of(module.__name__):  # now, because adding an attribute later would fail the guards of compiled calls
            value = look_up(module.__name__, name)
            if value is not ABSENT:
                vars(module)[name] = value
        source = next((s for s in source_of(module.__name__) if isinstance(s, ModuleType)), None)
        vars(module)["__file__"] = getattr(source, "__file__", __file__)


def _amended(spec: ModuleSpec | None, names: dict[str, Any]) -> ModuleSpec | None:
    """A module's spec whose loader gives the module these names, too, once it has run."""
    loader: Any = spec and spec.loader
    if loader is not None:
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            vars(module).update(names)

        loader.exec_module = exec_module
    return spec


class _Torch(Distribution):
    """The distribution metadata for libraries that check PyTorch's version."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {version()}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return path


class Finder(MetaPathFinder):
    """The finder of `torch`, `functorch` and their submodules, before Python looks for files."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname in AMENDED:
            return _amended(PathFinder.find_spec(fullname, path, target), AMENDED[fullname])
        if fullname.partition(".")[0] not in ("torch", "functorch") or not is_module(fullname):
            return None
        return ModuleSpec(fullname, _Opens(), origin="genesis.as_torch", is_package=True)

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        """The distribution `torch`, for `importlib.metadata`."""
        return [_Torch()] if context.name in (None, "torch") else []
