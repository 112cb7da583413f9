"""What to save of models and optimizers: by the names of parameters, with DTensors of what ranks have in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from genesis.distributed.checkpoint.layout import Part, part_of
from genesis.distributed.data_parallel import DistributedDataParallel
from genesis.distributed.fsdp import ShardedParameter
from genesis.distributed.tensor.dtensor import DTensor
from genesis.nn.module import Module
from genesis.optim.optimizer import Optimizer
from genesis.tensor.dispatch import filled
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach
from genesis.tracing.state import recording


def get_model_state_dict(model: Module) -> dict[str, Any]:
    """The state dict of a model, by the names that it has without DistributedDataParallel around it."""
    state, parameters = _bare(model).state_dict(), dict(_bare(model).named_parameters())
    return {name: _held(value, parameters[name]) if name in parameters else value for name, value in state.items()}


def set_model_state_dict(model: Module, model_state_dict: Mapping[str, Any]) -> Any:
    """Load what `get_model_state_dict` gave. Raises as `load_state_dict`."""
    return _bare(model).load_state_dict(
        {name: value.local if isinstance(value, Part) else value for name, value in model_state_dict.items()})


def get_optimizer_state_dict(model: Module, optimizers: Optimizer) -> dict[str, Any]:
    """The state and the groups of an optimizer, by the names of the model's parameters.

    Before its first step it is what the state would be after a step of zero gradients, for `load` to fill; the optimizer and
    the parameters stay as they are. Raises ValueError for a parameter that the model has not.
    """
    with _begun(optimizers):
        state = optimizers.state_dict()
    names, tensors = _names(model, optimizers), _parameters(optimizers)
    held = {names[k]: {key: _held(value, tensors[k]) for key, value in each.items()} for k, each in state["state"].items()}
    groups = {str(k): {**group, "params": [names[p] for p in group["params"]]} for k, group in enumerate(state["param_groups"])}
    return {"state": held, "param_groups": groups}


def set_optimizer_state_dict(model: Module, optimizers: Optimizer, optim_state_dict: Mapping[str, Any]) -> None:
    """Load what `get_optimizer_state_dict` gave. Raises as `load_state_dict`."""
    number = {name: k for k, name in enumerate(_names(model, optimizers))}
    state = {number[name]: {key: _own(value) for key, value in each.items()}
             for name, each in optim_state_dict["state"].items()}
    groups = [{**group, "params": [number[name] for name in group["params"]]}
              for group in optim_state_dict["param_groups"].values()]
    optimizers.load_state_dict({"state": state, "param_groups": groups})


def get_state_dict(model: Module, optimizers: Optimizer) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`."""
    return get_model_state_dict(model), get_optimizer_state_dict(model, optimizers)


def set_state_dict(
    model: Module, optimizers: Optimizer, *, model_state_dict: Mapping[str, Any], optim_state_dict: Mapping[str, Any]
) -> Any:
    """Load what `get_state_dict` gave."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict)
    return set_model_state_dict(model, model_state_dict)


def _bare(model: Module) -> Module:
    return model.module if isinstance(model, DistributedDataParallel) else model


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _names(model: Module, optimizer: Optimizer) -> list[str]:
    """The names of an optimizer's parameters, in its order."""
    known = {id(p): name for name, p in _bare(model).named_parameters()}
    parameters = _parameters(optimizer)
    if any(id(p) not in known for p in parameters):
        raise ValueError("get_optimizer_state_dict: the optimizer has a parameter that is not the model's")
    return [known[id(p)] for p in parameters]


def _held(value: Any, parameter: Tensor) -> Any:
    """A part of the state, as what ranks hold together if it is divided as its parameter is."""
    sharding = getattr(parameter, "sharding", None)
    if sharding is None or not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    if isinstance(parameter, ShardedParameter):  # rows, of any number on each rank
        shape = sum(parameter.sizes), *value.shape[1:]
        start, whole = ([0] * len(shape), [*shape]) if sharding.within is None else sharding.within.place_of(shape)
        start[0] += sum(parameter.sizes[: sharding.group.rank()])
        return Part(value, tuple(start), tuple(whole))
    return sharding.held(value)


def _own(value: Any) -> Any:
    """This rank's part of what ranks hold together."""
    return part_of(value).local if isinstance(value, DTensor | Part) else value


@contextmanager
def _begun(optimizer: Optimizer) -> Iterator[None]:
    """Within it, an optimizer has the state that it has after a step."""
    unstepped = optimizer.state_dict()
    if unstepped["state"]:
        yield
        return
    parameters = [p for p in _parameters(optimizer) if p.requires_grad]
    before = [(p, p.grad, p.detach().clone()) for p in parameters]
    rates = [group["lr"] for group in optimizer.param_groups]
    try:
        for p in parameters:
            p.grad = filled(0, p.shape, p.dtype, p.device)
        for group in optimizer.param_groups:
            group["lr"] = 0.0
        optimizer.step()
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        yield
    finally:
        optimizer.load_state_dict(unstepped)
        for p, grad, value in before:
            p.grad = grad
            with recording(False) as again, again:
                write(detach(p), value)
