"""A module's parameters, modules and buffers as dictionaries: views of its attributes, under PyTorch's names of them."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any


class Members(MutableMapping[str, Any]):
    """The attributes of `owner` that `is_member` holds for, by name and in order. Writing an item sets the attribute, as
    `base` does: a subclass whose own `__setattr__` or `__delattr__` write items does not call itself.
    """

    def __init__(self, base: Any, owner: Any, is_member: Callable[[str, object], bool]) -> None:
        self._base, self._owner, self._is_member = base, owner, is_member

    def __getitem__(self, name: str) -> Any:
        attributes = vars(self._owner)
        if name not in attributes or not self._is_member(name, attributes[name]):
            raise KeyError(name)
        return attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._base.__setattr__(self._owner, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._base.__delattr__(self._owner, name)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._members()])

    def keys(self) -> KeysView[str]:
        """The names, which print as a dict's."""
        return dict(self._members()).keys()

    def values(self) -> ValuesView[Any]:
        """The members, which print as a dict's."""
        return dict(self._members()).values()

    def items(self) -> ItemsView[str, Any]:
        """(name, member), which print as a dict's."""
        return dict(self._members()).items()

    def _members(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in vars(self._owner).items() if self._is_member(name, value)]

    def become(self, members: Mapping[str, Any]) -> None:
        """Have these members and no others."""
        for name in self.keys() - members.keys():
            del self[name]
        self.update(members)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self._members()))
