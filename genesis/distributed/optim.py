"""Sharded optimizers: each rank keeps the state of its part of the parameters, and sends these to all after updating them.

S. Rajbhandari, J. Rasley, O. Ruwase and Y. He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020:
stage 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from genesis.distributed.flat import joined, put
from genesis.distributed.nn.functional import collective
from genesis.distributed.objects import gather_object
from genesis.distributed.process_group import ProcessGroup, get_rank, group_of
from genesis.ir.annotations import Options
from genesis.ir.errors import ArgumentTypeError
from genesis.ops import collective as rows
from genesis.optim.optimizer import Closure, Group, Members, Optimizer, State
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """`optimizer_class` with each rank updating its part of the parameters and keeping only their state.

    Parameters are assigned in decreasing size, each to the rank with the least so far. Gradients must be averaged over ranks,
    as by `DistributedDataParallel`; after a step all ranks have all parameters.

    Args:
        params: tensors, or groups of them, the same on all ranks.
        optimizer_class: a class of `genesis.optim` whose step is an operation; its settings are keyword arguments.
        process_group: the ranks; by default all.
        parameters_as_bucket_view, overlap_with_ddp: no effect.

    Raises TypeError for a class that overrides `step`.

    >>> weight = genesis.nn.Parameter(genesis.ones(2))
    >>> optimizer = genesis.distributed.optim.ZeroRedundancyOptimizer([weight], genesis.optim.SGD, lr=0.5)
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [0.5, 0.5]
    """

    def __init__(
        self, params: Members, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:
        if not issubclass(optimizer_class, Optimizer) or optimizer_class.step is not Optimizer.step:
            raise ArgumentTypeError(
                f"ZeroRedundancyOptimizer: {optimizer_class.__name__} has a step of its own; want a class of genesis.optim "
                "whose step is an operation, such as Adam")
        self._part = _Part(group_of(process_group))
        listed: list[Any] = [params] if isinstance(params, Tensor) else list(params)
        self._part.take(listed)
        self.optim: Optimizer = optimizer_class.__new__(optimizer_class)
        self.optim.part = self._part
        self.optim.__init__(params if isinstance(params, Tensor) else listed, **defaults)  # type: ignore[misc]
        self.defaults, self.param_groups, self.state = self.optim.defaults, self.optim.param_groups, self.optim.state
        self._consolidated: State | None = None

    def add_param_group(self, group: Group) -> None:
        """Update the tensors of `group["params"]` too, each on one rank."""
        self._part.take([group])
        self.optim.add_param_group(group)

    def step(self, closure: Closure | None = None, **options: Any) -> Any:
        """Update this rank's parameters that have a gradient, and receive the others; returns the result of `closure`."""
        self.has_stepped = True
        return self.optim.step(closure, **options)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all ranks on rank `to`, where `state_dict` returns it. All ranks must call it."""
        own = self.optim.state_dict()
        found: list[Any] | None = [None] * self._part.group.size() if get_rank() == to else None
        gather_object(own["state"], found, to, self._part.group)
        if found is not None:
            states = {position: kept for part in found for position, kept in part.items()}
            self._consolidated = {**own, "state": dict(sorted(states.items()))}

    def state_dict(self) -> State:
        """The state of all parameters, in the optimizer class's form. Raises RuntimeError without
        `consolidate_state_dict`."""
        if self._part.group.size() == 1:
            return self.optim.state_dict()
        if self._consolidated is None:
            raise RuntimeError(
                f"ZeroRedundancyOptimizer: rank {get_rank()} has a part of the state alone; every rank has to call "
                "consolidate_state_dict(to=rank) before, and that rank state_dict()")
        return self._consolidated

    def load_state_dict(self, state_dict: Options) -> None:
        """Load settings and this rank's part of the state of all parameters."""
        self.optim.load_state_dict(state_dict)


class _Part:
    """The parameters of each rank of a group."""

    def __init__(self, group: ProcessGroup) -> None:
        self.group = group
        self._members: list[list[Tensor]] = [[] for _ in range(group.size())]
        self._sizes = [0] * group.size()
        self._own: set[int] = set()

    def take(self, listed: Iterable[Any]) -> None:
        """Assign further parameters, or groups of them, to ranks."""
        found: list[Any] = []
        for member in listed:
            given = member["params"] if isinstance(member, dict) else member
            found += [given] if isinstance(given, Tensor | tuple) else list(given)
        tensors = [each[1] if isinstance(each, tuple) else each for each in found]
        for tensor in sorted([each for each in tensors if isinstance(each, Tensor)], key=Tensor.numel, reverse=True):
            rank = self._sizes.index(min(self._sizes))
            self._sizes[rank] += tensor.numel()
            self._members[rank].append(tensor)
        self._own = {id(tensor) for tensor in self._members[self.group.rank()]}

    def has(self, parameter: Tensor) -> bool:
        """Whether this rank updates the parameter."""
        return id(parameter) in self._own

    def share(self) -> None:
        """Send each rank's updated parameters to all."""
        if self.group.size() == 1:
            return
        for kind in dict.fromkeys([tensor.dtype for part in self._members for tensor in part]):
            of_kind = [[tensor for tensor in part if tensor.dtype is kind] for part in self._members]
            own = of_kind[self.group.rank()]
            [first, *_] = [tensor for part in of_kind for tensor in part]
            flat = joined(own) if own else filled(0, (0,), kind, first.device)
            sizes = tuple([sum([tensor.numel() for tensor in part]) for part in of_kind])
            whole = collective(rows.all_gather, flat, sizes, self.group.number)
            put([tensor for part in of_kind for tensor in part], whole)
