"""Members of modules whose class has a `__getattr__`: it is asked for them, as in PyTorch, where it is what finds them."""

from __future__ import annotations

from typing import Any

from genesis.nn.parameter import Parameter
from genesis.nn.state import Stateful
from genesis.tensor.handle import Tensor


class AskedForMembers:
    """The last base of such a class. `super().__getattr__(name)` gives what the instance has.

    Other classes go without: an attribute that is looked up by functions of Python is slower than one that is found.
    """

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if isinstance(value, Stateful | Tensor):
            attributes = object.__getattribute__(self, "__dict__")
            kept = isinstance(value, Stateful | Parameter) or name in object.__getattribute__(self, "_persistence")
            if kept and name in attributes:
                return type(self).__getattr__(self, name)
        return value

    def __getattr__(self, name: str) -> Any:
        attributes = object.__getattribute__(self, "__dict__")
        if name not in attributes:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        return attributes[name]
