"""Fully sharded data parallelism by a module wrapper: PyTorch's first API, in terms of `fully_shard`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from genesis.distributed.checkpoint.optimizer_state import load_by_names, state_by_names
from genesis.distributed.checkpoint.options import StateDictOptions, given_value, own_value
from genesis.distributed.data_parallel import take_from
from genesis.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from genesis.distributed.fully_sharded_settings import (
    CPUOffload, FullOptimStateDictConfig, FullStateDictConfig, LocalOptimStateDictConfig, LocalStateDictConfig, MixedPrecision,
    OptimStateDictConfig, OptimStateKeyType, ShardedOptimStateDictConfig, ShardedStateDictConfig, ShardingStrategy,
    StateDictConfig, StateDictSettings, StateDictType,
)
from genesis.distributed.process_group import ProcessGroup, get_rank, group_of
from genesis.distributed.wrapping import wrap_children
from genesis.ir.errors import ArgumentError
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.nn.utils.parameters import clip_grad_norm_
from genesis.optim.optimizer import Optimizer
from genesis.tensor.composite import differentiated
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode

__all__ = ["FullyShardedDataParallel"]

_INNER = "_fsdp_wrapped_module"
_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig),
}


class FullyShardedDataParallel(Module):
    """`module` with its parameters sharded by `fsdp.fully_shard`.

    Args:
        module: has equal parameters on all ranks. Create optimizers after wrapping it.
        process_group: the ranks; by default all.
        sharding_strategy: FULL_SHARD, or SHARD_GRAD_OP, which keeps whole parameters after forward.
        cpu_offload: a `CPUOffload`.
        auto_wrap_policy: which submodules get their own wrapper; see `wrapping`.
        mixed_precision: a `MixedPrecision`.
        ignored_modules, ignored_states: modules and parameters that are not sharded.
        param_init_fn: called with each module that has parameters on the device "meta".
        device_id: the device to move the module to first.
        sync_module_states: whether to copy rank 0's parameters and buffers first.
        backward_prefetch, forward_prefetch, limit_all_gathers, use_orig_params, device_mesh: no effect.

    Names of parameters and state dicts are those of the module. Raises ValueError for other strategies if there is more than
    one rank.

    >>> model = genesis.distributed.FullyShardedDataParallel(genesis.nn.Linear(3, 2))
    >>> list(model.state_dict()), model(genesis.ones(1, 3)).shape
    (['weight', 'bias'], (1, 2))
    """

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None, auto_wrap_policy: Any = None, backward_prefetch: Any = None,
        mixed_precision: MixedPrecision | None = None, ignored_modules: Collection[Module] | None = None,
        param_init_fn: Any = None, device_id: Any = None, sync_module_states: bool = False, forward_prefetch: bool = False,
        limit_all_gathers: bool = True, use_orig_params: bool = False, ignored_states: Collection[Any] | None = None,
        device_mesh: Any = None,
    ) -> None:
        super().__init__()
        self._precision = precision = mixed_precision or MixedPrecision()
        group = group_of(device_mesh.get_group() if process_group is None and device_mesh is not None else process_group)
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if strategy not in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP) and group.size() > 1:
            raise ArgumentError(
                f"FullyShardedDataParallel: sharding_strategy is {strategy}; want FULL_SHARD or SHARD_GRAD_OP. What is divided "
                "nowhere is DistributedDataParallel's; neighbours share by fully_shard(reshard_after_forward=number)")
        self.process_group, self.sharding_strategy = group, strategy
        self._settings = StateDictSettings()
        modules, parameters = _ignored(ignored_modules, ignored_states)
        _made_ready(module, param_init_fn, device_id, group if sync_module_states else None, precision)
        if auto_wrap_policy is not None:
            given = {
                "process_group": group, "sharding_strategy": strategy, "cpu_offload": cpu_offload,
                "mixed_precision": mixed_precision, "ignored_modules": modules, "ignored_states": parameters}
            wrap_children(
                module, auto_wrap_policy, lambda child, **own: FullyShardedDataParallel(child, **{**given, **own}), modules,
                parameters)
        for inner in self.fsdp_modules(module):
            inner._casts_inputs(inner._precision.cast_forward_inputs)
        fully_shard(
            module, mesh=group, reshard_after_forward=strategy is not ShardingStrategy.SHARD_GRAD_OP,
            mp_policy=MixedPrecisionPolicy(precision.param_dtype, precision.reduce_dtype),
            offload_policy=CPUOffloadPolicy() if cpu_offload is not None and cpu_offload.offload_params else None,
            ignored_params=parameters)
        setattr(self, _INNER, module)
        self._casts_inputs(precision.cast_root_forward_inputs or precision.cast_forward_inputs)
        self.register_state_dict_pre_hook(lambda *_: self._sharding.reshard())
        self._register_state_dict_hook(FullyShardedDataParallel._saved)
        self._register_load_state_dict_pre_hook(FullyShardedDataParallel._loaded, True)

    @property
    def module(self) -> Any:
        """The wrapped module."""
        return vars(self)[_INNER]

    @property
    def _sharding(self) -> Any:
        return self.module._sharding

    def _casts_inputs(self, casts: bool) -> None:
        self._sharding.policy = dataclasses.replace(self._sharding.policy, cast_forward_inputs=casts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or _INNER not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.module, name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """The module's result, computed with whole parameters."""
        return self.module(*inputs, **options)

    def named_parameters(self, *args: Any, **options: Any) -> Iterator[tuple[str, Parameter]]:
        """Those of the module."""
        return ((_plain(name), parameter) for name, parameter in super().named_parameters(*args, **options))

    def named_buffers(self, *args: Any, **options: Any) -> Iterator[tuple[str, Tensor]]:
        """Those of the module."""
        return ((_plain(name), buffer) for name, buffer in super().named_buffers(*args, **options))

    # ---- training ----
    def no_sync(self) -> Any:
        """A context without effect: gradients are accumulated as rows."""
        return nullcontext()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """`nn.utils.clip_grad_norm_` of all parameters, with the norm over all ranks."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a module, including itself; with `root_only` only the outermost."""
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        within = {id(inner) for each in found for inner in each.modules() if inner is not each}
        return [each for each in found if not (root_only and id(each) in within)]

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False, offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A context in which the wrapped modules have whole parameters; with `writeback`, writes to them are kept.

        All ranks must call it, and all get the parameters. Raises ValueError for `with_grads`.
        """
        if with_grads:
            raise ArgumentError("summon_full_params: with_grads=True; want .grad of the parameters outside, of their rows")
        shardings = [each._sharding for each in FullyShardedDataParallel.fsdp_modules(module)][: None if recurse else 1]
        for sharding in shardings:
            sharding.reshard()
        wholes = [[_whole(shard) for _, shard in sharding.entries] for sharding in shardings]
        try:
            for sharding, each in zip(shardings, wholes, strict=True):
                sharding.hold_whole(each)
            yield
        finally:
            for sharding, each in zip(shardings, wholes, strict=True):
                sharding.reshard()
                for (_, shard), whole in zip(sharding.entries, each, strict=True) if writeback else ():
                    with grad_mode(False):
                        shard.detach().copy_(whole.detach())

    # ---- state dicts ----
    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:
        """Set the form of `state_dict` and `optim_state_dict` of the wrappers in a module; returns the previous settings."""
        of_model, of_optimizer = _CONFIGS[state_dict_type]
        model, optimizer = state_dict_config or of_model(), optim_state_dict_config or of_optimizer()
        if not isinstance(model, of_model) or not isinstance(optimizer, of_optimizer):
            raise RuntimeError(
                f"set_state_dict_type: {type(model).__name__} and {type(optimizer).__name__} for {state_dict_type}; want "
                f"{of_model.__name__} and {of_optimizer.__name__}")
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for wrapper in FullyShardedDataParallel.fsdp_modules(module):
            wrapper._settings = StateDictSettings(state_dict_type, model, optimizer)
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """The form of `state_dict` and `optim_state_dict`."""
        wrappers = FullyShardedDataParallel.fsdp_modules(module)
        return wrappers[0]._settings if wrappers else StateDictSettings()

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """`set_state_dict_type` within a context."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)

    def sharded_state_dict(self) -> dict[str, Any]:
        """The state dict with DTensors."""
        with self.state_dict_type(self, StateDictType.SHARDED_STATE_DICT):
            return self.state_dict()

    def _own(self) -> dict[str, Any]:
        """Name in the module -> rows kept by this wrapper, with all names of shared parameters."""
        own = {id(shard) for _, shard in self._sharding.entries}
        return {_plain(name): p for name, p in self.module.named_parameters(remove_duplicate=False) if id(p) in own}

    def _saved(self, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        how = self._settings
        inner = f"{prefix}{_INNER}."
        for key in [key for key in state if key.startswith(inner)]:
            state[prefix + key.removeprefix(inner)] = state.pop(key)
        if how.state_dict_type is StateDictType.LOCAL_STATE_DICT:
            state.update({prefix + name: differentiated(state[prefix + name]) for name in self._own()})
            return
        options = StateDictOptions(how.state_dict_type is StateDictType.FULL_STATE_DICT, how.state_dict_config.offload_to_cpu)
        for name in self._own():
            state[prefix + name] = given_value(state[prefix + name], options)
        if getattr(how.state_dict_config, "rank0_only", False) and get_rank() > 0:
            for key in [key for key in state if key.startswith(prefix)]:
                del state[key]

    def _loaded(self, state: dict[str, Any], prefix: str, *others: Any) -> None:
        own, options = self._own(), StateDictOptions(full_state_dict=True)
        for key in [key for key in state if key.startswith(prefix)]:
            name = key.removeprefix(prefix)
            value = state.pop(key)
            if name in own:
                value = own_value(value, own[name], options)
            state[f"{prefix}{_INNER}.{name}"] = value

    # ---- state of optimizers ----
    @staticmethod
    def optim_state_dict(
        model: Module, optim: Optimizer, optim_state_dict: Any = None, group: ProcessGroup | None = None
    ) -> dict[str, Any]:
        """An optimizer's state by parameter names, in the form of `state_dict_type`. All ranks must call it."""
        how = FullyShardedDataParallel.get_state_dict_type(model)
        config = how.optim_state_dict_config
        options = StateDictOptions(how.state_dict_type is StateDictType.FULL_STATE_DICT, config.offload_to_cpu)
        state = state_by_names(_names(model), [optim], options)
        return {} if getattr(config, "rank0_only", False) and get_rank() > 0 else state

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, optim_input: Any = None, rank0_only: bool = True, group: ProcessGroup | None = None
    ) -> dict[str, Any]:
        """The state with whole tensors, by default only on rank 0."""
        config = FullOptimStateDictConfig(rank0_only=rank0_only)
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, None, config):
            return FullyShardedDataParallel.optim_state_dict(model, optim)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Optimizer, optim_state_dict: Mapping[str, Any], is_named_optimizer: bool = False,
        load_directly: bool = False, group: ProcessGroup | None = None,
    ) -> dict[str, Any]:
        """Converts a result of `optim_state_dict` for `optim.load_state_dict`."""
        load_by_names(_names(model), [optim], optim_state_dict, StateDictOptions(full_state_dict=True))
        return optim.state_dict()

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: Mapping[str, Any], optim_state_key_type: OptimStateKeyType, model: Module, optim_input: Any = None,
        optim: Optimizer | None = None,
    ) -> dict[str, Any]:
        """An optimizer's state by names instead of numbers, or the reverse."""
        names = [name for name, _ in model.named_parameters()]
        if optim is not None:
            known = _names(model)
            names = [known[id(p)] for each in optim.param_groups for p in each["params"]]
        by_name = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        new: dict[Any, Any] = dict(enumerate(names)) if by_name else {name: k for k, name in enumerate(names)}
        groups = [{**each, "params": [new.get(p, p) for p in each["params"]]} for each in optim_state_dict["param_groups"]]
        return {"state": {new.get(k, k): each for k, each in optim_state_dict["state"].items()}, "param_groups": groups}


def _plain(name: str) -> str:
    """A name without wrappers."""
    return name.replace(f"{_INNER}.", "")


def _names(model: Module) -> dict[int, str]:
    return {id(p): _plain(name) for name, p in model.named_parameters()}


def _whole(shard: Any) -> Parameter:
    with grad_mode(False):
        return Parameter(shard.full_tensor().detach().clone(), shard.requires_grad)


def _ignored(modules: Collection[Module] | None, states: Collection[Any] | None) -> tuple[list[Module], list[Tensor]]:
    """The modules and parameters that are not sharded."""
    named = [*(modules or ()), *[each for each in states or () if isinstance(each, Module)]]
    return named, [*[p for each in named for p in each.parameters()], *[p for p in states or () if isinstance(p, Tensor)]]


def _made_ready(
    module: Module, param_init_fn: Any, device_id: Any, synced: ProcessGroup | None, precision: MixedPrecision
) -> None:
    """Initialize, move and synchronize a module before it is sharded."""
    for each in module.modules() if param_init_fn is not None else ():
        if any(p.is_meta for p in each.parameters(recurse=False)):
            param_init_fn(each)
    if device_id is not None:
        module.to(device_id)
    if synced is not None and synced.size() > 1:
        take_from([*module.parameters(), *module.buffers()], 0, synced)
    if precision.buffer_dtype is not None:
        for buffer in module.buffers():
            if buffer.is_floating_point():
                buffer.data = buffer.data.to(precision.buffer_dtype)
