"""The base of optimizers: parameter groups, their state, and a step that is one run of one program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, ClassVar, Protocol

from genesis.execution.failure import take_back_writes
from genesis.execution.flush import flush_all
from genesis.functions.creation import full_like
from genesis.functions.from_data import tensor
from genesis.ir.annotations import AnyFunction, Arguments, Options, Tree
from genesis.ir.dtypes import float32
from genesis.ir.errors import ArgumentError
from genesis.ir.graph import MOST_BYTES
from genesis.ir.replayable import replayable_module
from genesis.ir.shapes import reach
from genesis.nn.parameter import is_lazy
from genesis.ops.registry import Operation
from genesis.optim.hooks import HookHandle, OptimizerHooks
from genesis.optim.own_state import packed, parameters_at, unpacked
from genesis.optim.update_rule import in_both_parts
from genesis.runtime.devices import Device, seen_devices
from genesis.sparse.sparse_tensor import SparseTensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.in_place import write_all
from genesis.tensor.views import detach
from genesis.tracing.recording_hooks import optimizer_stepped, optimizer_updates, refuse
from genesis.tracing.scopes import innermost
from genesis.tracing.state import recording, recording_in, thread_state, unflushed

State = dict[str, Any]  # a parameter's state, by name
Group = State  # "params" and their settings
Numbers = Arguments  # an operation's arguments after its tensors
Closure = Callable[[], Any]  # computes the loss and its gradients, returns the loss
Members = Tensor | Iterable[Tensor] | Iterable[Group]
HINTS = ("foreach", "fused", "capturable", "differentiable")  # PyTorch's ways to run a step; here a step is always one program


class Part(Protocol):
    """This process's part of the parameters: see `genesis.distributed.optim`."""

    def has(self, parameter: Tensor) -> bool:
        """Whether this process updates the parameter and keeps its state."""

    def share(self) -> None:
        """Send each process's updated parameters to all."""


class Optimizer:
    """The base of optimizers. Subclasses name the `operation` of a step, its numbers in `settings`, its tensors in `slots`;
    `DeclaredOptimizer` derives the rest from a table of settings.

    Args:
        parameters: tensors, or dicts with tensors under "params" and their own settings.
        defaults: the settings for groups without their own.
        hints: `foreach`, `fused` and `capturable`, without effect; `differentiable` must not be true.

    Raises ValueError for no parameters, a tensor that is not a leaf or is given twice, and `differentiable`; TypeError for
    other hints.
    """

    has_stepped = False  # read by schedulers
    keeps_own_state: ClassVar[bool] = False  # whether a class that is not the library's writes `step`, and keeps what it needs
    is_elementwise: ClassVar[bool] = False  # whether an element moves by its own gradient and state: ranks may then have parts
    fixed: ClassVar[Options] = {}  # group settings that the constructor does not take
    instead = ""  # advice in errors about sparse gradients
    keeps_before_stepping = False  # whether state dicts show the state of a parameter that has not moved yet
    hooks: OptimizerHooks | None = None
    part: Part | None = None  # all parameters are moved here
    steps_by_addition: ClassVar[bool] = False  # whether PyTorch's step ends in `parameter.add_(..)`, which classes may override
    has_own_addition = False  # whether the class of a parameter does

    def __init_subclass__(cls) -> None:
        if "is_elementwise" not in vars(cls) and not {"operation", "step", "update"}.isdisjoint(vars(cls)):
            cls.is_elementwise = False
        if "step" in vars(cls):
            cls.keeps_own_state = cls.has_stepped = not cls.__module__.startswith("genesis.")

    def __init__(self, params: Members, defaults: Group, hints: Options | None = None) -> None:
        if unknown := (hints or {}).keys() - {*HINTS}:
            raise TypeError(f"{type(self).__name__}: got unexpected settings {', '.join(sorted(unknown))}")
        if hints and hints.get("differentiable"):
            raise ValueError(f"{type(self).__name__}: steps are not derived; want differentiable=False")
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = defaultdict(dict)
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: params argument given to the optimizer should be an iterable of Tensors or dicts, but "
                f"got a Tensor of shape {params.shape}; want [tensor]")
        listed: list[Tree] = list(params)
        if not listed:
            raise ValueError(f"{type(self).__name__}: got no parameters")
        groups: list[Group] = listed if isinstance(listed[0], dict) else [{"params": listed}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Update the tensors of `param_group["params"]` too, with the group's own settings where it has some."""
        name, group = type(self).__name__, param_group
        members = [group["params"]] if isinstance(group["params"], Tensor) else list(group["params"])
        members, names = _named(members)
        if names or "param_names" in group:
            group = {**group, "param_names": names or group["param_names"]}
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ValueError(f"{name}: all optimizer param groups should be with/without names; cannot add another kind")
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for parameter in members:
            self._check_parameter(parameter)
            if id(parameter) in known:
                raise ValueError(f"{name}: a parameter of shape {parameter.shape} is given twice")
            known.add(id(parameter))
        group = {**group, "params": members}
        for setting, value in {**self.defaults, **self.fixed}.items():
            group.setdefault(setting, value)
        if isinstance(group.get("lr"), Tensor) and group["lr"].numel() != 1:
            raise ValueError(f"{name}: Tensor lr must be 1-element, got shape {group['lr'].shape}")
        if self.steps_by_addition and any(type(parameter).add_ is not Tensor.add_ for parameter in members):
            self.has_own_addition = True
        self.check(group)
        self.param_groups.append(group)
        for parameter in members:  # one without a shape has its state when it is moved
            here = self.part is None or self.part.has(parameter)
            if here and parameter.requires_grad and not self.keeps_own_state and not is_lazy(parameter):
                self.state_of(parameter, group)
        flush_all()  # initial values are computed here, so that the first step runs the program of every step

    def _check_parameter(self, parameter: object) -> None:
        """Raise TypeError or ValueError for an object that this optimizer cannot update."""
        name = type(self).__name__
        if not isinstance(parameter, Tensor):
            raise TypeError(f"{name}: can only optimize Tensors, but one of the params is {type(parameter).__name__}")
        if not parameter.is_leaf:
            raise ValueError(f"{name}: wants leaf tensors, got {type(parameter).__name__} {parameter!r}")
        if parameter.dtype.is_complex and not self.takes_complex:
            raise ArgumentError(f"{name} does not support complex parameters; want their real and imaginary parts apart")
        if hasattr(parameter, "sharding") and not self.is_elementwise:
            raise ArgumentError(
                f"{name}: a rank has a part of shape {parameter.shape} of this parameter, and {name} is not known to move "
                "each element by its own gradient alone, so its step would be another one; want one that does, such as "
                "AdamW, or whole parameters. A class of yours that does says so: is_elementwise = True")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or set them to zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.zero_grad(set_to_none)

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters that have a gradient; returns the result of `closure`, which is called first.

        All pending work runs here, as one program per device.
        """
        loss = None
        self.has_stepped = True
        if closure is not None:
            with recording(True) as again, again:
                loss = closure()
        optimizer_stepped(self)
        moved: list[tuple[Tensor, int, int]] = []
        recorded = {trace: len(trace.nodes) for trace in [*thread_state.traces.values()]}
        try:
            here = innermost.scope, type(self).__name__, None
            with recording_in(here, False) as inside, inside:
                for group in self.param_groups:
                    self._step(group, moved)
                if self.part is not None:
                    self.part.share()
                if thread_state.recorder is None:  # under `genesis.compile` the step is part of the function's program
                    flush_all()
        except BaseException:
            for trace in unflushed():
                if trace.run is None:  # which has not been left half done
                    take_back_writes(trace, range(recorded.get(trace, 0), len(trace.nodes)))
            for parameter, before, age in moved:
                if id(parameter._array) == before:
                    self.state[parameter]["step"] = age
            raise
        return loss

    def _step(self, group: Group, moved: list[tuple[Tensor, int, int]]) -> None:
        """Count the step of those of a group that have a gradient, and move them; `moved` takes them, what they hold before
        (its id alone, for it is to have no more owners, so that its memory can be written over) and their age.
        """
        members = group["params"] if self.part is None else [p for p in group["params"] if self.part.has(p)]
        wanted = {"step", *self.slots(group)}
        by_age: dict[tuple[int, Device | None, bool, int], list[Tensor]] = {}
        taken: dict[int, tuple[int, int]] = {}
        is_recorded = thread_state.recorder is not None
        for parameter in members:
            gradient = parameter.grad if is_recorded else parameter._grad  # the property notifies the recorder
            if gradient is not None:
                state = self.state[parameter]
                if wanted.difference(state):
                    state = self.state_of(parameter, group)
                age = state["step"]
                moved += ((parameter, id(parameter._array), age),)
                state["step"] = age + 1
                device = parameter.device if seen_devices else None
                turn = _turn(parameter, taken)
                by_age.setdefault((age + 1, device, gradient.__class__ is SparseTensor, turn), []).append(parameter)
        for (age, _, is_sparse, _), parameters in sorted(by_age.items(), key=_by_turn):
            if is_sparse:
                refuse("a gradient is sparse")
                gradients: list[Any] = [parameter.grad for parameter in parameters]
                self.update_sparse(parameters, gradients, group, age)
            elif self.has_own_addition:
                self._update_by_addition(parameters, group, age)
            else:
                self.update(parameters, group, age)

    def _update_by_addition(self, parameters: list[Tensor], group: Group, age: int) -> None:
        """Move `parameters`, those whose class overrides `add_` by its method: a point on a manifold stays there."""
        own = [(p, p.as_subclass(Tensor).detach()) for p in parameters if type(p).add_ is not Tensor.add_]
        before = [plain.clone() for _, plain in own]
        self.update(parameters, group, age)
        for (parameter, plain), value in zip(own, before, strict=True):
            step = plain - value
            plain.copy_(value)
            parameter.add_(step)

    # ---- what a subclass defines ----

    operation: Operation  # it computes new values of the parameters, and then of what is kept of them
    takes_complex = True
    kinds: tuple[str, ...] = ()  # all slots there may be, in the order of the operation's arguments

    def check(self, group: Group) -> None:
        """Raise ValueError for invalid settings."""

    def slots(self, group: Group) -> tuple[str, ...]:
        """The names of the tensors kept per parameter: of `kinds`, those that these settings use."""
        return self.kinds

    def first_value(self, slot: str, group: Group) -> float:
        """The initial value of a state tensor's elements."""
        return 0.0

    def settings(self, group: Group, age: int) -> Numbers:
        """The numbers of step `age`: arguments of `operation` after the tensors."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} has neither settings(group, age), its operation's numbers, nor a step() of its own")

    def update(self, parameters: list[Tensor], group: Group, age: int) -> None:
        """Update `parameters` in step number `age`."""
        self._update(parameters, group, age, self.slots(group))

    def _update(
        self, parameters: list[Tensor], group: Group, age: int, slots: tuple[str, ...], gradients: Sequence[Tensor | None] = ()
    ) -> None:
        settings = self.settings(group, age)
        kept = [[self.state[p][kind] for p in parameters] if kind in slots else [] for kind in self.kinds]
        settings = optimizer_updates(self, group, parameters, settings)
        results = call(self.operation, (parameters, gradients or [p._grad for p in parameters], *kept, *settings), bare=True)
        write_all([*parameters, *chain(*kept)], results)

    def update_sparse(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        """Update `parameters` by sparse gradients. Raises RuntimeError if the optimizer does not support them."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{self.instead}")

    # ---- state ----

    def state_of(self, parameter: Tensor, group: Group) -> State:
        """The state of `parameter`: "step", and a tensor per slot."""
        state = self.state[parameter]
        if not state:
            state["step"] = 0
        for slot in self.slots(group):
            if slot not in state:
                state[slot] = full_like(parameter, in_both_parts(self.first_value(slot, group), parameter.dtype))
        return state

    def state_dict(self) -> State:
        """{"state": {position: state}, "param_groups": [settings, with positions for parameters]}, as PyTorch's."""
        positions: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                positions[id(parameter)] = len(positions)
        if self.hooks is not None:
            self.hooks.call("state_dict_pre", self)
        groups = [{**{name: value for name, value in group.items() if name != "params"},
                   "params": [positions[id(p)] for p in group["params"]]} for group in self.param_groups]
        state = packed(self.state if self.keeps_own_state else self._all_shown(), positions)
        made: State = {"state": state, "param_groups": groups}
        return made if self.hooks is None else self.hooks.passed("state_dict_post", self, made)

    def _all_shown(self) -> dict[Tensor, State]:
        shown = {parameter: self.shown(group, self.state[parameter])
                 for group in self.param_groups for parameter in group["params"] if parameter in self.state}
        return {parameter: kept for parameter, kept in shown.items() if kept}

    def shown(self, group: Group, state: State) -> State:
        """A parameter's state for state dicts: PyTorch's names, "step" as a 0-d tensor."""
        if not (state["step"] or self.keeps_before_stepping):
            return {}
        return {**state, "step": tensor(float(state["step"]), dtype=float32)}

    def load_state_dict(self, state_dict: Options) -> None:
        """Load settings and (copied) state from `state_dict`. Raises ValueError if its groups have other sizes."""
        if self.hooks is not None:
            state_dict = self.hooks.passed("load_pre", self, state_dict)
        saved = state_dict["param_groups"]
        sizes, own = [len(g["params"]) for g in saved], [len(g["params"]) for g in self.param_groups]
        if sizes != own:
            raise ValueError(f"load_state_dict: groups of {sizes} parameters, want {own}")
        with recording(False) as again, again:
            for group, source in zip(self.param_groups, saved, strict=True):
                group.update({k: v for k, v in source.items() if k != "params"})
                if not self.keeps_own_state:
                    for position, parameter in zip(source["params"], group["params"], strict=True):
                        self._load(parameter, group, state_dict["state"].get(position))
            if self.keeps_own_state:
                taken = unpacked(state_dict["state"], parameters_at(saved, self.param_groups))
                self.__setstate__({"state": defaultdict(dict, taken), "param_groups": self.param_groups})
            flush_all()
        if self.hooks is not None:
            self.hooks.call("load_post", self)

    # ---- hooks ----

    def register_step_pre_hook(self, hook: AnyFunction) -> HookHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; a returned pair replaces both."""
        return self._hooked("step_pre", hook, steps=True)

    def register_step_post_hook(self, hook: AnyFunction) -> HookHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._hooked("step_post", hook, steps=True)

    def register_state_dict_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> HookHandle:
        """Call `hook(optimizer)` before a state dict is made."""
        return self._hooked("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook: AnyFunction, prepend: bool = False) -> HookHandle:
        """Call `hook(optimizer, state_dict)` with each state dict; a returned one replaces it."""
        return self._hooked("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: AnyFunction, prepend: bool = False) -> HookHandle:
        """Call `hook(optimizer, state_dict)` before one is loaded; a returned one is loaded instead."""
        return self._hooked("load_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: AnyFunction, prepend: bool = False) -> HookHandle:
        """Call `hook(optimizer)` after a state dict has been loaded."""
        return self._hooked("load_post", hook, prepend)

    def _hooked(self, kind: str, hook: AnyFunction, prepend: bool = False, steps: bool = False) -> HookHandle:
        if self.hooks is None:
            self.hooks = OptimizerHooks()
        if steps and "step" not in vars(self):  # an optimizer without such hooks calls `step` itself
            self.step = self.hooks.around(self, type(self).step)  # type: ignore[method-assign]
        return self.hooks.add(kind, hook, prepend)

    def __getstate__(self) -> State:
        """Copies have no hooks."""
        return {name: value for name, value in vars(self).items() if name not in ("step", "hooks")}

    def __setstate__(self, state: State) -> None:
        """Restore the attributes of a copy or pickle, or of a state dict for classes with their own state."""
        vars(self).update(state)

    def _load(self, parameter: Tensor, group: Group, saved: Options | None) -> None:
        """Load the state of `parameter`, copied; None removes it."""
        if saved is None or not (self.part is None or self.part.has(parameter)):
            self.state.pop(parameter, None)
            return
        state = self.state_of(parameter, group)
        state["step"] = int(saved.get("step", 1))  # PyTorch's SGD counts no steps
        for slot in self.slots(group):
            if saved.get(slot) is not None:
                state[slot] = _copied(saved[slot], parameter)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [""] * (number > 0) + [f"Parameter Group {number}"]
            lines += [f"    {name}: {value}" for name, value in sorted(group.items()) if name != "params"]
        return "\n".join([*lines, ")"])


def _by_turn(item: tuple[tuple[int, Device | None, bool, int], list[Tensor]]) -> int:
    return item[0][-1]


def _turn(parameter: Tensor, taken: dict[int, tuple[int, int]]) -> int:
    """The number of the call that updates a parameter. Of parameters that share memory, each adds to what the one before it has
    written, so each has a call of its own; views behind all former ones share the first.

    `taken` has, by root, the end of the bytes that have been moved, and the last turn."""
    root, layout = root_of(parameter), parameter._layout
    low, high = 0, MOST_BYTES
    if layout is not None and parameter._element_map is None:
        low, high = ((layout.offset + end) * parameter.dtype.itemsize for end in reach(layout.shape, layout.strides))
    end, last = taken.get(id(root), (0, 0))
    turn = last + 1 if low < end else 1
    taken[id(root)] = max(end, high), max(last, turn)
    return turn


def _named(members: Sequence[Tree]) -> tuple[list[Tree], list[str]]:
    """The parameters among `members`, and their names if these are pairs. Raises ValueError if only some are."""
    pairs = [isinstance(member, tuple) and len(member) == 2 and isinstance(member[0], str) for member in members]
    if not any(pairs):
        return list(members), []
    if not all(pairs):
        raise ValueError("all optimizer params should be with/without names; some param names are missing")
    return [parameter for _, parameter in members], [name for name, _ in members]


def _copied(value: Tree, parameter: Tensor) -> Tensor:
    """A copy of `value` (a tensor or array of the parameter's shape) in the parameter's dtype."""
    source = detach(value) if isinstance(value, Tensor) else tensor(value)
    if source.shape != parameter.shape:
        raise ValueError(f"load_state_dict: state of shape {source.shape} for a parameter of shape {parameter.shape}")
    return source.to(parameter, copy=True)


replayable_module(__name__, but=("add_param_group", "state_dict", "load_state_dict"))
