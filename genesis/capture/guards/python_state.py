"""Guards: one generated function that checks all of Python's state that a recorded call could see.

A guard is a line of it, such as `if g['scale'] is not k: return 7`, and costs some 30 ns. Values are compared with those at
the beginning of the call, so running the check after the call finds a call that changes what it reads.
"""

from __future__ import annotations

import dis
import functools
import operator
import sys
import weakref
from collections import deque
from collections.abc import Callable, Collection, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType

from genesis.capture.guards.check_function import COMPARISONS, check_function
from genesis.capture.guards.purity import CHANGING, DYNAMIC, SCALARS, asked_names, impure_names, is_impure, is_opaque
from genesis.ir.annotations import AnyFunction
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

LIMIT = 20_000  # guards; whoever reads more than that is not replayed


class Guards:
    """The lines of the function, their constants, and the objects whose attributes are guarded by name."""

    def __init__(
        self, refuse: Callable[[str], None], reach: Callable[[Tensor, str], None],
        add_argument: Callable[[str, Tensor, str], None],
    ) -> None:
        self.lines: list[str] = []
        self.labels: list[str] = []
        self.constants: dict[str, object] = {**COMPARISONS}
        self._refuse = refuse
        self._reach = reach
        self._add_argument = add_argument
        self._name_of: dict[int, str] = {}
        self._inside: set[int] = set()  # what has been looked into
        self._objects: list[tuple[object, str]] = []
        self._names: set[str] = set()
        self._own_names: set[str] = set()  # those that the user's code names
        self._of_classes: set[tuple[int, str]] = set()
        self._seen: set[tuple[int, str]] = set()
        self._dynamic = False
        self._asked: set[str] = set()  # by getattr, which need not find them
        self.remembers = False  # results, by arguments that have to be what they seem
        self._functions: dict[CodeType, list[FunctionType]] = {}
        self._running: set[CodeType] = set()

    # ---- lines ----

    def constant(self, value: object) -> str:
        """The name of `value` in the function."""
        name = self._name_of.get(id(value))
        if name is None:
            name = self._name_of[id(value)] = f"k{len(self._name_of)}"
            self.constants[name] = value
        return name

    def fail_if(self, condition: str, label: str) -> None:
        """Add a line: where `condition` holds, the guard called `label` has failed."""
        if len(self.labels) == LIMIT:
            self._refuse(f"more than {LIMIT} values are read")
        if len(self.labels) < LIMIT:
            self.lines.append(f"if {condition}: return {len(self.labels)}")
            self.labels.append(label)

    def variable(self, expression: str, value: object, label: str) -> None:
        """`visit`, for the value of a variable: a plain tensor is an input of each call, whichever it is then."""
        if type(value) is Tensor and not value.requires_grad:
            self._add_argument(expression, value, label)
        else:
            self.visit(expression, value, label)

    def visit(self, expression: str, value: object, label: str) -> None:
        """Guard that `expression` is `value`, and its contents."""
        if isinstance(value, SCALARS):
            name = self.constant(value)
            singleton = value is None or type(value) is bool
            self.fail_if(f"{expression} is not {name}" if singleton
                         else f"(v := {expression}) is not {name} and differs(v, {name})", label)
        else:
            self.fail_if(f"{expression} is not {self.constant(value)}", label)
            self.enter(value, label)

    # ---- what is in a value ----

    def enter(self, value: object, label: str) -> None:
        """Guard the contents of `value`, once."""
        if isinstance(value, SCALARS) or id(value) in self._inside or len(self.labels) >= LIMIT:
            return
        self._inside.add(id(value))
        name = self.constant(value)
        if isinstance(value, Tensor):
            self._reach(value, label)
        elif isinstance(value, CHANGING):
            self._refuse(f"{label} is a {type(value).__name__}, whose state is not compared")
        elif isinstance(value, list | tuple | deque | dict | MappingProxyType | set | frozenset):
            self._container(name, value, label)
        elif callable(value) and isinstance(value, _CALLABLES):
            self._callable(name, value, label)
        elif isinstance(value, weakref.ReferenceType):
            self._refuse(f"{label} is a weak reference")
        elif not isinstance(value, type) and hasattr(value, "__next__"):
            self._refuse(f"{label} is an iterator, which a call moves on")
        elif not is_opaque(value):
            self._object(value, label)

    def _container(self, name: str, value: Collection[object], label: str) -> None:
        if isinstance(value, list | tuple | deque):
            if not isinstance(value, tuple):
                self.fail_if(f"len({name}) != {len(value)}", f"len({label})")
            for i, item in enumerate(value):
                self.visit(f"{name}[{i}]", item, f"{label}[{i}]")
        elif isinstance(value, dict | MappingProxyType):
            keys = self.constant([*value])
            self.fail_if(f"len({name}) != {len(value)} or not all(map(same, {name}, {keys}))", f"the keys of {label}")
            for i, (key, item) in enumerate(value.items()):
                path = f"{label}[{key!r}]" if isinstance(key, SCALARS) else f"an item of {label}"
                self.visit(f"{name}[{keys}[{i}]]", item, path)
        else:
            self.fail_if(f"{name} != {self.constant(frozenset(value))}", label)

    def _callable(self, name: str, value: object, label: str) -> None:
        if isinstance(value, FunctionType):
            self._function(value, label)
        elif isinstance(value, MethodType):
            self.enter(value.__self__, label)
            self.enter(value.__func__, label)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.enter(part, label)
        elif isinstance(value, operator.attrgetter | operator.methodcaller):
            names = [name for name in value.__reduce__()[1] if isinstance(name, str)]
            self._look_for({part for name in names for part in name.split(".")}, True)
        elif isinstance(value, functools._lru_cache_wrapper):
            self.remembers = True
            self.fail_if(f"{name}.cache_info()[1::2] != {self.constant(value.cache_info()[1::2])}", f"what {label} remembers")
            self.enter(value.__wrapped__, label)
        elif isinstance(value, BuiltinFunctionType) and is_impure(value):
            self._refuse(f"{label} is {value.__name__}, which may answer otherwise the next time")

    def _function(self, value: FunctionType, label: str) -> None:
        if value.__module__ and value.__module__.split(".")[0] == "genesis":
            return
        name = self.constant(value)
        self.visit(f"{name}.__defaults__", value.__defaults__, f"the defaults of {label}")
        self.visit(f"{name}.__kwdefaults__", value.__kwdefaults__, f"the defaults of {label}")
        self.fail_if(f"{name}.__code__ is not {self.constant(value.__code__)}", label)
        self._functions.setdefault(value.__code__, []).append(value)
        if value.__code__ in self._running:
            self._cells(value)

    def _cells(self, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # a cell that is not filled yet
                continue
            if id(cell) not in self._inside:
                self._inside.add(id(cell))
                self.variable(f"{self.constant(cell)}.cell_contents", value, f"{name} of {function.__name__}")

    # ---- attributes ----

    def _object(self, value: object, label: str) -> None:
        self._objects.append((value, label))
        if not isinstance(value, type | ModuleType):
            self.fail_if(f"{self.constant(value)}.__class__ is not {self.constant(type(value))}", f"the class of {label}")
        # A module's layers and parameters are looked up by loops (`for layer in self`), which name no attribute.
        if isinstance(value, Module):
            attributes = vars(value)
            name = self.constant(attributes)
            self.fail_if(f"len({name}) != {len(attributes)}", f"the attributes of {label}")
            for key, item in attributes.items():
                if isinstance(item, Tensor | Module):
                    self.visit(f"{name}[{key!r}]", item, f"{label}.{key}")
                    self._seen.add((id(value), key))
        # Every name of every function that ran, on every object met: too many guards, but none is missing.
        for attribute in [*self._names]:
            self._attribute(value, attribute, label)
        if self._dynamic or any(kind.__module__ == "collections" for kind in type(value).__mro__):
            self._whole(value, label)

    def _whole(self, value: object, label: str) -> None:
        if not isinstance(value, ModuleType | type):
            attributes = getattr(value, "__dict__", {})
            self.fail_if(f"len({self.constant(attributes)}) != {len(attributes)}", f"the attributes of {label}")
            for attribute in [*attributes]:
                if isinstance(attribute, str) and attribute.isidentifier():
                    self._attribute(value, attribute, label)

    def _attribute(self, owner: object, attribute: str, label: str) -> None:
        if (id(owner), attribute) in self._seen or not attribute.isidentifier() or attribute in DYNAMIC:
            return
        self._seen.add((id(owner), attribute))
        name, path = self.constant(owner), f"{label}.{attribute}"
        if isinstance(owner, ModuleType):
            if attribute in vars(owner) and (attribute in self._own_names or not owner.__name__.startswith("genesis")):
                self.visit(f"{name}.{attribute}", vars(owner)[attribute], path)
            return
        kind = owner if isinstance(owner, type) else type(owner)
        raw = next((vars(c)[attribute] for c in kind.__mro__ if attribute in vars(c)), _MISSING)
        if owner is not kind and attribute in getattr(owner, "__dict__", ()) and not hasattr(type(raw), "__set__"):
            self.visit(f"{name}.{attribute}", vars(owner)[attribute], path)
        elif isinstance(raw, FunctionType):
            if owner is not kind and hasattr(owner, "__dict__"):
                self.fail_if(f"{attribute!r} in {self.constant(vars(owner))}", path)
            self._of_class(kind, attribute, "", raw, path)
        elif isinstance(raw, classmethod | staticmethod):
            self._of_class(kind, attribute, ".__func__" if isinstance(raw, classmethod) else "", raw.__func__, path)
        elif isinstance(raw, property):
            self._of_class(kind, attribute, "", raw, path)
            self.enter(raw.fget, path)
        elif raw is _MISSING:
            if (self._dynamic or attribute in self._asked) and owner is not kind:
                self.fail_if(f"hasattr({name}, {attribute!r})", path)
            elif hasattr(kind, "__getattr__") and hasattr(owner, "__dict__"):
                self.fail_if(f"{attribute!r} in {self.constant(vars(owner))}", path)
        elif not hasattr(type(raw), "__get__"):
            self.visit(f"{name}.{attribute}", raw, path)
        elif owner is not kind and hasattr(type(raw), "__set__") and hasattr(owner, attribute):  # a slot
            self.visit(f"{name}.{attribute}", getattr(owner, attribute), path)

    def _of_class(self, kind: type, attribute: str, part: str, value: object, label: str) -> None:
        """Guard an attribute of a class; of the library's own classes `forward` alone, which users replace."""
        known = (id(kind), attribute) in self._of_classes
        if not known and (attribute == "forward" or not kind.__module__.startswith("genesis.")):
            self._of_classes.add((id(kind), attribute))
            self.visit(f"{self.constant(kind)}.{attribute}{part}", value, label)

    # ---- code ----

    def code(self, code: CodeType, own: bool) -> None:
        """`code` is about to run: look at the attributes that it names, of all objects, and at its functions' cells.

        `own`: it is the user's, who may look attributes up by names made at run time.
        """
        self._running.add(code)
        asked, dynamic = asked_names(code) if own and not DYNAMIC.isdisjoint(code.co_names) else (set(), False)
        self._asked |= asked
        became_dynamic, self._dynamic = dynamic and not self._dynamic, self._dynamic or dynamic
        self._look_for({*code.co_names, *asked, *(c for c in code.co_consts if dynamic and isinstance(c, str))}, own)
        for value, label in [*self._objects] if became_dynamic else ():
            self._whole(value, label)
        if own and not _ENVIRONMENT.isdisjoint(code.co_names):
            self._refuse("it uses os.environ")
        for function in self._functions.get(code, ()):
            self._cells(function)

    def _look_for(self, names: set[str], own: bool) -> None:
        """Guard the attributes of these names, of all objects; `own`: the user's code has them."""
        fresh = names - (self._own_names if own else self._names)
        self._names |= names
        if own:
            self._own_names |= names
        for value, label in [*self._objects]:
            for attribute in fresh:
                self._attribute(value, attribute, label)

    def knows(self, code: CodeType) -> bool:
        """Whether a function of this code has been met."""
        return code in self._functions

    def has_entered(self, value: object) -> bool:
        """Whether `value` was there before the call, and what is in it is guarded."""
        return id(value) in self._inside

    def globals_of(self, code: CodeType, namespace: dict[str, object]) -> None:
        """Guard what the names in `code` mean in its module."""
        name = self.constant(namespace)
        imported = {i.argval for i in dis.get_instructions(code) if i.opname == "IMPORT_NAME"}
        for key in code.co_names:
            if (id(namespace), key) in self._seen:
                continue
            self._seen.add((id(namespace), key))
            if key in namespace:
                self.variable(f"{name}[{key!r}]", namespace[key], f"global {key}")
            elif hasattr(_builtins, key):
                self.fail_if(f"{key!r} in {name}", f"global {key}")
            elif key in sys.modules and key in imported:
                self.enter(sys.modules[key], key)
            module = namespace[key] if key in namespace else sys.modules.get(key)
            for used in impure_names(module, code):
                self._refuse(f"it uses {used}")

    @functools.cached_property
    def failing(self) -> Callable[[], int | None]:
        """The function that returns the number of the guard that fails, if one does. No guard comes after it."""
        return self.function("def check():", self.lines, ["return None"])

    def function(
        self, head: str, lines: Sequence[str], last: Sequence[str], constants: dict[str, object] | None = None
    ) -> AnyFunction:
        """The function: `lines`, which return the number of the guard that fails, then `last`, whose failures are its own."""
        return check_function(head, lines, last, {**self.constants, **(constants or {})})


_CALLABLES = (
    FunctionType, MethodType, BuiltinFunctionType, functools.partial, functools._lru_cache_wrapper, operator.attrgetter,
    operator.methodcaller,
)
_MISSING = object()
_ENVIRONMENT = {"environ", "environb", "getenv"}
_builtins = sys.modules["builtins"]
