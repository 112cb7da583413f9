"""State dicts of models and optimizers by parameter names, with DTensors for sharded tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from genesis.distributed.checkpoint.optimizer_state import Optimizers, flattened, load_by_names, state_by_names
from genesis.distributed.checkpoint.options import DEFAULT, StateDictOptions, given_value, is_left_out, own_value, sent_by_rank0
from genesis.distributed.data_parallel import DistributedDataParallel
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.tensor.handle import Tensor

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
    "set_optimizer_state_dict", "set_state_dict"]


def get_model_state_dict(
    model: Module, *, submodules: Collection[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state dict of a model, with names as if it were not wrapped by DistributedDataParallel.

    `submodules` restricts it to some of its modules. All ranks must call it.
    """
    options, bare = options or DEFAULT, _bare(model)
    found, tensors = getattr(bare, "sharded_state_dict", bare.state_dict)(), _tensors(bare, options)
    frozen = {name for name, p in tensors.items() if _is_frozen(p)} if options.ignore_frozen_params else ()
    wanted = {name: _name_of(name, bare, submodules, options) for name in found if name not in frozen}
    state = {given: given_value(found[name], options) for name, given in wanted.items() if given is not None}
    return {} if is_left_out(options) else state


def set_model_state_dict(model: Module, model_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None) -> Any:
    """Load a result of `get_model_state_dict` with the same options. Raises as `load_state_dict`.

    Returns the missing and the unexpected names, as `load_state_dict` does.
    """
    options, bare = options or DEFAULT, _bare(model)
    given, tensors = sent_by_rank0(dict(model_state_dict), options), _tensors(bare, options)
    state = {name: own_value(value, tensors.get(name), options) for name, value in given.items()}
    if options.ignore_frozen_params:
        found = bare.state_dict()
        state |= {name: found[name] for name, p in tensors.items() if _is_frozen(p) and name not in state}
    return bare.load_state_dict(state, strict=options.strict)


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizers, *, submodules: Collection[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state and groups of one or several optimizers, by the names of the model's parameters.

    Before the first step it is the state after a step with zero gradients, for `load` to fill; the optimizer and the
    parameters do not change. As in PyTorch, `submodules` has no effect here. All ranks must call it. Raises ValueError for a
    parameter that is not the model's.
    """
    options = options or DEFAULT
    state = state_by_names(_known(model), optimizers, options)
    if options.flatten_optimizer_state_dict:
        state = flattened(state)
    return {} if is_left_out(options) else state


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizers, optim_state_dict: Mapping[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Load a result of `get_optimizer_state_dict` with the same options.

    Raises as `load_state_dict`; RuntimeError for a parameter without state if `options.strict`.
    """
    options = options or DEFAULT
    load_by_names(_known(model), optimizers, sent_by_rank0(dict(optim_state_dict), options), options)


def get_state_dict(
    model: Module, optimizers: Optimizers, *, submodules: Collection[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`."""
    return (get_model_state_dict(model, submodules=submodules, options=options),
            get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options))


def set_state_dict(
    model: Module, optimizers: Optimizers, *, model_state_dict: Mapping[str, Any], optim_state_dict: Mapping[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load a result of `get_state_dict` with the same options."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _bare(model: Module) -> Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


def _known(model: Module) -> dict[int, str]:
    """id -> name of the model's parameters."""
    return {id(p): name for name, p in _bare(model).named_parameters()}


def _tensors(bare: Module, options: StateDictOptions) -> dict[str, Tensor]:
    """State dict key -> parameter or buffer, with all keys of shared ones."""
    named = [*bare.named_parameters(remove_duplicate=False), *bare.named_buffers(remove_duplicate=False)]
    return {_key(name, bare, options.dsd_fqn_modifiers): tensor for name, tensor in named}


def _is_frozen(tensor: Tensor) -> bool:
    return isinstance(tensor, Parameter) and not tensor.requires_grad


def _key(name: str, bare: Module, modifiers: str) -> str:
    """The state dict key for a name, without children that modules omit from keys."""
    *path, last = name.split(".")
    module, kept = bare, []
    for child in path:
        if not hasattr(module, modifiers) or child not in getattr(module, modifiers)().values():
            kept.append(child)
        module = getattr(module, child)
    return ".".join([*kept, last])


def _name_of(name: str, bare: Module, submodules: Collection[Module] | None, options: StateDictOptions) -> str | None:
    """The name of a parameter or buffer in the state dict; None if it is omitted."""
    if not submodules:
        return name
    for path, module in bare.named_modules():
        if module in submodules and name.startswith(f"{path}."):
            return name if options.keep_submodule_prefixes else name[len(path) + 1 :]
    return None
