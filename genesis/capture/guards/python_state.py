"""Guards: one generated function that checks all of the Python state that a recorded call could see.

Values are compared with those from the beginning of the call, so running the check after the call detects calls that change
what they read. A call that meets something it does not understand is not replayed.
"""

from __future__ import annotations

import abc
import functools
import importlib.util
import sys
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from genesis.capture.guards.attributes import MISSING, Attributes
from genesis.capture.guards.contents import UNKNOWN
from genesis.capture.guards.kinds import is_librarys
from genesis.capture.guards.lines import check_function
from genesis.capture.guards.opcodes import ASKING, CodeNames, names_in


class Guards(Attributes):
    """The lines of the function, their constants, and the objects whose attributes are guarded by name."""

    # ---- code ----

    def code(self, code: CodeType, own: bool, of_any: bool) -> None:
        """`code` is about to run: guard the attributes that it names, of all objects, and its functions' cells.

        `own`: it is user code or runs on its behalf, and may look attributes up by computed names. `of_any`: those of the
        variables that it names as well.
        """
        self.seen.ran.add(code)
        names = names_in(code)
        self._open(names)
        if own:
            if names.unknown is not None:
                name, line = names.unknown
                self._refuse(f"{code.co_name}, line {line}, runs the instruction {name}, which is not understood")
            self._keep(names)
            self.seen.compares |= names.compares
            self.seen.catches |= names.catches
            self.seen.tested_for |= names.absent
            if names.dynamic or of_any:
                self.look_up_any()
        strings = (c for c in code.co_consts if own and (names.dynamic or names.owners) and isinstance(c, str))
        self._look_for({*names.attributes, *strings}, own)
        for function in self.functions.get(code, ()):
            self._cells(function)

    def asked(self, owner: object, name: object) -> None:
        """Code looks up an attribute by a computed name: guard it like one that the code names."""
        if type(name) is str:
            names = CodeNames(attributes={name}, absent={name})
            self._open(names)
            self._keep(names)
            self.seen.tested_for |= names.absent
            self._look_for(names.attributes, True)
        elif id(owner) in self._entered:
            self.whole(owner)
        else:
            self.look_up_any()

    def signature(self, function: object) -> bool:
        """Guard what `inspect.signature` reads in a function; False if it reads more, as of a class."""
        functions, inner = [], function
        while isinstance(inner, FunctionType | MethodType):
            functions.append(inner)
            inner = getattr(inner, "__wrapped__", None)
        for one in functions if inner is None else ():
            self.enter(one, label := f"the signature of {one.__name__}")
            for name in ("__signature__", "__wrapped__", "__annotations__"):
                self.seen.tested_for.add(name)
                self._attribute(getattr(one, "__func__", one), name, label)
        return inner is None

    def look_up_any(self) -> None:
        """Guard all attributes of all objects."""
        if not self.seen.is_dynamic:
            self.seen.is_dynamic = True
            for value, label in [*self._objects]:
                self._whole(value, label)

    def abstract_classes(self) -> None:
        """The call tested for an abstract class: guard the registry of virtual subclasses."""
        if ("abstract", "") not in self._imports:
            self._imports.add(("abstract", ""))
            self.constants["cache_token"] = abc.get_cache_token
            self.fail_if(f"cache_token() != {abc.get_cache_token()}", "classes that were registered for abstract ones")

    def _open(self, names: CodeNames) -> None:
        """Guard the contents of Python modules' tables that code now does more with than search."""
        self.seen.read |= (names.globals | names.attributes) - names.called - names.searched
        for name in self.seen.read.intersection(self._tables):
            for value, label in self._tables.pop(name):
                self.enter(value, label)

    def _keep(self, names: CodeNames) -> None:
        self.seen.mentioned |= names.globals | names.attributes
        self.seen.called |= names.globals | names.attributes
        self.seen.handed_on |= (names.globals | names.attributes) - names.called
        for name in self.seen.handed_on.intersection(self._unknown_functions):
            self._refuse(f"{self._unknown_functions.pop(name)} is handed on, {UNKNOWN}")

    def _look_for(self, names: set[str], own: bool) -> None:
        """Guard the attributes of these names, of all objects; `own`: they are in user code."""
        fresh = names - (self.seen.users_attributes if own else self.seen.attributes)
        self.seen.attributes |= names
        if own:
            self.seen.users_attributes |= names
        for value, label in [*self._objects]:
            self._attributes(value, fresh, label)

    def meet(self, value: object) -> None:
        """A method of `value` runs, which no guarded name leads to: the library has it, or C code has made it for the call."""
        self.met = self.met or not (isinstance(value, type) or self.has_entered(value))
        self.enter(value, type(value).__name__)

    def has_entered(self, value: object) -> bool:
        """Whether `value` is from before the call, with guarded contents."""
        return id(value) in self._entered

    def globals_of(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Guard what the names in `code` mean in its module."""
        name, names = self.constant(namespace), names_in(code)
        self._open(names)
        self._keep(names)
        for key in names.globals:
            if (id(namespace), key) in self._guarded:
                continue
            self._guarded.add((id(namespace), key))
            if key in ASKING and namespace.get(key, _builtins.get(key)) is not ASKING[key]:
                self.look_up_any()
            if key in namespace:
                value, expression = namespace[key], f"{name}[{key!r}]"
                are_classes = type(value) is set and all(isinstance(one, type) for one in value)
                if are_classes and all(type(one).__eq__ is object.__eq__ for one in value):  # told apart by identity
                    self.table(expression, value, key, f"global {key}")
                else:
                    self.variable(expression, value, f"global {key}")
                continue
            self._lacking_globals.setdefault(id(namespace), (namespace, set()))[1].add(key)
            if key not in self._builtins:
                value = self._builtins[key] = _builtins.get(key, MISSING)
                if value is not MISSING:
                    self.enter(value, f"global {key}")
        for key, level in names.imports:
            self._imported(key, level, namespace)

    def library_globals(self, code: CodeType, namespace: dict[str, object]) -> None:
        """Guard the functions and modules that a layer's code names, as users may replace some."""
        name, names = self.constant(namespace), names_in(code)
        self._open(names)
        for key in names.globals & namespace.keys():
            value = namespace[key]
            if not isinstance(value, FunctionType | ModuleType):
                continue
            if (id(namespace), key) not in self._guarded:
                self._guarded.add((id(namespace), key))
                self.is_still(f"{name}[{key!r}]", value, f"{key} of {namespace['__name__']}")
            for attribute in names.attributes if isinstance(value, ModuleType) else ():
                found = getattr(value, attribute, None)  # a module may create it at the first look-up
                if isinstance(found, FunctionType) and (id(value), attribute) not in self._guarded and attribute in vars(value):
                    self._guarded.add((id(value), attribute))
                    guard = self.is_still if is_librarys(found.__module__) else self.visit
                    guard(f"{self.constant(vars(value))}[{attribute!r}]", found, f"{key}.{attribute}")

    def _imported(self, key: str, level: int, namespace: dict[str, object]) -> None:
        if level:
            key = importlib.util.resolve_name("." * level + key, str(namespace.get("__package__")))
        for end in [*[k for k, letter in enumerate(key) if letter == "."], len(key)]:
            part = key[:end]
            if part in sys.modules and ("import", part) not in self._imports:
                self._imports.add(("import", part))
                self.fail_if(f"{self.constant(sys.modules)}.get({part!r}) is not {self.constant(sys.modules[part])}",
                             f"the module {part}")
                self.enter(sys.modules[part], part)

    # ---- the check ----

    @functools.cached_property
    def failing(self) -> Callable[[], int | None]:
        """The function that returns the number of the guard that fails, or None. No guard may be added after it."""
        self._guard_missing()
        for namespace, names in self._lacking_globals.values():
            known = self.constant((*names,))
            self.fail_if(f"not {self.constant(namespace)}.keys().isdisjoint({known})", "a global that is new")
        if self._builtins:
            found = self.constant([None if value is MISSING else value for value in self._builtins.values()])
            asked = f"map({self.constant(_builtins)}.get, {self.constant((*self._builtins,))})"
            self.fail_if(f"any(map(is_not, {asked}, {found}))", "a builtin")
        self._classes.settle(self._matters)
        self.state_lines = [*self.lines, *self._classes.check(self.constants, len(self.labels))]
        self.labels += self._classes.labels()
        return check_function("def check():", self.state_lines, ["return None"], {**self.constants})

    def _matters(self, name: str) -> bool:
        """Whether the call may have looked for a class's attribute of that name."""
        is_special = name.startswith("__") and name.endswith("__")
        return is_special or name in self.seen.attributes or self.seen.is_dynamic or bool(self._guarded_whole)


_builtins: dict[str, object] = vars(sys.modules["builtins"])
