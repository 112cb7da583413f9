"""Module classes that define `__getattr__`, which PyTorch calls for members, or that call `Module.__getattr__`."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from genesis.nn.members import table_of
from genesis.nn.state import Stateful
from genesis.tensor.handle import Tensor


class WithGetattr:
    """The last base of a class whose methods call `__getattr__`: it returns the instance's attribute.

    Other classes do not have it: a class with such a method reads all attributes more slowly, even if it is never called.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        attributes = object.__getattribute__(self, "__dict__")
        if name not in attributes:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return attributes[name]


class MembersByGetattr(WithGetattr):
    """The last base of a class with its own `__getattr__`: that is called for members as if they were missing, as in
    PyTorch."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if isinstance(value, Stateful | Tensor) and table_of(self, name) is not None and name in self.__dict__:
            return type(self).__getattr__(self, name)
        return value


def base_for(cls: type) -> type | None:
    """The further base that a new module class needs, if any."""
    asks = getattr(cls, "__getattr__", None)
    if asks is None:
        functions = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
        return WithGetattr if any("__getattr__" in function.__code__.co_names for function in functions) else None
    return None if issubclass(cls, MembersByGetattr) or asks is WithGetattr.__getattr__ else MembersByGetattr
