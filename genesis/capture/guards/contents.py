"""Guards of values: the contents of containers and functions, and the kinds of objects that are understood."""

from __future__ import annotations

import contextlib
import functools
import gc
import operator
import sys
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from genesis.capture.guards.classes import ClassGuards
from genesis.capture.guards.kinds import CHANGING, IMMUTABLE, is_librarys, is_scalar, unknown_base
from genesis.capture.guards.known_functions import Builtin, is_known_function, is_known_module
from genesis.capture.guards.lines import LIMIT, Lines
from genesis.capture.guards.opcodes import DYNAMIC, SeenCode
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import Tensor
from genesis.tensor.traced_number import number_fixed


class Contents(Lines, ABC):
    """The part of `Guards` that looks into values. It leaves attributes to `Attributes`."""

    def __init__(
        self, refuse: Callable[[str], None], reach: Callable[[Tensor, str], None],
        add_argument: Callable[[str, Tensor, str], None],
    ) -> None:
        super().__init__(refuse)
        self._reach = reach
        self._add_argument = add_argument
        # ---- what is guarded ----
        self._entered: set[int] = set()  # ids of the values whose contents are guarded
        self._objects: list[tuple[object, str]] = []  # the objects, with labels, whose attributes are guarded by name
        self._guarded: set[tuple[int, str]] = set()  # (id of an owner, name): guarded attributes and globals
        self._guarded_whole: set[int] = set()  # ids of objects all of whose attributes are guarded
        self._fixed_names: set[int] = set()  # ids of objects whose attributes' names are guarded
        self._classes = ClassGuards()
        self._builtins: dict[str, object] = {}
        self._imports: set[tuple[str, str]] = set()  # ("import", module), or ("abstract", "")
        self._names_of: dict[type, set[str]] = {}
        # By id: (object, label, names that it must not have instead of its class, names that were not found at all).
        self._lacking: dict[int, tuple[object, str, set[str], set[str]]] = {}
        self._lacking_globals: dict[int, tuple[dict[str, object], set[str]]] = {}  # (globals, names that they lack), by id
        self._tables: dict[str, list[tuple[Collection[object], str]]] = {}  # that are only searched so far
        self._copies_of_dicts: list[tuple[dict[object, object], dict[object, object]]] = []  # (dict, its contents)
        self.memories: set[int] = set()  # guards of the contents of cached functions
        self.meets_cached_function = False
        self.functions: dict[CodeType, list[FunctionType]] = {}  # those that are guarded
        self._unknown_functions: dict[str, str] = {}  # C functions of unknown effect, by names that so far are only called
        self.seen = SeenCode()
        self.constants |= {"is_filled": is_filled, "remembered": remembered}
        self.met = False  # an object that no guarded name leads to

    def variable(self, expression: str, value: object, label: str) -> None:
        """`visit`, for a variable's value: a plain tensor is an input, which each call re-reads."""
        if type(value) is Tensor and not value.requires_grad:
            self._add_argument(expression, value, label)
        else:
            self.visit(expression, value, label)

    def visit(self, expression: str, value: object, label: str) -> None:
        """Guard that `expression` is `value`, and its contents."""
        value = number_fixed(value)  # in a list that is given
        if is_scalar(value):
            name = self.constant(value)
            singleton = value is None or type(value) is bool
            self.fail_if(f"{expression} is not {name}" if singleton
                         else f"(v := {expression}) is not {name} and differs(v, {name})", label)
        else:
            self.is_still(expression, value, label)
            self.enter(value, label)

    def is_still(self, expression: str, value: object, label: str) -> None:
        """Guard that `expression` is the object `value`, without its contents."""
        self.fail_if(f"{expression} is not {self.constant(value)}", label)

    # ---- contents ----

    def enter(self, value: object, label: str) -> None:
        """Guard the contents of `value`, once."""
        if isinstance(value, Builtin | type) and value.__name__ in DYNAMIC and _last_name(label) not in DYNAMIC:
            self.look_up_any()  # under another name
        if is_scalar(value) or id(value) in self._entered or len(self.labels) >= LIMIT:
            return
        self._entered.add(id(value))
        name, kind = self.constant(value), type(value)
        if isinstance(value, type):
            self._class(value, label)
        elif isinstance(value, Tensor) and not isinstance(value, CompositeTensor):
            self._reach(value, label)
            self._classes.add(kind)
        elif isinstance(value, CHANGING):
            self._refuse(f"{label} is a {kind.__name__}, whose state is not compared")
        elif isinstance(value, ContextVar):
            self.visit(f"{name}.get({self.constant(_NO_VALUE)})", value.get(_NO_VALUE), f"the value of {label}")
            with contextlib.suppress(LookupError):
                self.enter(value.get(), f"the default of {label}")
        elif isinstance(value, weakref.ReferenceType):
            self._refuse(f"{label} is a weak reference")
        elif hasattr(kind, "__next__"):
            self._refuse(f"{label} is an iterator, which a call moves on")
        elif (base := unknown_base(kind)) is not None:
            self._refuse(f"{label} is a {base.__module__}.{base.__qualname__}, which is not understood")
        elif isinstance(value, list | tuple | deque | dict | MappingProxyType | set | frozenset):
            self._container(name, value, label)
        elif callable(value) and isinstance(value, CALLABLES):
            self._callable(name, value, label)
        elif not isinstance(value, IMMUTABLE):
            self._object(value, label)

    def _container(self, name: str, value: Collection[object], label: str) -> None:
        if type(value) not in PLAIN:  # it may have methods and attributes
            self._object(value, label)
        base = container_base(type(value))
        if isinstance(value, tuple | frozenset):  # immutable
            for i, item in enumerate(base.__iter__(value)):
                self.enter(item, f"{label}[{i}]" if base is tuple else f"what is in {label}")
        elif isinstance(value, set):  # in order, as loops depend on it
            items = [*base.__iter__(value)]
            self.fail_if(f"set.__len__({name}) != {len(items)} or not "
                         f"all(map(same, set.__iter__({name}), {self.constant(items)}))", f"what is in {label}")
            for item in items:
                self.enter(item, f"what is in {label}")
        else:
            if isinstance(value, dict):
                self._copies_of_dicts.append((value, {key: number_fixed(item) for key, item in base.items(value)}))
            for _, expression, item, path in self.each_item(name, value, label, self.lines):
                self.visit(expression, item, path)

    def each_item(
        self, name: str, value: Any, label: str, lines: list[str]
    ) -> Iterator[tuple[object, str, Any, str]]:
        """Add to `lines` that the list, tuple or dict called `name` has as many items, or the same keys; yields the key, the
        expression, the value and the label of each item."""
        base = container_base(type(value))
        plain = all(getattr(type(value), method, None) is getattr(base, method, None) for method in _ACCESS)
        own = name if plain else f"{self.constant(base)}.{{}}({name})"
        taken = f"{name}[{{}}]" if plain else f"{self.constant(base)}.__getitem__({name}, {{}})"
        if issubclass(base, dict | MappingProxyType):
            found = dict(base.items(value))
            keys = self.require_keys(own.format("keys"), [*found], label, lines)
            for i, (key, item) in enumerate(found.items()):
                self.enter(key, f"a key of {label}")
                yield key, taken.format(f"{keys}[{i}]"), item, f"{label}[{key!r}]" if is_scalar(key) else f"an item of {label}"
        else:
            length = f"len({name})" if plain else own.format("__len__")
            self.fail_if(f"{length} != {base.__len__(value)}", f"the length of {label}", lines)
            for i, item in enumerate(base.__iter__(value)):
                yield i, taken.format(i), item, f"{label}[{i}]"
        if isinstance(value, defaultdict):
            yield "default_factory", f"{name}.default_factory", value.default_factory, f"{label}.default_factory"

    def require_keys(self, listed: str, keys: list[object], label: str, lines: list[str] | None = None) -> str:
        """Guard the keys of a dict, and their order; the name of the constant that holds them."""
        name = self.constant(keys)
        differ = f" or any(map(is_not, {listed}, {name})) and not all(map(same, {listed}, {name}))" if keys else ""
        self.fail_if(f"len({listed}) != {len(keys)}{differ}", f"the keys of {label}", lines)
        return name

    def table(self, expression: str, value: Collection[object], name: str, label: str) -> None:
        """`visit`, for a dict of a Python module or a set of classes: while code only tests keys, only these are guarded."""
        if name in self.seen.read or id(value) in self._entered:
            self.visit(expression, value, label)
        else:
            self.fail_if(f"{expression} is not {self.constant(value)}", label)
            self.require_keys(self.constant(value), [*value], label)
            self._tables.setdefault(name, []).append((value, label))

    def _callable(self, name: str, value: object, label: str) -> None:
        if isinstance(value, FunctionType):
            self._function(value, label)
        elif isinstance(value, MethodType):
            module = str(value.__func__.__module__)
            if module.partition(".")[0] not in sys.stdlib_module_names or is_known_module(module) or not self._waits(label):
                self.enter(value.__self__, label)  # only if it is more than called, as the watch sees calls
                self.enter(value.__func__, label)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.enter(part, label)
        elif isinstance(value, operator.attrgetter | operator.methodcaller):
            names = [name for name in value.__reduce__()[1] if isinstance(name, str)]
            self._look_for({part for name in names for part in name.split(".")}, True)
        elif isinstance(value, functools._lru_cache_wrapper):
            self.meets_cached_function = True
            found = remembered(value)
            self.memories.add(len(self.labels))
            known = self.constant(found)
            self.fail_if(f"len(v := remembered({name})) != {len(found)} or any(map(is_not, v, {known})) and "
                         f"not all(map(same, v, {known}))", f"what {label} remembers")
            for item in results_among(found):
                self.enter(item, f"what {label} remembers")
        elif isinstance(value, Builtin):
            self._builtin(value, label)
        elif isinstance(value, DISPATCHED) and not is_known_function(value):
            self._refuse(f"{label} is numpy.{value.__name__}, which is not understood")

    def _builtin(self, value: Builtin, label: str) -> None:
        """A C function: if it is only called directly, the watch sees the call."""
        if not is_known_function(value):
            if not self._waits(label):
                self._refuse(f"{label} is {value.__name__}, {UNKNOWN}")
            return
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType | type):
            self.enter(owner, label)

    def _waits(self, label: str) -> bool:
        """Whether an unknown function is only called directly, so far."""
        name = _last_name(label)
        if name not in self.seen.mentioned or name in self.seen.handed_on:
            return False
        self._unknown_functions[name] = label
        return True

    def _function(self, value: FunctionType, label: str) -> None:
        if is_librarys(value.__globals__.get("__name__")):
            self.seen.called.add(value.__code__.co_name)
            return
        name = self.constant(value)
        parts = {"__code__": value.__code__, "__defaults__": value.__defaults__, "__kwdefaults__": value.__kwdefaults__}
        self.fail_if(" or ".join([f"{name}.{part} is not {self.constant(found)}" for part, found in parts.items()]), label)
        for defaults in (value.__defaults__, value.__kwdefaults__):
            self.enter(defaults, f"the defaults of {label}")
        self.functions.setdefault(value.__code__, []).append(value)
        if value.__code__ in self.seen.ran:
            self._cells(value)
        self._object(value, label)

    def _cells(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) not in self._entered:
                self._entered.add(id(cell))
                holder, label = self.constant(cell), f"{name} of {function.__name__}"
                if is_filled(cell):
                    self.variable(f"{holder}.cell_contents", cell.cell_contents, label)
                else:
                    self.fail_if(f"is_filled({holder})", label)

    def has_filled(self) -> bool:
        """Whether the call has added to a dict from before the call, without changing other items."""
        return any(len(now) > len(before) and all(dict.get(now, key, self) is item for key, item in before.items())
                   for now, before in self._copies_of_dicts)

    # ---- implemented by Attributes and Guards ----

    @abstractmethod
    def _class(self, value: type, label: str) -> None:
        """Guard a class."""

    @abstractmethod
    def _object(self, value: object, label: str) -> None:
        """Guard the attributes of an object."""

    @abstractmethod
    def _look_for(self, names: set[str], own: bool) -> None:
        """Guard the attributes of these names, of all objects."""

    @abstractmethod
    def look_up_any(self) -> None:
        """Guard all attributes of all objects."""


def container_base(kind: type) -> Any:
    """The class of Python's containers that a container's class derives from."""
    return next(base for base in kind.__mro__ if base in PLAIN)


def _last_name(label: str) -> str:
    """The name of the global or attribute that a label describes."""
    return label.rpartition(".")[2].removeprefix("global ")


def remembered(function: functools._lru_cache_wrapper[object]) -> list[object]:
    """The objects that a cached function refers to, results of calls among them."""
    found: list[object] = []
    for referent in gc.get_referents(function):
        found += [referent] if not isinstance(referent, dict) or referent is vars(function) else referent.values()
    return found


def results_among(remembered: list[object]) -> list[object]:
    """The results of calls among the objects of a cached function; a bounded cache has a key, a result and a type per call."""
    linked = [remembered[i - 1] for i, referent in enumerate(remembered) if i and getattr(referent, "__name__", "") == _LINK]
    return linked[:-1] or [referent for referent in remembered if type(referent).__name__ != _LINK]


def is_filled(cell: CellType) -> bool:
    """Whether a variable of a closure has a value."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


DISPATCHED = type(np.mean)
CALLABLES = (
    FunctionType, MethodType, BuiltinFunctionType, functools.partial, functools._lru_cache_wrapper, operator.attrgetter,
    operator.methodcaller, *Builtin.__args__, DISPATCHED,
)
PLAIN = {list, tuple, deque, dict, defaultdict, OrderedDict, MappingProxyType, set, frozenset}
UNKNOWN = "which is not known to be a function of its arguments"
_NO_VALUE = slice(None)  # of a context variable
_LINK = "_lru_list_elem"  # internal links of a cache
_ACCESS = ("__len__", "__iter__", "__getitem__", "keys")
