"""Fully sharded data parallelism: each rank keeps its rows of each parameter, and gathers all rows while a module computes.

S. Rajbhandari, J. Rasley, O. Ruwase and Y. He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2020:
stage 3. The names are those of PyTorch's `torch.distributed.fsdp`, second form.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from genesis.autograd.custom import Context
from genesis.autograd.function import Function
from genesis.distributed.device_mesh import DeviceMesh
from genesis.distributed.nn.functional import collective
from genesis.distributed.process_group import ProcessGroup, group_of
from genesis.distributed.subgroups import neighbours_of
from genesis.distributed.tensor.dtensor import DistributedParameter, DTensor, parameter_of
from genesis.distributed.tensor.placement_types import Placement, Shard
from genesis.distributed.tensor.redistribution import cut
from genesis.distributed.work import Work
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops import collective as rows
from genesis.pytree import map_tree
from genesis.runtime.devices import Device
from genesis.tensor.composite import differentiated
from genesis.tensor.handle import Tensor

__all__ = [
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a sharded module's computation and gradient averaging; None leaves a dtype unchanged.

    Attributes:
        param_dtype: of gathered parameters, and of floating inputs if `cast_forward_inputs`.
        reduce_dtype: of gradients while averaging; 16-bit ones are summed as float32.
        output_dtype: of floating outputs.
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True


@dataclass(frozen=True)
class OffloadPolicy:
    """The storage of rows: on the module's device."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Rows, their gradients and the optimizer's state are in CPU memory; GPUs get copies for computing.

    `pin_memory` has no effect: copies go through pinned memory.
    """

    pin_memory: bool = True


class FSDPModule:
    """The methods that `fully_shard` adds to a module's class."""

    _sharding: _Sharding

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The module's result, computed with whole parameters."""
        policy = self._sharding.policy
        if policy.cast_forward_inputs:
            inputs, options = _cast((inputs, options), policy.param_dtype)
        with self._sharding.gathered():
            outputs = super().forward(*inputs, **options)  # type: ignore[misc]
        return _cast(outputs, policy.output_dtype)

    def unshard(self, async_op: bool = False) -> Work:
        """Give the module its whole parameters until its next forward ends, or until `reshard()`.

        Parameters of submodules that are sharded themselves do not change. The result's `wait()` does nothing: gathering is
        complete when a parameter is read.
        """
        self._sharding.unshard()
        return Work()

    def reshard(self) -> None:
        """Give the module its rows again, after `unshard()`."""
        self._sharding.reshard()

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Change `fully_shard(reshard_after_forward=)`, with `recurse` also for sharded submodules."""
        for module in _sharded_modules(self) if recurse else [self]:
            module._sharding.reshards = bool(reshard_after_forward)

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sum of all ranks' gradients by `factor` instead of the number of ranks."""
        self._sharding.divisor = float(factor)

    def set_modules_to_forward_prefetch(self, modules: Sequence[Any]) -> None:
        """No effect: a program gathers the next module's parameters while it computes the current one."""

    set_modules_to_backward_prefetch = set_modules_to_forward_prefetch

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """No effect: gradients are accumulated as rows, so they are averaged at the end of each backward."""

    set_is_last_backward = set_requires_all_reduce = set_reshard_after_backward = set_requires_gradient_sync


def fully_shard(
    module: Module, *, mesh: Any = None, reshard_after_forward: bool | int | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: Any = None, ignored_params: Collection[Tensor] = (),
) -> Module:
    """Shard the parameters of `module` along axis 0, except those already sharded by a submodule: each rank keeps its rows.

    The module's class becomes a subclass of `FSDPModule`, and its parameters become DTensors with Shard(0), so create
    optimizers afterwards. Whole parameters are gathered before the module's forward; gradients are averages, with Shard(0) too.

    Args:
        module: has equal parameters on all ranks. Shard the layers first, then the whole model.
        mesh: a process group, or an object with `get_group()`; by default all ranks.
        reshard_after_forward: whether whole parameters are freed after forward and gathered again in backward. By default they
            are, except those of the outermost module. A number that divides the number of ranks: groups of that many
            neighbouring ranks together keep all parameters after forward, and gather from each other in backward. The number of
            all ranks means True; 1 means False, with a warning.
        offload_policy: None or an `OffloadPolicy`: rows are on the module's device. `CPUOffloadPolicy()`: rows of a module on
            a GPU are in CPU memory.
        mp_policy: the dtypes.
        ignored_params: parameters that are not sharded.

    Raises ValueError for 0-d parameters, modules that are already sharded and another `reshard_after_forward`.

    >>> model = genesis.nn.Sequential(genesis.nn.Linear(3, 4), genesis.nn.Linear(4, 2))
    >>> for layer in model:
    ...     layer = genesis.distributed.fsdp.fully_shard(layer)
    >>> model = genesis.distributed.fsdp.fully_shard(model)
    >>> type(model[0]).__name__, model(genesis.ones(1, 3)).shape
    ('FSDPLinear', (1, 2))
    """
    if not isinstance(module, Module):
        raise ArgumentTypeError(f"fully_shard: want a module, got {type(module).__name__} {module!r:.40}")
    if isinstance(module, FSDPModule):
        raise ArgumentError(f"fully_shard: {type(module).__name__} is sharded already; want each module once")
    device = next((p.device.type for p in module.parameters()), "cpu")
    lines = mesh if isinstance(mesh, DeviceMesh) else DeviceMesh.from_group(
        group_of(mesh.get_group() if hasattr(mesh, "get_group") else mesh), device)
    group = lines.get_group()
    if not isinstance(offload_policy, OffloadPolicy | None):
        raise ArgumentTypeError(f"fully_shard: offload_policy is {offload_policy!r:.40}; want an OffloadPolicy, or None")
    for inner in _sharded_modules(module):
        inner._sharding.reshards = True if inner._sharding.reshards is None else inner._sharding.reshards
    reshards = _resharding(reshard_after_forward, group)
    ignored = {id(p) for p in ignored_params}
    offloads = isinstance(offload_policy, CPUOffloadPolicy)
    module._sharding = _Sharding(module, lines, mp_policy or MixedPrecisionPolicy(), ignored, reshards, offloads)
    module.__class__ = type(f"FSDP{type(module).__name__}", (FSDPModule, type(module)), {})
    return module


def _resharding(given: bool | int | None, group: ProcessGroup) -> bool | ProcessGroup | None:
    """Whether whole parameters are freed after forward, or the group of ranks that together keep them."""
    if given is None or isinstance(given, bool):
        return given
    size = group.size()
    if not isinstance(given, int) or not 1 <= given <= size or size % given:
        raise ArgumentError(f"fully_shard: reshard_after_forward is {given!r}; want a bool, None, or a divisor of {size} ranks")
    if given == 1:
        warnings.warn("fully_shard: reshard_after_forward=1 is one rank that keeps all, as False; want True for what goes",
                      UserWarning, 3)
        return False
    return True if given == size else neighbours_of(group, given)


class _Sharding:
    """The parameters of one `fully_shard`: the modules that have them, and this rank's rows."""

    def __init__(
        self, module: Module, mesh: DeviceMesh, policy: MixedPrecisionPolicy, ignored: Collection[int],
        reshards: bool | ProcessGroup | None, offloads: bool,
    ) -> None:
        self.group, self.policy = mesh.get_group(), policy
        # After forward, possibly to a group that keeps parts; None depends on whether the module is within another.
        self.reshards = reshards
        known = {*ignored} | {id(shard) for each in _sharded_modules(module) for _, shard in each._sharding.entries}
        owners_of: dict[int, tuple[list[tuple[Module, str]], Parameter]] = {}
        for owner in module.modules():
            for name, parameter in owner._parameters.items():
                if isinstance(parameter, Parameter) and id(parameter) not in known:
                    owners_of.setdefault(id(parameter), ([], parameter))[0].append((owner, name))
        scalars = [name for name, p in module.named_parameters() if id(p) in owners_of and not p.shape]
        if scalars:
            raise ArgumentError(f"fully_shard: parameter {scalars[0]} has no axis to cut; want shape (1,), or ignored_params")
        self.entries = [(owners, _rows_of(whole, mesh, offloads)) for owners, whole in owners_of.values()]
        self.kinds = [_Whole.like(whole, self.group) for _, whole in owners_of.values()]
        self._hold([shard for _, shard in self.entries])
        self._is_gathered = self._is_unsharded = False  # whether parameters are whole, and whether they stay so until a forward
        self.divisor: float | None = None  # of gradient sums; by default the number of ranks

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """A context in which the modules have whole parameters."""
        if self._is_gathered and not self._is_unsharded:  # a recursive call of the module
            yield
            return
        try:
            self.unshard()
            self._is_unsharded = False
            yield
        finally:
            self.reshard()

    def unshard(self) -> None:
        """Give the modules whole parameters, unless they have them."""
        if not self._is_gathered:
            self.entries = [(owners, _present(*owners[0], shard)) for owners, shard in self.entries]
            wholes = [kind.of(_Gathered.apply(shard.to_local().to(kind.device), sizes=kind.sizes, sharding=self))
                      for (_, shard), kind in zip(self.entries, self.kinds, strict=True)]
            self._is_gathered = self._is_unsharded = True
            self._hold(wholes)

    def hold_whole(self, wholes: Sequence[Tensor]) -> None:
        """Give the modules these tensors instead of the rows, until `reshard`."""
        self._hold(wholes)
        self._is_gathered = self._is_unsharded = True

    def reshard(self) -> None:
        """Give the modules the rows."""
        if self._is_gathered:
            self._hold([shard for _, shard in self.entries])
        self._is_gathered = self._is_unsharded = False

    def _hold(self, tensors: Sequence[Tensor]) -> None:
        for (owners, _), tensor in zip(self.entries, tensors, strict=True):
            for owner, name in owners:
                vars(owner)[name] = tensor


class _Whole(NamedTuple):
    """What gathered rows are: a tensor, or the part of a DTensor."""

    device: Device
    sizes: tuple[int, ...]  # the rows of each rank
    of: Callable[[Tensor], Tensor]

    @staticmethod
    def like(whole: Parameter, group: ProcessGroup) -> _Whole:
        """That of a parameter."""
        held = whole.detach()
        of = held.with_elements if isinstance(held, DTensor) else lambda gathered: gathered
        return _Whole(held.device, (*rows.chunks(len(differentiated(held)), group.size()),), of)


def _present(owner: Module, name: str, shard: DistributedParameter) -> DistributedParameter:
    """The rows that a module has now, which `load_state_dict(assign=True)` may have replaced. Raises ValueError for others."""
    found = vars(owner)[name]
    if found is not shard and not (isinstance(found, DistributedParameter) and found.sharding == shard.sharding):
        raise ArgumentError(f"fully_shard: parameter {name} is a {type(found).__name__} now; want {shard.described()}")
    return found


def _rows_of(whole: Parameter, mesh: DeviceMesh, offloads: bool) -> DistributedParameter:
    """This rank's rows, cut as by `chunk`, of a parameter, which may be a DTensor. With `offloads` they are in CPU memory."""
    part = cut(differentiated(whole).detach(), 0, mesh.get_group()).clone()
    placements: list[Placement] = [Shard(0)]
    if isinstance(whole, DTensor):
        mesh, placements = whole.device_mesh.beside(mesh), [*whole.placements, Shard(0)]
    return parameter_of(part.cpu() if offloads else part, mesh, placements, whole.shape, whole.requires_grad)


class _Gathered(Function):
    """Gathers all rows of a parameter; the gradient is this rank's rows of the average."""

    @staticmethod
    def forward(ctx: Context, shard: Tensor, sizes: tuple[int, ...], sharding: _Sharding) -> Tensor:
        ctx.save_variable("how", (sizes, shard.dtype, sharding))
        given = shard.detach()
        given = given if sharding.policy.param_dtype is None else given.to(sharding.policy.param_dtype)
        if not sharding.reshards:
            return collective(rows.all_gather, given, sizes, sharding.group.number)
        again = sharding.reshards.number if isinstance(sharding.reshards, ProcessGroup) else None
        return collective(rows.all_gather_transient, given, sizes, again, sharding.group.number)

    @staticmethod
    def backward(ctx: Context, gradient: Tensor) -> Tensor:
        sizes, dtype, sharding = ctx.saved_variables["how"]
        sent = gradient if sharding.policy.reduce_dtype is None else gradient.to(sharding.policy.reduce_dtype)
        group, divisor = sharding.group.number, sharding.divisor
        if divisor is None:
            return collective(rows.reduce_scatter, sent, "avg", sizes, group).to(dtype)
        return (collective(rows.reduce_scatter, sent, "sum", sizes, group) * (1 / divisor)).to(dtype)


def _sharded_modules(module: Any) -> list[Any]:
    return [each for each in module.modules() if isinstance(each, FSDPModule)]


def _cast(tree: Any, dtype: DType | None) -> Any:
    if dtype is None:
        return tree
    return map_tree(lambda x: x.to(dtype) if isinstance(x, Tensor) and x.dtype.category == 2 else x, tree)
