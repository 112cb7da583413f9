"""Arguments are trees. Generated code extracts their leaves and checks that the tree's structure is the same."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections import UserDict, UserList, deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from types import CellType, FrameType
from typing import Any

from genesis.capture.guards.kinds import slots_of
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import Positional
from genesis.ir.annotations import Options, Tree
from genesis.runtime.references import is_sole_owner
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import Tensor
from genesis.tensor.traced_number import Number, number_given, plain


class Arguments:
    """The arguments of a recorded call: their leaves, and the lines that extract those of another call.

    Tensors and numbers are leaves. Everything else (strings, None, bools, models) belongs to the tree and is compared. Numbers
    that may change are Numbers during the call, which lists and dicts contain in their place, where no other thread can look at
    them. Numbers within tuples and objects of the user's classes are compared.
    """

    def __init__(self, recorder: Recorder, args: Positional, kwargs: Options, dynamic: bool) -> None:
        self.leaves: list[Any] = []
        self.labels: list[str] = []  # of the leaves
        self.lines: list[str] = []
        self._recorder = recorder
        self._fail_if = partial(recorder.guards.fail_if, lines=self.lines)
        self.numbers: set[int] = set()  # the leaves that were passed as Numbers
        self._dynamic = dynamic
        self._is_alone = len(sys._current_frames()) == 1  # no other thread runs Python
        self._placed: list[tuple[Any, Any, Number]] = []  # (list or dict, index or key, what it has during the call)
        self.containers: dict[int, tuple[str, Tree]] = {}  # by their ids: the name of each container, and it
        self._around: set[int] = set()  # the ids of the containers around what is taken
        self.args: Positional = tuple(self._take_items("args", args, "arguments").values())
        self.kwargs: Options = self._take_items("kwargs", kwargs, "keyword arguments")

    def place(self) -> None:
        """Before the call: replace numbers that may change in lists and dicts."""
        for container, key, number in self._placed:
            container[key] = number

    def restore(self, taken: Callable[[Any], Any] = number_given) -> None:
        """After the call, or for code that looks at them: have these lists and dicts contain what they would have."""
        for container, _, _ in self._placed:
            plain(container, taken)

    def put_back(self) -> bool:
        """Have what holds Numbers hold plain ones; whether the call has stored any. Begun anew after an interrupt."""
        self.restore()
        self.args, self.kwargs = (), {}
        self.containers.clear()
        self._placed.clear()
        numbers: list[Any] = self._recorder.numbers
        numbers[:] = [number for number in numbers if not is_sole_owner([number], 2)]  # beside the list and the local name
        found, holders = bool(numbers), [*numbers]
        originals = {id(number): number.value for number in numbers}
        own = {*originals, id(numbers)}
        while holders:
            held, holders = holders, []
            for holder in _referrers(held, own):
                if isinstance(holder, tuple | frozenset):  # what refers to it is to refer to another
                    items = [originals.get(id(item), item) for item in holder]
                    originals[id(holder)] = frozenset(items) if isinstance(holder, frozenset) else tuple.__new__(
                        type(holder), items)
                    own.add(id(holder))
                    holders.append(holder)
                else:
                    _replace(holder, originals)
            numbers += holders  # which keeps them alive, as their ids are keys
        numbers.clear()
        return found

    def leaf(self, expression: str, value: object, label: str) -> int:
        """Add what `expression` finds as a leaf; returns its number."""
        self._bind(f"a{len(self.leaves)}", expression, value, label)
        self.leaves.append(value)
        self.labels.append(label)
        return len(self.leaves) - 1

    def _bind(self, name: str, expression: str, value: object, label: str) -> str:
        """Have the generated code call `name` what `expression` finds, and compare its class; returns the name."""
        kind = self._recorder.guards.constant(type(value))
        self._fail_if(f"({name} := {expression}).__class__ is not {kind}", f"the type of {label}")
        return name

    def _container(self, expression: str, value: object, label: str) -> str:
        """The name of a container in the generated code."""
        name = self._bind(f"t{len(self.lines)}", expression, value, label)
        self.containers[id(value)] = name, value
        return name

    def _take_parts(self, expression: str, value: CompositeTensor, label: str) -> None:
        """Add the tensors that a composite tensor consists of; the rest of it is compared."""
        guards, name = self._recorder.guards, self._container(expression, value, label)
        parts = dict(value.part_tensors())
        for attribute, part in vars(value).items():
            path = f"{name}.__dict__[{attribute!r}]"
            if attribute in parts:
                self.leaf(path, part, f"{label}.{attribute}")
            else:
                self._fail_if(f"{path} != {guards.constant(part)}", f"{label}.{attribute}")

    def _take(self, expression: str, value: Tree, label: str) -> Tree:
        """Add the lines for what `expression` finds; returns it, or a Number in place of one that may change."""
        guards = self._recorder.guards
        is_data = isinstance(value, tuple | list | dict | UserDict | UserList)
        if isinstance(value, CompositeTensor):
            self._take_parts(expression, value, label)
        elif isinstance(value, Tensor):
            self.leaf(expression, value, label)
        elif type(value) in (int, float):
            number = self.leaf(expression, value, label)
            if self._dynamic and not (type(value) is int and not -(1 << 63) <= value < 1 << 63):
                self.numbers.add(number)
                return Number(value, ("leaf", number), self._recorder)
        elif is_data or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            self._take_container(expression, value, label)
        else:
            name = guards.constant(value)
            compared = isinstance(value, str | bytes | complex) and not hasattr(value, "__dict__")
            self._fail_if(f"(v := {expression}) is not {name}" + (f" and differs(v, {name})" if compared else ""), label)
            guards.enter(value, label)
        return value

    def _take_container(self, expression: str, value: Tree, label: str) -> None:
        """`_take` for a container; one that is met again is compared by identity."""
        if id(value) in self.containers:
            former, _ = self.containers[id(value)]
            self._fail_if(f"{expression} is not {former}", f"whether {label} is also another argument")
            if id(value) in self._around:
                self._recorder.refuse("an argument contains itself")
            return
        name, kind, dynamic = self._container(expression, value, label), type(value), self._dynamic
        self._recorder.guards.enter(kind, f"the class of {label}")
        self._dynamic = dynamic and self._is_alone and kind in (list, dict)
        self._around.add(id(value))
        taken = self._take_items(name, value, label) if isinstance(value, list | tuple | dict) else {}
        if isinstance(attributes := getattr(value, "__dict__", None), dict):
            self._take_items(f"{name}.__dict__", attributes, label)
        for slot in slots_of(kind):
            if hasattr(value, slot):
                self._take(f"{name}.{slot}", getattr(value, slot), f"{label}.{slot}")
            else:
                self._fail_if(f"hasattr({name}, {slot!r})", f"{label}.{slot}")
        self._dynamic = dynamic
        self._around.remove(id(value))
        self._placed += [(value, key, item) for key, item in taken.items() if type(item) is Number]

    def _take_items(self, name: str, value: Tree, label: str) -> dict[Any, Tree]:
        """`_take` for the items of the list, tuple or dict called `name`, by their keys."""
        items = self._recorder.guards.each_item(name, value, label, self.lines)
        return {key: self._take(expression, item, path) for key, expression, item, path in items}


def _referrers(objects: list[Any], known: Collection[int]) -> list[Any]:
    """What refers to the objects, but for frames and those whose ids are known."""
    return [one for one in gc.get_referrers(*objects)
            if id(one) not in known and one is not objects and type(one) is not FrameType] if objects else []


def _replace(holder: Any, originals: Mapping[int, Any]) -> None:
    """Have a variable, container or object hold the originals of what it holds, by their ids."""
    if isinstance(holder, CellType):
        holder.cell_contents = originals[id(holder.cell_contents)]
    elif isinstance(holder, set):
        items = [originals.get(id(item), item) for item in holder]
        holder.clear()
        holder.update(items)
    elif isinstance(holder, BaseException):
        holder.args = originals.get(id(holder.args), holder.args)
    elif isinstance(holder, dict | list | deque):
        for key, item in [*holder.items()] if isinstance(holder, dict) else enumerate(holder):
            if id(item) in originals:
                holder[key] = originals[id(item)]
    else:
        for name in (*getattr(holder, "__dict__", ()), *slots_of(type(holder))):
            if id(item := getattr(holder, name, None)) in originals:
                object.__setattr__(holder, name, originals[id(item)])
