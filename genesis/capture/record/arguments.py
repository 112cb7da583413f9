"""Arguments are trees. Generated code extracts their leaves and checks that the tree's structure is the same."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, UserDict, UserList
from collections.abc import Mapping
from typing import Any

from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import Positional
from genesis.ir.annotations import Options, Tree
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import Tensor
from genesis.tensor.traced_number import Number


class Arguments:
    """The arguments of a recorded call: their leaves, and the lines that extract those of another call.

    Tensors and numbers are leaves. Everything else (strings, None, bools, models) belongs to the tree and is compared.
    """

    def __init__(self, recorder: Recorder, args: Positional, kwargs: Options, dynamic: bool) -> None:
        self.leaves: list[Any] = []
        self.lines: list[str] = []
        self._recorder = recorder
        self.numbers: set[int] = set()  # the leaves that were passed as Numbers
        self._dynamic = dynamic
        self.containers: set[int] = set()
        self.taken: list[Tree] = []  # objects of the user's whose parts are leaves
        self._within: list[Tree] = []  # the containers on the way to what is taken now
        self.args: Positional = self._take("args", args, "the arguments")
        self.kwargs: Options = self._take("kwargs", kwargs, "the keyword arguments")

    def forget(self) -> None:
        """Drop the arguments after the call."""
        self.args, self.kwargs = (), {}
        self.taken.clear()

    def add(self, expression: str, tensor: Tensor, label: str) -> int:
        """Add what `expression` finds as a leaf; returns its number."""
        self._leaf(expression, tensor, label)
        return len(self.leaves) - 1

    def _fail_if(self, condition: str, label: str) -> None:
        guards = self._recorder.guards
        self.lines.append(f"if {condition}: return {len(guards.labels)}")
        guards.labels.append(label)

    def _leaf(self, expression: str, value: object, label: str) -> str:
        name = f"a{len(self.leaves)}"
        kind = self._recorder.guards.constant(type(value))
        self._fail_if(f"({name} := {expression}).__class__ is not {kind}", f"the type of {label}")
        self.leaves.append(value)
        return name

    def _container(self, expression: str, value: object, label: str) -> str:
        """The name of a container in the generated code, which compares its class."""
        self.containers.add(id(value))
        name = f"t{len(self.lines)}"
        kind = self._recorder.guards.constant(type(value))
        self._fail_if(f"({name} := {expression}).__class__ is not {kind}", f"the type of {label}")
        return name

    def _take_parts(self, expression: str, value: CompositeTensor, label: str) -> None:
        """Add the tensors that a composite tensor consists of; the rest of it is compared."""
        guards, name = self._recorder.guards, self._container(expression, value, label)
        parts = dict(value.part_tensors())
        for attribute, part in vars(value).items():
            path = f"{name}.__dict__[{attribute!r}]"
            if attribute in parts:
                self._leaf(path, part, f"{label}.{attribute}")
            else:
                self._fail_if(f"{path} != {guards.constant(part)}", f"{label}.{attribute}")

    def _take(self, expression: str, value: Tree, label: str) -> Tree:
        """Add the lines for what `expression` finds; returns the value with Numbers for numbers that may change."""
        guards = self._recorder.guards
        if isinstance(value, CompositeTensor):
            self._take_parts(expression, value, label)
            return value
        if isinstance(value, Tensor):
            self._leaf(expression, value, label)
            return value
        if type(value) in (int, float):
            self._leaf(expression, value, label)
            dynamic = self._dynamic and not (type(value) is int and not -(1 << 63) <= value < 1 << 63)
            if not dynamic:
                return value
            self.numbers.add(len(self.leaves) - 1)
            return Number(value, ("leaf", len(self.leaves) - 1), self._recorder)
        is_data = isinstance(value, tuple | list | dict | UserDict | UserList)
        if is_data or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            if any(value is outer for outer in self._within):
                self._recorder.refuse("an argument contains itself")
                return value
            self._within.append(value)
            name = self._container(expression, value, label)
            if type(value) in (tuple, list, dict) or hasattr(value, "_fields"):
                value = self._take_items(name, value, label)
            else:
                self._take_object(name, value, label)
            self._within.pop()
            return value
        name = guards.constant(value)
        compared = isinstance(value, str | bytes | complex)
        self._fail_if(f"(v := {expression}) is not {name}" + (f" and differs(v, {name})" if compared else ""), label)
        guards.enter(value, label)
        return value

    def _take_items(self, name: str, value: Tree, label: str) -> Tree:
        """`_take` for the items of a dict, list or tuple, which has a name already."""
        if isinstance(value, dict):
            keys = self._recorder.guards.constant([*value])
            self._fail_if(f"[*{name}] != {keys}" if value else name, f"the keys of {label}")
            items = {k: self._take(f"{name}[{keys}[{i}]]", v, f"{label}[{k!r}]") for i, (k, v) in enumerate(value.items())}
            return value if all(items[k] is value[k] for k in value) else {**value, **items}
        self._fail_if(f"len({name}) != {len(value)}", f"the length of {label}")
        taken = [self._take(f"{name}[{i}]", v, f"{label}[{i}]") for i, v in enumerate(value)]
        if all(a is b for a, b in zip(taken, value, strict=True)):
            return value
        return type(value)(*taken) if hasattr(value, "_fields") else type(value)(taken)

    def _take_object(self, name: str, value: Tree, label: str) -> None:
        """`_take` for an instance of a class of the user's: its items and attributes, whose numbers are compared."""
        guards, dynamic, self._dynamic = self._recorder.guards, self._dynamic, False
        guards.enter(type(value), f"the class of {label}")
        self.taken.append(value)
        base: Any = next(kind for kind in (OrderedDict, dict, list, tuple, object) if isinstance(value, kind))
        of_base = guards.constant(base)
        if isinstance(value, dict):
            self._take_keyed(f"{of_base}.keys({name})", f"{of_base}.__getitem__({name}, {{}})", dict(base.items(value)), label)
        elif isinstance(value, list | tuple):
            self._fail_if(f"{of_base}.__len__({name}) != {base.__len__(value)}", f"the length of {label}")
            for i, item in enumerate(base.__iter__(value)):
                self._take(f"{of_base}.__getitem__({name}, {i})", item, f"{label}[{i}]")
        if isinstance(attributes := getattr(value, "__dict__", None), dict):
            self._take_keyed(f"{name}.__dict__", f"{name}.__dict__[{{}}]", attributes, label)
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)} if (
            dataclasses.is_dataclass(value)) else {}
        slots = {slot for kind in type(value).__mro__ for slot in vars(kind).get("__slots__", ())} - {"__dict__", "__weakref__"}
        if not slots <= fields.keys():
            self._recorder.refuse(f"{label} has slots")
        for slot in slots & fields.keys():
            self._take(f"{name}.{slot}", fields[slot], f"{label}.{slot}")
        self._dynamic = dynamic

    def _take_keyed(self, keys: str, item: str, values: Mapping[Any, Any], label: str) -> None:
        name = self._recorder.guards.constant([*values])
        self._fail_if(f"[*{keys}] != {name}", f"the keys of {label}")
        for i, (key, value) in enumerate(values.items()):
            self._take(item.format(f"{name}[{i}]"), value, f"{label}[{key!r}]")
