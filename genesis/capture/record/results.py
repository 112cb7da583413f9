"""The results of a call, its return value and new gradients: described once, rebuilt by each replay."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

from genesis.capture.guards.kinds import data_base, is_scalar
from genesis.capture.record.recorder import Recorder
from genesis.capture.record.records import Leaves, Source, Values
from genesis.capture.record.sources import copied
from genesis.ir.annotations import Tree
from genesis.ir.dtypes import DType
from genesis.ir.named_layouts import NamedLayout
from genesis.ops.layout import Layout
from genesis.runtime.devices import Device
from genesis.tensor.bare_root import hold_no_derivation
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import Tensor, attributes_of, root_of, share_storage
from genesis.tensor.traced_number import Number
from genesis.tracing.trace import Array

_FLAGS = (
    "_requires_grad", "_element_map", "_detached", "_versions", "_keeps_derivation", "_is_inference", "_changes",
)
_DESCRIBED = {"_array", "_base", "_layout", "_seen", "_storage", "_is_holder", "_bare_root", "_detached_root", *_FLAGS}


@dataclasses.dataclass(eq=False)
class Recipe:
    """How to build a tensor that the call made: its value, its root if it is a view, its flags."""

    kind: type[Tensor]
    value: Any  # the source of its array; None for a view into its root's memory
    base: Any  # a Recipe, or a source; None for a root
    layout: Layout | None
    flags: list[tuple[str, object]]
    lag: int  # by how many versions it is behind its root
    is_shared: bool = False  # a gradient that the call returns, too, or of which it returns a view

    @property
    def key(self) -> tuple[int, int]:
        """(program, position) of its own value, if it has one."""
        key: tuple[int, int] = self.value[1:]
        return key

    @property
    def is_root(self) -> bool:
        """Whether it is a root in memory of its own."""
        return self.base is None and self.value[0] == "output" and not self.is_shared

    @property
    def is_plain(self) -> bool:
        """Whether it is an ordinary gradient: no view, not differentiable itself, not returned."""
        return self.kind is Tensor and self.is_root and self.flags == [("_keeps_derivation", True)]


def find(source: Source, leaves: Leaves) -> Any:
    """The tensor that `source` names, in a call with these leaves."""
    kind, value = source
    if kind == "tensor":
        return value.tensor
    if kind == "leaf":
        return leaves[value]
    owner = find(value, leaves)
    return owner._grad if kind == "gradient" else owner._base


class Results:
    """The results of a call.

    Attributes:
        gradients: the sources of tensors with a new `.grad`, and its Recipe or None.
        former_gradients: the sources of gradients among the results, looked up before the call, which may replace them.
        is_new: whether the return value can be built before the program runs, and before tensors are overwritten.
        tree: the return value, as (how to build it, from what).
    """

    def __init__(self, recorder: Recorder, result: Tree, containers: set[int]) -> None:
        self._recorder: Any = recorder
        self._given = len(recorder.arguments.leaves)
        self.former_gradients: list[Source] = []
        self._recipes: dict[int, Recipe] = {}
        self._holders: list[Tensor] = []  # detached tensors, views of which are returned
        self._containers = containers
        self._new_containers: dict[int, tuple[str, Any] | None] = {}  # None: while it is described
        self.gradients: list[tuple[Source, Recipe | None]] = []
        for tensor, state in recorder.states.items():
            gradient, source = tensor._grad, recorder.sources.source_of(tensor)
            if source is None and state.reads_gradient is None:
                continue
            if gradient is state.gradient and source is not None and (state.reads_gradient is not False or gradient is None):
                continue
            if source is None:
                recorder.refuse("`.grad` of a tensor is looked at or set that no argument, name or attribute leads to")
            elif gradient is None:
                self.gradients.append((source, None))
            elif gradient in recorder.states:
                recorder.refuse("a tensor that was there before becomes a gradient")
            else:
                self.gradients.append((source, self._recipe(gradient)))
        self._looks = False
        self.tree = self._describe(result)
        self._recorder = None
        self.is_new = not self._looks and all(
            recipe.value is not None and (recipe.base is None or recipe.base.__class__ is Recipe)
            for recipe in self._recipes.values())

    # ---- describing ----

    def _describe(self, value: Any) -> tuple[str, Any]:
        """The return value, as (how to build it, from what)."""
        recorder = self._recorder
        if isinstance(value, Tensor):
            return self._describe_tensor(value)
        # `type`, as `isinstance` takes a Number for the number that it stands for.
        if type(value) is Number and value.source[0] == "item":
            self._looks = True
            return "item", self._describe(value.source[1])
        if type(value) is Number:
            return ("leaf", value.source[1]) if value.source[0] == "leaf" else ("same", value.fixed())
        if is_scalar(value) or isinstance(value, DType | Device | NamedLayout | range):
            return "same", value
        if id(value) in self._containers:
            recorder.refuse("a container that was given is returned")
        if recorder.guards.has_entered(value):  # from before the call: guards compare its contents
            if recorder.guards.met:
                recorder.refuse("an object is returned that the call may have made, beside one that no name leads to")
            return "same", value
        if isinstance(value, tuple):
            return self._describe_parts(value)
        if id(value) not in self._new_containers:
            self._new_containers[id(value)] = None
            self._new_containers[id(value)] = self._describe_parts(value)
        known = self._new_containers[id(value)]
        if known is None:
            recorder.refuse("a container is returned that contains itself")
        return known or ("same", None)

    def _describe_parts(self, value: Any) -> tuple[str, Any]:
        """A container as ("made of", (how to make it of its parts, the parts))."""
        kind: Any = type(value)
        base, make = data_base(kind), kind
        if isinstance(value, dict) and not all(map(self._lasts, dict.keys(value))):
            self._recorder.refuse("the call made a key of a dict that it returns")
        if kind in (list, tuple):
            parts = value
        elif kind is dict:
            make, parts = partial(dict_of, [*value]), value.values()
        elif isinstance(value, tuple) and hasattr(value, "_fields") and not getattr(value, "__dict__", None):
            make, parts = partial(tuple.__new__, kind), tuple.__iter__(value)
        elif base is not None:
            items = dict(base.items(value)) if issubclass(base, dict) else {}
            parts = [*(base.__iter__(value) if base is list else items.values()), *vars(value).values()]
            make = partial(object_of, kind, base, [*items], [*vars(value)])
        else:
            self._recorder.refuse(f"it returns a {kind.__name__}")
            return "same", None
        return "made of", (make, [*map(self._describe, parts)])

    def _lasts(self, key: object) -> bool:
        """Whether a key is the same in each call."""
        return is_scalar(key) or isinstance(key, DType | Device) or self._recorder.guards.has_entered(key) or (
            type(key) is tuple and all(map(self._lasts, key)))

    def _describe_tensor(self, tensor: Tensor) -> tuple[str, Any]:
        recorder = self._recorder
        if isinstance(tensor, CompositeTensor):
            if id(tensor) in self._containers or recorder.guards.has_entered(tensor):
                recorder.refuse("a tensor is returned that was given, and is made of several")
            parts = dict(tensor.part_tensors())
            return "made of", (partial(object_of, type(tensor), object, [], [*vars(tensor)]), [
                self._describe(parts[name]) if name in parts else ("same", item) for name, item in vars(tensor).items()])
        if tensor not in recorder.states:
            return "made", self._recipe(tensor)
        return "found", self._lasting(tensor)

    def _recipe(self, tensor: Tensor) -> Recipe:
        known = self._recipes.get(id(tensor))
        if known is not None:
            known.is_shared = True
            return known
        recorder, base = self._recorder, None if tensor._base is None else root_of(tensor)
        own = attributes_of(tensor).keys() - _DESCRIBED
        if any(getattr(tensor, name) is not getattr(Tensor, name, None) for name in own if name != "_grad") or (
            tensor._grad is not None or tensor._retains_grad
        ):
            recorder.refuse("a tensor with attributes of its own is returned")
        root: Recipe | Source | None = None
        if base is not None:
            root = self._lasting(base) if base in recorder.states else self._recipe(base)
            recorder.wholes.add(recorder.sources.source_of(base))  # guards compare the whole layout, with offsets
        value: Source | None = None
        if id(tensor._array) in recorder.outputs:
            value = ("output", *recorder.outputs[id(tensor._array)])
        elif base is None:
            value = ("constant", recorder.sources.kept(tensor._array))
            if value[1] is None:
                recorder.refuse("a tensor is returned whose value is none of the program's")
        elif tensor.dtype is not base.dtype or tensor._element_map is not None:
            recorder.refuse("a view of the parts or conjugates of a complex tensor is returned")
        elif tensor._array.node.differentiable:
            recorder.refuse("a view with a derivation of its own is returned")
        flags = [(name, copy(flag)) for name in _FLAGS if (flag := getattr(tensor, name)) != getattr(Tensor, name, False)]
        if (holder := tensor._detached_root) is not None:
            self._holders.append(holder)
        if any([one is tensor or one in recorder.states or id(one) in self._recipes for one in self._holders]):
            recorder.refuse("a view of a detached tensor is returned beside that")
        # A view that is behind its root re-reads at its next use; a replay must leave the same lag.
        lag = 0 if base is None else base._changes - tensor._seen
        recipe = Recipe(type(tensor), value, root, tensor._layout, flags, lag)
        self._recipes[id(tensor)] = recipe
        return recipe

    def _lasting(self, tensor: Tensor) -> Source:
        """The source of a tensor from before the call, or the leaf that stands for it if it leads through a gradient."""
        source = step = self._recorder.sources.source_of(tensor)
        if source is None:
            self._recorder.refuse("a tensor, or a view of one, is returned that no argument, name or attribute leads to")
            return ()
        while step[0] in ("gradient", "base"):
            if step[0] == "gradient":
                self.former_gradients.append(source)
                return "leaf", self._given + len(self.former_gradients) - 1
            step = step[1]
        return source

    # ---- building ----

    def views_in(self, program: int) -> list[Recipe]:
        """The recipes of up-to-date views of a root, where both are values of one program."""
        return [
            recipe for recipe in self._recipes.values()
            if recipe.base.__class__ is Recipe and recipe.layout is not None and not recipe.lag
            and "_element_map" not in dict(recipe.flags)
            and all(one.value is not None and one.value[:2] == ("output", program) for one in (recipe, recipe.base))]

    def with_former_gradients(self, leaves: Leaves) -> Leaves:
        """The leaves of a call to be replayed, followed by the gradients of `former_gradients`."""
        return *leaves, *[find(source, leaves) for source in self.former_gradients]


def build(description: tuple[str, Any], values: Values, leaves: Leaves, made: dict[int, Any]) -> Any:
    """The return value, or a part of it, from results of programs and a call's leaves; `made` is what was built so far."""
    how, what = description
    part = partial(build, values=values, leaves=leaves, made=made)
    if how == "made":
        return build_tensor(what, values, leaves, made)
    if how == "same":
        return what
    if how == "found":
        return find(what, leaves)
    if how == "leaf":
        return leaves[what]
    if how == "item":
        return part(what).item()
    if id(what) not in made:  # else a container that is returned in two places
        make, parts = what
        made[id(what)] = make([*map(part, parts)])
    return made[id(what)]


def build_tensor(recipe: Recipe, values: Values, leaves: Leaves, made: dict[int, Tensor]) -> Tensor:
    """A recipe's tensor, which is built once a call."""
    known = made.get(id(recipe))
    if known is not None:
        return known
    base, value = recipe.base, recipe.value
    result: Tensor = object.__new__(recipe.kind)
    made[id(recipe)] = result
    result._requires_grad = False
    if base is not None:
        root = build_tensor(base, values, leaves, made) if base.__class__ is Recipe else find(base, leaves)
        share_storage(result, root, recipe.layout)
        result._seen -= recipe.lag
    if value is None:
        result._array = array_in(recipe.layout, root)
    else:
        result._array = copied(value[1]) if value[0] == "constant" else values[recipe.key]
    for name, flag in recipe.flags:
        setattr(result, name, copy(flag))
    if base is not None and result._detached:
        hold_no_derivation(result, root)
    return result


def dict_of(keys: Sequence[object], values: Sequence[object]) -> dict[object, object]:
    return dict(zip(keys, values, strict=True))


def object_of(kind: type, base: Any, keys: Sequence[object], names: Sequence[str], values: Sequence[object]) -> Any:
    """An instance of a class derived from `base`, with these items, then these attributes."""
    result, count = base.__new__(kind), len(values) - len(names)
    if base is list:
        base.extend(result, values[:count])
    for key, value in zip(keys, values, strict=False):
        base.__setitem__(result, key, value)
    result.__dict__.update(zip(names, values[count:], strict=True))
    return result


def array_in(layout: Layout | None, root: Tensor) -> Array:
    """An array over the memory of `root`, which is computed, with this layout."""
    whole = root._array
    assert whole.memory is not None and layout is not None
    memory = whole.memory.at(layout, whole.node.dtype, whole.node.dtype)
    return Array.over(memory, whole.node.dtype)
