"""The registry of a module's members: which of its attributes are parameters, buffers and submodules, in order.

The values are plain attributes, so reading one costs no more than any attribute. The registry has only names, one table per
kind, under PyTorch's names for the tables. An attribute that was set past `Module.__setattr__` is in no table and not a member.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, MutableMapping, MutableSet, ValuesView
from typing import Any
from weakref import ref as weakref

from genesis.ir.annotations import Attributes
from genesis.tensor.handle import Tensor

TABLES = "_parameters", "_buffers", "_modules"


class Members(MutableMapping[str, Any]):
    """The members of one kind of the module `owner()`, as a dict by name. Writing an item sets the attribute and makes it a
    member, deleting one deletes the attribute; neither calls methods of the module's class.

    A module's tables refer to it weakly, so that it is freed without garbage collection. After copying or unpickling a module's
    attributes, a table has no owner or a wrong one: `members_of` corrects it.
    """

    __slots__ = ("_owner", "names")

    def __init__(self, names: dict[str, bool], owner: Callable[[], Any] = lambda: None) -> None:
        self.names = names  # in order -> whether it is in the state dict
        self._owner = owner

    @property
    def attributes(self) -> dict[str, Any]:
        """The owner's attributes; empty without an owner."""
        owner = self._owner()
        return {} if owner is None else owner.__dict__

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        return self.attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        attributes = self.attributes
        if name not in self.names:
            attributes.pop(name, None)
            self.names[name] = True
        attributes[name] = value

    def __delitem__(self, name: str) -> None:
        del self.names[name]
        del self.attributes[name]

    def __contains__(self, name: object) -> bool: return name in self.names and name in self.attributes
    def __iter__(self) -> Iterator[str]: return iter(self.copy())
    def __len__(self) -> int: return len(self.copy())

    def copy(self) -> dict[str, Any]:
        """A dict of the members."""
        attributes = self.attributes
        return {name: attributes[name] for name in self.names if name in attributes}

    def keys(self) -> KeysView[str]:
        """The names."""
        return self.copy().keys()

    def values(self) -> ValuesView[Any]:
        """The members."""
        return self.copy().values()

    def items(self) -> ItemsView[str, Any]:
        """(name, member)."""
        return self.copy().items()

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last (name, member)."""
        name = next(reversed(self.copy()), None)
        if name is None:
            raise KeyError("popitem: there are no members")
        return name, self.pop(name)

    def become(self, members: Mapping[str, Any]) -> None:
        """Replace all members by these."""
        members, persistent = dict(members), dict(self.names)
        for name in self.keys() - members.keys():
            del self[name]
        self.names.clear()
        self.names.update({name: persistent.get(name, True) for name in members})
        self.attributes.update(members)

    def __repr__(self) -> str: return repr(self.copy())
    def __reduce__(self) -> tuple[type[Members], tuple[dict[str, bool]]]: return Members, (dict(self.names),)


class NonPersistent(MutableSet[str]):
    """The names of a table that are not in the state dict. Only members can be added."""

    def __init__(self, names: dict[str, bool]) -> None:
        self._names = names

    def __contains__(self, name: object) -> bool:
        return self._names.get(name, True) is False  # type: ignore[call-overload]

    def __iter__(self) -> Iterator[str]: return iter([name for name, persistent in self._names.items() if not persistent])
    def __len__(self) -> int: return sum(not persistent for persistent in self._names.values())

    def add(self, value: str) -> None:
        """Leave a member out of the state dict."""
        if value in self._names:
            self._names[value] = False

    def discard(self, value: str) -> None:
        """Put a member back into the state dict."""
        if value in self._names:
            self._names[value] = True

    def copy(self) -> set[str]:
        """A set of the names."""
        return {*self}

    def __repr__(self) -> str:
        return repr(self.copy())


def members_of(module: Any, table: str) -> Members:
    """The members of `module` in one of the TABLES."""
    attributes = module.__dict__
    found = attributes.get(table)
    if found.__class__ is Members:
        owner = found._owner()
        if owner is module or (owner is not None and owner.__dict__ is attributes):
            return found  # type: ignore[no-any-return]
    made = attributes[table] = Members(_names(module, table, found), weakref(module))
    if isinstance(found, Mapping) and not isinstance(found, Members):
        attributes.update(found)
    return made


def pairs_of(module: Any, table: str) -> list[tuple[str, Any]]:
    """(name, member) pairs of `module` in one of the TABLES."""
    attributes, names = module.__dict__, members_of(module, table).names
    return [(name, attributes[name]) for name in names if name in attributes] if names else []


def make_tables(module: Any) -> None:
    """Give a module its missing tables."""
    attributes, owner = module.__dict__, weakref(module)
    for table in TABLES:
        if table not in attributes:
            attributes[table] = Members(_names(module, table, None), owner)


def _names(module: Any, table: str, found: object) -> dict[str, bool]:
    """The names for a module's new table, from another module's table or a dict of members."""
    if isinstance(found, Members):
        return dict(found.names)
    if isinstance(found, Mapping):
        hidden = module.__dict__.get("_non_persistent_buffers_set", ())
        return {name: name not in hidden for name in found}
    return dict(module._declared_buffers) if table == "_buffers" else {}


def table_of(module: Any, name: str) -> str | None:
    """The table that lists an attribute; None if it is not a member."""
    return next((table for table in TABLES if name in members_of(module, table).names), None)


def make_member(module: Any, table: str, name: str, value: Any) -> None:
    """Set the attribute `name` of a module to `value` and make it a member of this kind only."""
    attributes, names = module.__dict__, members_of(module, table).names
    if name not in names:
        forget_member(module, name)
        attributes.pop(name, None)  # guards of compiled calls see a new member by the order of the attributes
        names[name] = True
    attributes[name] = value


def forget_member(module: Any, name: str) -> None:
    """Remove the attribute `name` from all tables."""
    for table in TABLES:
        members_of(module, table).names.pop(name, None)


def own_attributes(module: Any, attributes: Attributes, members: Mapping[str, Mapping[str, bool]]) -> None:
    """Set a module's attributes, and each table's names."""
    module.__dict__.update(attributes)
    for table, names in members.items():
        module.__dict__[table] = Members(dict(names), weakref(module))


def is_set_by_class(kind: type, name: str) -> bool:
    """Whether a class has a descriptor that handles assignment; a read-only property just hides a parameter."""
    descriptor = getattr(kind, name, None)
    return hasattr(type(descriptor), "__set__") and getattr(descriptor, "fset", descriptor) is not None


def check_kind(table: str | None, name: str, value: object) -> None:
    """Raise TypeError for a value that cannot be a member of the name's table, if it is in one."""
    if table is None or value is None or (table == "_buffers" and isinstance(value, Tensor)):
        return
    kind, want = {"_parameters": ("parameter", "nn.Parameter"), "_buffers": ("buffer", "a tensor"),
                  "_modules": ("module", "nn.Module")}[table]
    raise TypeError(f"cannot assign {type(value).__name__} as {kind} {name!r}: want {want} or None")


def register(module: Any, table: str, name: str, value: object, kind: type) -> None:
    """`make_member` for a value of this kind, or None, under a name that no other attribute has.

    Raises TypeError for other values and names that are no text, KeyError for names that exist or that a path cannot contain.
    """
    if not isinstance(value, kind | None):
        check_kind(table, name, value)
    if not isinstance(name, str):
        raise TypeError(f"a member's name is {name!r:.40}; want a str, one part of a path")
    if not name or "." in name:
        raise KeyError(f"name {name!r} is empty or has a '.'; want one part of a path")
    if name not in members_of(module, table).names and hasattr(module, name):
        raise KeyError(f"attribute {name!r} already exists")
    make_member(module, table, name, value)
