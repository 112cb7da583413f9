"""The base of optimizers: parameter groups, their state, and a step that is one run of one program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, ClassVar

from genesis.execution.failure import lost, take_back_writes
from genesis.execution.flush import flush_all
from genesis.ir.annotations import Arguments, Options, Tree
from genesis.ir.errors import ArgumentError
from genesis.ir.graph import MOST_BYTES
from genesis.ir.shapes import numel, reach
from genesis.nn.parameter import is_lazy
from genesis.ops.registry import Operation
from genesis.optim.state import Group, State, Stateful, States
from genesis.runtime.devices import Device, seen_devices
from genesis.sparse.sparse_tensor import SparseTensor, coalesced, flat_positions
from genesis.tensor.composite import CompositeTensor, differentiated
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, root_of
from genesis.tensor.in_place import write, write_all
from genesis.tracing.recording_hooks import optimizer_updates, optimizer_used, refuse, unwatched
from genesis.tracing.state import grad_mode, thread_mode, thread_state, unflushed

Numbers = Arguments  # an operation's arguments after its tensors
Closure = Callable[[], Any]  # computes the loss and its gradients, returns the loss
Members = Tensor | Iterable[Tensor] | Iterable[Group]
HINTS = ("foreach", "fused", "capturable", "differentiable")  # PyTorch's ways to run a step; here a step is always one program


class Optimizer(Stateful):
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
    is_elementwise: ClassVar[bool] = False  # whether an element moves by its own gradient and state: ranks may then have parts
    fixed: ClassVar[Options] = {}  # group settings that the constructor does not take
    instead = ""  # advice in errors about sparse gradients
    steps_by_addition: ClassVar[bool] = False  # whether PyTorch's step ends in `parameter.add_(..)`, which classes may override
    has_composites = False  # whether some parameters are made of other tensors, of which it moves one
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
        self.state: dict[Tensor, State] = States()
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
        if isinstance(group["params"], set):
            raise TypeError(f"{name}: a set of parameters has no order that lasts; want a list")
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
        self.has_composites |= any(isinstance(parameter, CompositeTensor) for parameter in members)
        if self.steps_by_addition and any(type(parameter).add_ is not Tensor.add_ for parameter in members):
            self.has_own_addition = True
        self.check(group)
        self.param_groups.append(group)
        for parameter in members:  # one without a shape has its state when it is moved
            has_state = parameter.requires_grad and not self.keeps_own_state and not is_lazy(parameter)
            if has_state and self.has_here(parameter):
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
        if getattr(parameter, "sharding", None) is not None and not self.is_elementwise:
            raise ArgumentError(
                f"{name}: a rank has a part of this parameter of shape {tuple(parameter.shape)}, and {name} is not known to "
                "move each element by its own gradient alone, so its step would be another one; want one that does, such as "
                "AdamW, or whole parameters. A class of yours that does says so: is_elementwise = True")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or set them to zeros."""
        optimizer_used(self)
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
            with grad_mode(True):
                loss = closure()
        optimizer_used(self)
        moved: list[tuple[Tensor, int, int]] = []
        recorded = {trace: len(trace.nodes) for trace in [*thread_state.traces.values()]}
        try:
            here = thread_state.scope, type(self).__name__, None
            with thread_mode("grad_enabled", False), thread_mode("scope", here):
                for group in self.param_groups:
                    self._step(group, moved)
                if self.part is not None:
                    self.part.share()
                if thread_state.recorder is None:  # under `genesis.compile` the step is part of the function's program
                    flush_all()
            for trace in recorded:
                if trace.lost:  # a signal handler has met the failure first
                    raise lost(trace)
        except BaseException:
            for trace in unflushed():
                if trace.run is None:  # which has not been left half done
                    take_back_writes(trace, range(recorded.get(trace, 0), len(trace.nodes)))
            for parameter, before, age in moved:
                if id(differentiated(parameter)._array) == before:
                    self.state[parameter]["step"] = age
            raise
        return loss

    def _step(self, group: Group, moved: list[tuple[Tensor, int, int]]) -> None:
        """Count the step of those of a group that have a gradient, and move them; `moved` takes them, what they hold before
        (its id alone, for it is to have no more owners, so that its memory can be written over) and their age.
        """
        members = group["params"] if self.part is None else [*filter(self.part.has, group["params"])]
        wanted = {"step", *self.slots(group)}
        rounds: defaultdict[int, dict[tuple[int, Device | None, bool], list[Tensor]]] = defaultdict(dict)
        taken: dict[int, tuple[int, int]] = {}
        is_recorded = thread_state.recorder is not None
        for parameter in members:
            leaf = differentiated(parameter) if self.has_composites else parameter
            gradient = leaf.grad if is_recorded else leaf._grad  # the property notifies the recorder
            if gradient is not None:
                state = self.state[parameter]
                if wanted.difference(state):
                    state = self.state_of(parameter, group)
                age = state["step"]
                moved += ((parameter, id(leaf._array), age),)
                state["step"] = age + 1
                device = leaf.device if seen_devices else None
                alike = rounds[_round_of(leaf, taken)]
                alike.setdefault((age + 1, device, gradient.__class__ is SparseTensor), []).append(parameter)
        for number in sorted(rounds):
            for (age, _, is_sparse), parameters in rounds[number].items():
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
        if self.has_composites:
            parameters, *kept = [[*map(differentiated, tensors)] for tensors in (parameters, *kept)]
        _move(self.operation, [*parameters, *chain(*kept)],
              (parameters, gradients or [p._grad for p in parameters], *kept, *settings))

    def update_sparse(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        """Update `parameters` by sparse gradients. Raises RuntimeError if the optimizer does not support them."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{self.instead}")

    def _update_rows(self, parameters: list[Tensor], gradients: list[SparseTensor], group: Group, age: int) -> None:
        """Run the operation on the rows of sparse gradients, of the parameters and their state."""
        slots, settings = self.slots(group), self.settings(group, age)
        for parameter, gradient in zip(parameters, map(coalesced, gradients), strict=True):
            at, elements = flat_positions(gradient._positions, gradient.extents), gradient.values()
            whole = [parameter, *[self.state[parameter][slot] for slot in slots]]
            shape = (numel(gradient.extents), *elements.shape[1:])
            flat = [one if one.shape == shape else one.reshape(shape) for one in whole]  # a table is written in place
            rows = [[one[at]] for one in flat]
            kept = dict(zip(slots, rows[1:], strict=True))
            results = call(self.operation, (rows[0], [elements], *[kept.get(kind, []) for kind in self.kinds], *settings))
            for one, before, new in zip(whole, flat, results, strict=True):
                after = before.index_copy(0, at, new)
                write(one, after if before is one else after.reshape(one.shape))

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += [""] * (number > 0) + [f"Parameter Group {number}"]
            lines += [f"    {name}: {value}" for name, value in sorted(group.items()) if name != "params"]
        return "\n".join([*lines, ")"])


@unwatched
def _move(operation: Operation, tensors: Sequence[Tensor], arguments: Arguments) -> None:
    """Write the results of an operation over `tensors`."""
    write_all(tensors, call(operation, arguments, bare=True))


def _round_of(parameter: Tensor, taken: dict[int, tuple[int, int]]) -> int:
    """The number of the round that updates a parameter. Of parameters that share memory, each adds to what the one before it
    has written, so each has a round of its own; views behind all former ones share the first.

    `taken` has, by root, the end of the bytes that have been moved, and the last round.
    """
    root, layout = root_of(parameter), parameter._layout
    low, high = 0, MOST_BYTES
    if layout is not None and parameter._element_map is None:
        low, high = ((layout.offset + end) * parameter.dtype.itemsize for end in reach(layout.shape, layout.strides))
    end, last = taken.get(id(root), (0, 0))
    number = last + 1 if low < end else 1
    taken[id(root)] = max(end, high), max(last, number)
    return number


def _named(members: Sequence[Tree]) -> tuple[list[Tree], list[str]]:
    """The parameters among `members`, and their names if these are pairs. Raises ValueError if only some are."""
    pairs = [isinstance(member, tuple) and len(member) == 2 and isinstance(member[0], str) for member in members]
    if not any(pairs):
        return list(members), []
    if not all(pairs):
        raise ValueError("all optimizer params should be with/without names; some param names are missing")
    return [parameter for _, parameter in members], [name for name, _ in members]


NOT_REPLAYABLE = ("add_param_group",)
