"""Where CPython stores the members of objects: words that machine code compares instead of looking names up.

No layout is assumed: each offset is measured at import on objects with known contents. A member that is not found has no word,
and is looked up as Python does.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sized
from types import MemberDescriptorType

import numpy as np

_WORD = 8
_POINTERS = (6, 16)  # the types of a member that is an object: T_OBJECT and T_OBJECT_EX
_OF_MEMBER, _TYPE, _OFFSET = 40, 8, 16  # in a descriptor, the address of its member; in a member, its type and its offset


def word_at(address: int) -> int:
    """The word at an address."""
    return ctypes.c_uint64.from_address(address).value


def address_of(values: np.ndarray) -> int:
    """The address of an array's first element, in an eighth of the time that NumPy takes to say it."""
    return values.ctypes.data if _VALUES is None else word_at(id(values) + _VALUES)


def attribute_word(owner: object, name: str) -> int | None:
    """The address of the word that holds the address of an attribute, 0 where a function has none; None if there is no such
    word.
    """
    kind = type(owner)
    offset = _PARTS.get((kind, name))
    if offset is None and kind.__getattribute__ is object.__getattribute__:
        offset = slot_offset(kind, name)
    return None if offset is None else id(owner) + offset


def slot_offset(kind: type, name: str) -> int | None:
    """The offset of a slot's attribute in instances of a class; None for any other attribute."""
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    if not _SLOTS_ARE_KNOWN or not isinstance(found, MemberDescriptorType):
        return None
    return _member_offset(found)


def size_word(container: Sized) -> int | None:
    """The address of the word that holds the length of a list, a dict or a set."""
    offset = _SIZES.get(type(container))
    return None if offset is None else id(container) + offset


def _member_offset(descriptor: MemberDescriptorType) -> int | None:
    member = word_at(id(descriptor) + _OF_MEMBER)
    return word_at(member + _OFFSET) if ctypes.c_int.from_address(member + _TYPE).value in _POINTERS else None


def _words(thing: object) -> array[int]:
    """The words of an object."""
    size = type(thing).__basicsize__ // _WORD
    return array("Q", ctypes.string_at(id(thing), _WORD * size))


def _only_offset(thing: object, word: int) -> int | None:
    """The offset of a word in an object, if it occurs once."""
    indices = [k for k, found in enumerate(_words(thing)) if found == word and k > 1]
    return _WORD * indices[0] if len(indices) == 1 else None


def _parts() -> dict[tuple[type, str], int]:
    """The offsets of functions' and cells' parts."""
    def function(first: object = _words, *, second: object = _words) -> object:
        return function

    [cell] = function.__closure__  # type: ignore[misc]
    owned = [(function, "__code__"), (function, "__defaults__"), (function, "__kwdefaults__"), (cell, "cell_contents")]
    found = {(type(owner), name): _only_offset(owner, id(getattr(owner, name))) for owner, name in owned}
    return {part: offset for part, offset in found.items() if offset is not None}


def _sizes() -> dict[type, int]:
    """The offsets of containers' lengths: three of five elements are left."""
    found: dict[type, int] = {}
    of_list, of_dict, of_set = [*range(11, 16)], dict.fromkeys(range(11, 16)), {*range(11, 16)}
    del of_list[3:]
    for key in (12, 13):
        del of_dict[key]
        of_set.remove(key)
    for container in (of_list, of_dict, of_set):
        offset = _only_offset(container, 3)
        if offset is not None:
            found[type(container)] = offset
    return found


class _Slotted:
    __slots__ = ("first", "second")


def _are_slots_known() -> bool:
    thing = _Slotted()
    thing.first, thing.second = "one", "two"  # type: ignore[attr-defined]
    members = [vars(_Slotted)[name] for name in _Slotted.__slots__]
    return [_member_offset(member) for member in members] == [_only_offset(thing, id(value)) for value in ("one", "two")]


def _version_offset() -> int | None:
    """The offset of a dict's version: a number that is unique among dicts and that each change replaces."""
    names: dict[str, object] = {"one": 1, "two": 2}
    seen = [_words(dict(names)), _words(names)]
    changes: list[Callable[[], object]] = [
        lambda: names.update(one=2), lambda: names.update(three=3), lambda: names.pop("two"), names.clear]
    for change in changes:
        change()
        seen.append(_words(names))
        names.get("one"), len(names), [*names]
        if _words(names)[2:] != seen[-1][2:]:
            return None
    indices = [k for k, words in enumerate(zip(*seen, strict=True)) if len({*words}) == len(seen)]
    return _WORD * indices[0] if len(indices) == 1 else None


_PARTS, _SIZES, _SLOTS_ARE_KNOWN = _parts(), _sizes(), _are_slots_known()
_AN_ARRAY = np.empty(1)
_VALUES = _only_offset(_AN_ARRAY, _AN_ARRAY.ctypes.data)
VERSION = _version_offset()  # of dicts; None from CPython 3.13 on
