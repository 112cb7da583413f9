"""The hooks and the state of optimizers: a dictionary per parameter, in state dicts by the parameters' positions.

State that the library's optimizers keep has PyTorch's names in state dicts. That of optimizers with their own `step` is empty
until a step fills it; it is saved unchanged, and loaded by PyTorch's rules.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from genesis.autograd.hooks import RemovableHandle
from genesis.execution.flush import flush_all
from genesis.functions.creation import full_like
from genesis.functions.from_data import tensor
from genesis.ir.annotations import AnyFunction, Options, Tree
from genesis.ir.dtypes import float32
from genesis.optim.update_rule import in_both_parts
from genesis.tensor.composite import CompositeTensor, differentiated, like
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

State = dict[str, Any]  # a parameter's state, by name
Group = State  # "params" and their settings


class Hooked:
    """Registers the hooks of an `Optimizer`, by kind, and calls them in their order."""

    hooks: Mapping[str, OrderedDict[int, AnyFunction]] = MappingProxyType({})
    step: Callable[..., Any]

    def register_step_pre_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; a returned pair replaces both."""
        return self._hooked("step_pre", hook, steps=True)

    def register_step_post_hook(self, hook: AnyFunction) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._hooked("step_post", hook, steps=True)

    def register_state_dict_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before a state dict is made."""
        return self._hooked("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` with each state dict; a returned one replaces it."""
        return self._hooked("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before one is loaded; a returned one is loaded instead."""
        return self._hooked("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: AnyFunction, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after a state dict has been loaded."""
        return self._hooked("load_post", hook, prepend)

    def _hooked(self, kind: str, hook: AnyFunction, prepend: bool = False, steps: bool = False) -> RemovableHandle:
        by_kind = vars(self).setdefault("hooks", defaultdict(OrderedDict))
        if steps and "step" not in vars(self):  # an optimizer without such hooks calls `step` itself
            self.step = self._step_among_hooks
        return RemovableHandle(by_kind[kind], hook, prepend)

    def _step_among_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """The class's `step`, with the hooks around it."""
        given: tuple[Any, ...] = (self, *args)
        for hook in self._hooks_of("step_pre"):
            given, kwargs = hook(self, given, kwargs) or (given, kwargs)
        result = type(self).step(*given, **kwargs)
        for hook in self._hooks_of("step_post"):
            hook(self, given, kwargs)
        return result

    def _hooks_of(self, kind: str) -> list[AnyFunction]:
        return [*self.hooks.get(kind, {}).values()]

    def _through_hooks(self, kind: str, value: State) -> State:
        """`value`, or its replacement by hooks of the kind."""
        for hook in self._hooks_of(kind):
            found = hook(self, value)
            value = value if found is None else found
        return value

    def __getstate__(self) -> dict[str, Any]:
        """Copies have no hooks."""
        return {name: value for name, value in vars(self).items() if name not in ("step", "hooks")}


class States(dict[Any, State]):
    """The states of parameters, empty at first."""

    def __missing__(self, parameter: Tensor) -> State:
        return self.setdefault(parameter, {})


class Part(Protocol):
    """This process's part of the parameters: see `genesis.distributed.optim`."""

    def has(self, parameter: Tensor) -> bool:
        """Whether this process updates the parameter and keeps its state."""

    def share(self) -> None:
        """Send each process's updated parameters to all."""


class Stateful(Hooked):
    """The state of an `Optimizer`, and its state dicts."""

    keeps_own_state: ClassVar[bool] = False  # whether a class that is not the library's writes `step`, and keeps what it needs
    keeps_before_stepping = False  # whether state dicts show the state of a parameter that has not moved yet
    part: Part | None = None  # all parameters are moved here
    param_groups: list[Group]
    state: dict[Tensor, State]

    def slots(self, group: Group) -> tuple[str, ...]:
        """The names of the tensors kept per parameter."""
        raise NotImplementedError

    def first_value(self, slot: str, group: Group) -> float:
        """The initial value of a state tensor's elements."""
        return 0.0

    def has_here(self, parameter: Tensor) -> bool:
        """Whether this process updates the parameter and keeps its state."""
        return self.part is None or self.part.has(parameter)

    def state_of(self, parameter: Tensor, group: Group) -> State:
        """The state of `parameter`: "step", and a tensor per slot."""
        state = self.state[parameter]
        state.setdefault("step", 0)
        for slot in self.slots(group):
            if slot not in state:
                value = in_both_parts(self.first_value(slot, group), parameter.dtype)
                state[slot] = like(parameter, full_like(differentiated(parameter), value))
        return state

    def state_dict(self) -> State:
        """{"state": {position: state}, "param_groups": [settings, with positions for parameters]}, as PyTorch's."""
        positions: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                positions.setdefault(id(parameter), len(positions))
        for hook in self._hooks_of("state_dict_pre"):
            hook(self)
        groups = [{**{name: value for name, value in group.items() if name != "params"},
                   "params": [positions[id(p)] for p in group["params"]]} for group in self.param_groups]
        state = _packed(self.state if self.keeps_own_state else self._all_shown(), positions)
        return self._through_hooks("state_dict_post", {"state": state, "param_groups": groups})

    def _all_shown(self) -> dict[Tensor, State]:
        shown = {parameter: self.shown(group, self.state[parameter])  # a look at `state[parameter]` makes an empty one
                 for group in self.param_groups for parameter in group["params"] if self.state.get(parameter)}
        return {parameter: kept for parameter, kept in shown.items() if kept}

    def shown(self, group: Group, state: State) -> State:
        """A parameter's state for state dicts: PyTorch's names, "step" as a 0-d tensor."""
        if not (state["step"] or self.keeps_before_stepping):
            return {}
        return {**state, "step": tensor(float(state["step"]), dtype=float32)}

    def load_state_dict(self, state_dict: Options) -> None:
        """Load settings and (copied) state from `state_dict`. Raises ValueError if its groups have other sizes."""
        state_dict = self._through_hooks("load_pre", state_dict)  # type: ignore[arg-type]
        saved = state_dict["param_groups"]
        sizes, own = [len(g["params"]) for g in saved], [len(g["params"]) for g in self.param_groups]
        if sizes != own:
            raise ValueError(f"load_state_dict: groups of {sizes} parameters, want {own}")
        with grad_mode(False):
            for group, source in zip(self.param_groups, saved, strict=True):
                group.update({k: v for k, v in source.items() if k != "params"})
                if not self.keeps_own_state:
                    for position, parameter in zip(source["params"], group["params"], strict=True):
                        self._load(parameter, group, state_dict["state"].get(position))
            if self.keeps_own_state:
                taken = _unpacked(state_dict["state"], _parameters_at(saved, self.param_groups))
                self.__setstate__({"state": States(taken), "param_groups": self.param_groups})
            flush_all()
        for hook in self._hooks_of("load_post"):
            hook(self)

    def __setstate__(self, state: State) -> None:
        """Restore the attributes of a copy or pickle, or of a state dict for classes with their own state."""
        vars(self).update(state)

    def _load(self, parameter: Tensor, group: Group, saved: Options | None) -> None:
        """Load the state of `parameter`, copied; None removes it."""
        if saved is None or not self.has_here(parameter):
            self.state.pop(parameter, None)
            return
        state = self.state_of(parameter, group)
        state["step"] = int(saved.get("step", 1))  # PyTorch's SGD counts no steps
        for slot in self.slots(group):
            if slot in state and saved.get(slot) is not None:
                state[slot] = _loaded(saved[slot], state[slot])


def _loaded(value: Tree, own: Tensor) -> Tensor:
    """A copy of `value` (a tensor or array) like a parameter's `own` state, whose shape it has."""
    source = detach(value) if isinstance(value, Tensor) else tensor(value)
    if source.shape != own.shape:
        raise ValueError(f"load_state_dict: state of shape {source.shape}; want {own.shape}, as this parameter's own")
    if isinstance(own, CompositeTensor):
        return like(own, full_like(differentiated(own), 0)).copy_(source)
    return source.to(own, copy=True)


def _packed(state: Mapping[Any, Any], positions: Mapping[int, int]) -> dict[Any, Any]:
    """The state for a state dict: tensor keys become positions, and tensors are detached."""
    return {positions[id(key)] if isinstance(key, Tensor) else key: _each(value, lambda _, tensor: detach(tensor))
            for key, value in state.items()}


def _unpacked(saved: Mapping[Any, Any], parameters: Mapping[int, Tensor]) -> dict[Any, Any]:
    """Copies of a state dict's state, by parameter. Tensors are converted to the parameter's device and, if it is floating,
    dtype; step counts are not.
    """
    state: dict[Any, Any] = {}
    for key, value in saved.items():
        parameter = parameters.get(key) if isinstance(key, int) else None
        if parameter is None:
            state[key] = copy.deepcopy(value)
        else:
            state[parameter] = _each(value, lambda name, tensor, to=parameter: _taken(name, tensor, to))
    return state


def _parameters_at(saved_groups: list[Group], groups: list[Group]) -> dict[int, Tensor]:
    """The parameter of each position that the saved groups name."""
    positions = chain.from_iterable(group["params"] for group in saved_groups)
    return dict(zip(positions, chain.from_iterable(group["params"] for group in groups), strict=True))


def _taken(name: Any, tensor: Tensor, parameter: Tensor) -> Tensor:
    if name == "step":
        return tensor.clone()
    dtype = parameter.dtype if parameter.is_floating_point() else tensor.dtype
    return detach(tensor).to(parameter.device, dtype, copy=True)


def _each(value: Any, change: Any, name: Any = None) -> Any:
    """`value` with each tensor in it replaced by `change(name, tensor)`; the name is the innermost key."""
    if isinstance(value, Tensor):
        return change(name, value)
    if isinstance(value, dict):
        return {key: _each(part, change, key) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_each(part, change, name) for part in value)
    return value


NOT_REPLAYABLE = ("Hooked", "state_dict", "load_state_dict")
