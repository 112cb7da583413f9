"""Guards of attributes: of objects, classes and modules, with where each is found, or that it is missing."""

from __future__ import annotations

import logging
import sys
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType, SimpleNamespace

from genesis.capture.guards.contents import CALLABLES, PLAIN, Contents
from genesis.capture.guards.kinds import TUPLE_FIELD, is_librarys, slots_of, unknown_base
from genesis.capture.guards.known_functions import Builtin
from genesis.ir.described import Described
from genesis.nn.members import Members
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor


class Attributes(Contents):
    """The part of `Guards` for attributes: every name in every function that ran, on every object met."""

    def _class(self, value: type, label: str) -> None:
        base = unknown_base(value)
        if base is not None:
            self._refuse(f"{label} is the class {base.__module__}.{base.__qualname__}, which is not understood")
        elif value.__flags__ & _HEAP_TYPE:
            self._classes.add(value)
            self._objects.append((value, label))
            # Operators and calls of the class look names up that no code contains.
            special = {name for base in value.__mro__ if not is_librarys(base.__module__) for name, found in vars(base).items()
                       if name.startswith("__") and (isinstance(found, FunctionType) or function_of(found) is not None)}
            self._attributes(value, special | self.seen.attributes, label)
            if self.seen.is_dynamic:
                self._whole(value, label)

    def _object(self, value: object, label: str) -> None:
        if isinstance(value, Members):  # its values are the module's attributes
            self.fail_if(f"[*{self.constant(value)}.names] != {self.constant([*value.names])}", f"the names of {label}")
            return
        self._objects.append((value, label))
        if not isinstance(value, ModuleType | FunctionType):
            self.fail_if(f"{self.constant(value)}.__class__ is not {self.constant(type(value))}", f"the class of {label}")
            self.enter(type(value), f"the class of {label}")
        # Loops (`for layer in self`) look layers and parameters up without names, and the library's own code, which is not
        # entered, looks up attributes of its declarations.
        if isinstance(value, Module | Described):
            attributes = vars(value)
            name = self._dict_of(value)
            self._fixed_names.add(id(value))  # absent names need no further guard
            self.require_keys(name, [*attributes], f"the attributes of {label}")
            for key, item in attributes.items():
                if isinstance(item, Tensor | Module) or isinstance(value, Described):
                    self.visit(f"{name}[{key!r}]", item, f"{label}.{key}")
                    self._guarded.add((id(value), key))
        # Every name in every function that ran, on every object met: more guards than needed, but none is missing.
        self._attributes(value, {*self.seen.attributes}, label)
        if self.seen.is_dynamic or isinstance(value, SimpleNamespace) or any(
            kind.__module__ == "collections" for kind in type(value).__mro__
        ):
            self._whole(value, label)

    def _whole(self, value: object, label: str) -> None:
        """Guard all attributes of an object; those of a class are guarded as a whole, but for what is in them."""
        if isinstance(value, ModuleType):
            if self.seen.is_dynamic or id(value) in self._guarded_whole:
                names, found = self.constant(vars(value)), self.constant([*vars(value).values()])
                self.fail_if(f"len({names}) != {len(vars(value))} or any(map(is_not, {names}.values(), {found}))",
                             f"the attributes of {label}")
                top = value.__name__.partition(".")[0]
                for attribute in () if top in _PUBLIC or top in sys.stdlib_module_names else [*vars(value)]:
                    self._attribute(value, attribute, label)
        elif isinstance(value, type):
            for base in value.__mro__:
                for attribute in [*vars(base)] if base.__flags__ & _HEAP_TYPE and not is_librarys(base.__module__) else ():
                    self._attribute(value, attribute, label)
        elif isinstance(attributes := getattr(value, "__dict__", None), dict) and not isinstance(value, FunctionType):
            self.fail_if(f"len({self._dict_of(value)}) != {len(attributes)}", f"the attributes of {label}")
            for attribute, item in [*attributes.items()]:
                if isinstance(value, _LOGGING) and (unknown_base(type(item)) is not None or attribute in _OF_LOGGING):
                    self.is_still(f"{self._dict_of(value)}[{attribute!r}]", item, f"{label}.{attribute}")
                elif isinstance(attribute, str):
                    self._attribute(value, attribute, label)
        for attribute in () if isinstance(value, type | ModuleType) else slots_of(type(value)):
            self._attribute(value, attribute, label)

    def _attributes(self, owner: object, names: set[str], label: str) -> None:
        """`_attribute` for several names. Most objects lack most of them, which is noted at once."""
        if isinstance(owner, type):
            names = names & (self._names_in(owner) | self._names_in(type(owner)) | {"__name__", "__qualname__"})
        elif not isinstance(owner, ModuleType):
            absent = names - self._names_in(type(owner)) - {"__dict__"}
            if isinstance(attributes := getattr(owner, "__dict__", None), dict):
                absent -= attributes.keys()
            self._not_found(owner, absent, label)
            names = names - absent
        for attribute in names:
            self._attribute(owner, attribute, label)

    def _names_in(self, kind: type) -> set[str]:
        """All names in a class and its bases."""
        found = self._names_of.get(kind)
        if found is None:
            found = self._names_of[kind] = {name for base in kind.__mro__ for name in vars(base)}
        return found

    def _attribute(self, owner: object, attribute: str, label: str) -> None:
        if (id(owner), attribute) in self._guarded or attribute == "__dict__":
            return
        self._guarded.add((id(owner), attribute))
        path = f"{label}.{attribute}"
        if isinstance(owner, ModuleType):
            self._of_module(owner, attribute, path)
        elif isinstance(owner, type):
            self._of_class(owner, attribute, path)
        else:
            self._of_instance(owner, attribute, path)

    def _of_module(self, owner: ModuleType, attribute: str, path: str) -> None:
        names = vars(owner)
        if is_librarys(owner.__name__):
            if attribute not in self.seen.users_attributes:
                self._guarded.discard((id(owner), attribute))
                return
            if attribute not in names:
                getattr(owner, attribute, None)  # functions of rows are created at their first look-up
        if attribute in names:
            expression, value = f"{self.constant(names)}[{attribute!r}]", names[attribute]
            if type(value) is dict and owner.__name__ in sys.stdlib_module_names:  # `sys.modules`
                self.table(expression, value, attribute, path)
            else:
                self.visit(expression, value, path)
        else:
            self._attribute(owner, "__getattr__", path.rpartition(".")[0])
            (self._without if "__getattr__" in names else self._not_found)(owner, {attribute}, path.rpartition(".")[0])

    def _of_class(self, owner: type, attribute: str, path: str) -> None:
        """Guard the contents of a class attribute; which object it is, is guarded with the class."""
        if attribute in ("__name__", "__qualname__"):  # their changes do not change the class's version
            self.visit(f"{self.constant(owner)}.{attribute}", getattr(owner, attribute), path)
            return
        raw = found_in(owner, attribute)
        if raw is MISSING:
            raw = found_in(type(owner), attribute)
        function = function_of(raw)
        if function is not None:
            self._meet(function, path)
        elif isinstance(raw, property):
            for part in (raw.fget, raw.fset):
                if part is not None:
                    self._meet(part, path)
        elif hasattr(type(raw), "__get__"):
            if not isinstance(raw, _DESCRIPTORS):  # a descriptor of the user's
                self.enter(raw, path)
        elif raw is not MISSING:
            self.enter(raw, path)

    def _of_instance(self, owner: object, attribute: str, path: str) -> None:
        attributes, kind = getattr(owner, "__dict__", None), type(owner)
        raw = found_in(kind, attribute)
        data = raw is not MISSING and hasattr(type(raw), "__set__") and not isinstance(raw, FunctionType)
        if isinstance(attributes, dict) and attribute in attributes and not data:
            self.visit(f"{self._dict_of(owner)}[{attribute!r}]", attributes[attribute], path)
            return
        if raw is MISSING:
            self._not_found(owner, {attribute}, path.rpartition(".")[0])
        elif isinstance(raw, _SLOTS):
            if raw.__objclass__ not in PLAIN:
                self._of_slot(owner, attribute, path)
        else:
            if isinstance(attributes, dict) and not data:  # an instance attribute would hide that of the class
                self._without(owner, {attribute}, path.rpartition(".")[0])
            self._of_class(kind, attribute, path)

    def _without(self, owner: object, names: set[str], label: str) -> None:
        """Guard, at the end, that an object has no instance attributes of these names."""
        self._lacking.setdefault(id(owner), (owner, label, set(), set()))[2].update(names)

    def _dict_of(self, owner: object) -> str:
        """The name of the constant for an object's `__dict__`, guarded to be the same object still."""
        name, found = self.constant(owner), vars(owner)
        plain = type(owner).__getattribute__ in (object.__getattribute__, FunctionType.__getattribute__)
        if not plain:
            return self.constant(found)
        if vars(owner) is not found:  # computed by a property
            return f"{name}.__dict__"
        if (id(owner), "__dict__") not in self._guarded:
            self._guarded.add((id(owner), "__dict__"))
            self.is_still(f"{name}.__dict__", found, f"the attributes of a {type(owner).__name__}")
        return self.constant(found)

    def _of_slot(self, owner: object, attribute: str, path: str) -> None:
        try:
            value = getattr(owner, attribute)
        except AttributeError:
            self.fail_if(f"hasattr({self.constant(owner)}, {attribute!r})", path)
        else:
            self.visit(f"{self.constant(owner)}.{attribute}", value, path)

    def _not_found(self, owner: object, names: set[str], label: str) -> None:
        """Guard, at the end, that there are no such attributes, if the call handles their absence or creates them."""
        if isinstance(getattr(owner, "__dict__", None), dict):  # else the class lacks them, which is guarded
            self._lacking.setdefault(id(owner), (owner, label, set(), set()))[3].update(names)

    def _guard_missing(self) -> None:
        seen, shared = self.seen, dict[frozenset[str], frozenset[str]]()  # as most objects of a class lack the same names
        for owner, label, names, not_found in self._lacking.values():
            all_matter = seen.is_dynamic or seen.catches or hasattr(type(owner), "__getattr__")
            lacks = frozenset(names | (not_found if all_matter else not_found & seen.tested_for))
            if lacks and id(owner) not in self._fixed_names:
                absent = self.constant(shared.setdefault(lacks, lacks))
                found = f"{self._dict_of(owner)}.keys()"
                self.fail_if(f"not {found}.isdisjoint({absent})", f"what {label} has instead of its class")

    def _meet(self, function: object, path: str) -> None:
        """Guard a function of a class: its contents, unless it is the library's."""
        if isinstance(function, FunctionType):
            if is_librarys(function.__globals__.get("__name__")):
                if path.rpartition(".")[2] in self.seen.users_attributes:
                    self.seen.called.add(function.__code__.co_name)
            else:
                self.enter(function, path)
        elif not isinstance(function, Builtin):
            self.enter(function, path)

    def whole(self, value: object) -> None:
        """Guard all attributes of an object from before the call, as its code looks some up by computed names."""
        if id(value) in self._entered and id(value) not in self._guarded_whole:
            self._guarded_whole.add(id(value))
            self._whole(value, next((label for found, label in self._objects if found is value), type(value).__name__))
            self._whole(type(value), type(value).__name__)


def found_in(kind: type, attribute: str) -> object:
    """The attribute as it stands in the class, or base, where it is found."""
    for base in kind.__mro__:
        if attribute in vars(base):
            return vars(base)[attribute]
    return MISSING


def function_of(raw: object) -> object:
    """The function that an attribute of a class calls, if it is a plain function or method."""
    if isinstance(raw, classmethod | staticmethod):
        return raw.__func__
    return raw if isinstance(raw, FunctionType) else None


MISSING = object()
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)
_DESCRIPTORS = (*CALLABLES, *_SLOTS, TUPLE_FIELD, type)
_LOGGING = (logging.Filterer, logging.LoggerAdapter, logging.Manager)
_OF_LOGGING = ("_cache", "loggerDict")  # change with messages; only code of `logging` reads them, and locks
_PUBLIC = ("genesis", "numpy", "torch")
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE
