"""`vars(tensor)`: the attributes that the user has set, without those of the library."""

from __future__ import annotations

from collections.abc import Set
from typing import Any


class UsersAttributes(dict[str, Any]):
    """The attributes that a user set on a tensor, which its `__dict__` shows. Writing an item sets the attribute."""

    def __init__(self, attributes: dict[str, Any], internal: Set[str]) -> None:
        super().__init__({name: value for name, value in attributes.items() if name not in internal})
        self._attributes = attributes

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._attributes[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._attributes[name]

    def pop(self, name: str, *default: Any) -> Any:  # type: ignore[override]
        """Remove an attribute and return its value; `default`, if given, where there is none."""
        if name in self:
            del self._attributes[name]
        return super().pop(name, *default)

    def update(self, *others: Any, **values: Any) -> None:
        """Set several attributes."""
        for name, value in dict(*others, **values).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """The value of an attribute; sets it if it is missing."""
        if name not in self:
            self[name] = default
        return self[name]

    def clear(self) -> None:
        """Remove all."""
        for name in [*self]:
            del self[name]


def users_attributes(tensor: Any) -> dict[str, Any]:
    """The attributes that a user has set on a tensor, which pickles keep."""
    return {name: value for name, value in tensor.__dict__.items() if not name.startswith("_")}
