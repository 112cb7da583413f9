"""The names in the code that runs in a recorded call, collected code object by code object."""

from __future__ import annotations

from types import CodeType

# Methods that Python calls without naming them.
_SPECIAL = frozenset({
    "__init__", "__new__", "__call__", "__enter__", "__exit__", "__getitem__", "__setitem__", "__delitem__", "__contains__",
    "__iter__", "__next__", "__len__", "__bool__", "__int__", "__float__", "__index__", "__getattr__", "__setattr__",
    "__delattr__", "__get__", "__set__", "__repr__", "__str__", "__format__",
})


class SeenCode:
    """What the code that has run so far can look up by name.

    Attributes:
        ran: the code objects.
        attributes: names of attributes in any code; `users_attributes`: those in the user's code.
        mentioned: names of globals and attributes in the user's code; `handed_on`: those that it does more with than call.
        read: names that any code does more with than call or search.
        tested_for: names that need not exist.
        is_dynamic: any attribute may be looked up.
        catches: the call may continue after an exception.
        compares: it compares objects by identity.
        called: names of the library's functions that the user's code may call.
    """

    def __init__(self) -> None:
        self.ran: set[CodeType] = set()
        self.attributes: set[str] = set()
        self.users_attributes: set[str] = set()
        self.mentioned: set[str] = set()
        self.handed_on: set[str] = set()
        self.read: set[str] = set()
        self.tested_for: set[str] = set()
        self.is_dynamic = self.catches = self.compares = False
        self.called: set[str] = {*_SPECIAL}
