"""Guards of classes: that no attribute that the call may have looked up was added, removed or replaced, in any base.

CPython gives each state of a class a version tag: a change of the class or of a base clears it, and the next look-up assigns a
new one. Comparing tags guards all attributes of all bases, and their order, at 40 ns a class. If a tag differs, attributes are
compared by name; if none that matters differs, the new tag is learned.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from operator import attrgetter

from genesis.capture.guards.lines import same

_OFFSET = 384  # of `tp_version_tag` in a type object of CPython 3.11 to 3.14, on 64-bit machines
_MISSING = object()
NUMBERS_DIFFER = "[*map(number_of, numbers)] != learned"  # then attributes are compared


class ClassGuards:
    """The classes whose attributes a call may have looked up, with their state then."""

    def __init__(self) -> None:
        self._kinds: list[type] = []
        self._added: set[type] = set()
        self._then: dict[type, dict[str, object]] = {}
        self._numbers: list[ctypes.c_uint] = []
        self._learned: list[int | None] = []  # None: not yet, or it has no number
        self._matters: Callable[[str], bool] = lambda name: True

    def add(self, kind: type) -> None:
        """Guard `kind`, its bases and its metaclass."""
        if kind in self._added or kind is object or kind is type:
            return
        self._added.add(kind)
        self._kinds.append(kind)
        for base in kind.__mro__:
            if base not in self._then:
                self._then[base] = dict(vars(base))
        self.add(type(kind))

    def settle(self, matters: Callable[[str], bool]) -> None:
        """Finish: no class is added any more; `matters` says which attributes count."""
        self._matters = matters
        bases = {base for kind in self._kinds for base in kind.__mro__[1:]}
        # A change of a base changes the tags of derived classes.
        kinds = [kind for kind in self._kinds if kind not in bases]
        self._kinds = kinds
        self._orders = [kind.__mro__ for kind in kinds]
        self._numbers = [ctypes.c_uint.from_address(id(kind) + _OFFSET) for kind in kinds]
        self._learned[:] = [None] * len(kinds)

    def check(self, constants: dict[str, object], first: int) -> list[str]:
        """The lines of a check whose names are in `constants`; the guard of the first class has the number `first`."""
        if not self._kinds:
            return []
        constants.update(numbers=self._numbers, learned=self._learned, number_of=attrgetter("value"), classes=self.changed)
        known = f"{NUMBERS_DIFFER} and " if _NUMBERED else ""
        return [f"if {known}(v := classes()) is not None: return {first} + v"]

    def changed(self) -> int | None:
        """The index of a class that has changed."""
        for k, kind in enumerate(self._kinds):
            if (number := self._numbers[k].value if _NUMBERED else 0) and number == self._learned[k]:
                continue
            if kind.__mro__ != self._orders[k]:
                return k
            type.__getattribute__(kind, "__hash__")  # a look-up, which assigns a tag to the class and its bases
            number = self._numbers[k].value if _NUMBERED else 0
            if any(self._differ(self._then[base], vars(base)) for base in kind.__mro__):
                return k
            self._learned[k] = number or None
        return None

    def _differ(self, then: Mapping[str, object], now: Mapping[str, object]) -> bool:
        for name in then.keys() | now.keys():
            old, new = then.get(name, _MISSING), now.get(name, _MISSING)
            if old is not new and self._matters(name) and not same(new, old):
                return True
        return False

    def labels(self) -> list[str]:
        """The descriptions of the classes' guards."""
        return [f"the class {kind.__name__}" for kind in self._kinds]


def _is_numbered() -> bool:
    """Whether version tags are at the expected offset."""
    class Base:
        first = 1

    class Derived(Base):
        pass

    seen: list[int] = []
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != 16:
        return False
    number = ctypes.c_uint.from_address(id(Derived) + _OFFSET)
    changes: list[tuple[type, str]] = [(Derived, "first"), (Base, "first"), (Derived, "second")]
    for kind, name in changes:
        setattr(kind, name, 2)
        seen.append(number.value)
        getattr(Derived, name)
        seen.append(number.value)
    return seen[::2] == [0, 0, 0] and 0 not in seen[1::2] and len({*seen[1::2]}) == 3


_NUMBERED = _is_numbered()
