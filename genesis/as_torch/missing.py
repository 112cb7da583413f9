"""Names that PyTorch has and genesis lacks: importing them works, using them raises an error with the name."""

from __future__ import annotations

from abc import ABCMeta
from functools import cache
from typing import Any, NoReturn

HINT = "`python -m genesis.as_torch --check FILES` lists all that files use and genesis lacks"


class MissingError(NotImplementedError):
    """A name of PyTorch was used that genesis lacks."""


def complain(path: str) -> NoReturn:
    """Raise MissingError for a path such as "torch.sparse.mm"."""
    raise MissingError(f"{path}: genesis has no such thing. Leave it out or replace it; {HINT}")


class Missing(ABCMeta):
    """The metaclass of stand-ins. They are classes, so that annotations, `isinstance` and subclasses can use them.

    Calling one, or a class derived from it, raises MissingError. Nothing is an instance of one or equals one.
    """

    _path: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        complain(cls._path)

    def __getattr__(cls, name: str) -> Missing:
        if name.startswith("_"):
            raise AttributeError(f"{cls._path}.{name}: genesis has no {cls._path}")
        return missing(f"{cls._path}.{name}")

    def __getitem__(cls, arguments: object) -> Missing:
        return cls  # as an annotation

    def __iter__(cls) -> NoReturn:
        complain(cls._path)

    def __instancecheck__(cls, instance: object) -> bool:
        return False

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls in subclass.__mro__

    def __repr__(cls) -> str:
        return f"<{cls._path}, which genesis lacks>"

    def __str__(cls) -> str:
        return cls._path  # some libraries derive a dtype's name from it


@cache
def missing(path: str) -> Missing:
    """The stand-in for a path."""
    home, _, name = path.rpartition(".")
    return Missing(name, (), {"_path": path, "__module__": home})
