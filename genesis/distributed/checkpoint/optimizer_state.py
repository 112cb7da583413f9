"""The state of one or several optimizers by the names of a model's parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from genesis.distributed.checkpoint.options import StateDictOptions, given_value, own_value
from genesis.ir.errors import ArgumentError
from genesis.optim.optimizer import Optimizer
from genesis.tensor.composite import differentiated
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tensor.views import detach
from genesis.tracing.state import grad_mode

Optimizers = Optimizer | Iterable[Optimizer]


def listed(optimizers: Optimizers) -> list[Optimizer]:
    """One optimizer, or several, as a list."""
    return [optimizers] if isinstance(optimizers, Optimizer) else [*optimizers]


def state_by_names(known: Mapping[int, str], optimizers: Optimizers, options: StateDictOptions) -> dict[str, Any]:
    """The state and groups of optimizers; `known` maps ids of parameters to names."""
    held: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in listed(optimizers):
        with _begun(optimizer):
            state = optimizer.state_dict()
        names = _names(known, optimizer)
        for k, each in state["state"].items():
            held[names[k]] = {key: given_value(value, options) for key, value in each.items()}
        groups += [{**group, "params": [names[p] for p in group["params"]]} for group in state["param_groups"]]
    return {"state": held, "param_groups": groups}


def load_by_names(
    known: Mapping[int, str], optimizers: Optimizers, given: Mapping[str, Any], options: StateDictOptions
) -> None:
    """Load a result of `state_by_names`, which may also cover other optimizers.

    Raises RuntimeError for a trainable parameter without state, if `options.strict` and others have state; ValueError for a
    group that is missing.
    """
    given = _nested(given) if "param_groups" not in given else given
    own = [(optimizer, _names(known, optimizer)) for optimizer in listed(optimizers)]
    tensors = {name: p for optimizer, names in own for name, p in zip(names, _parameters(optimizer), strict=True)}
    state = {name: {key: own_value(value, tensors.get(name), options) for key, value in each.items()}
             for name, each in given["state"].items()}  # everything, in the same order on all ranks
    missing = [name for name, p in tensors.items() if p.requires_grad and name not in state]
    if state and missing and options.strict:
        raise RuntimeError(f"set_optimizer_state_dict: there is no state for {', '.join(missing)}; want strict=False to go on")
    for optimizer, names in own:
        number = {name: k for k, name in enumerate(names)}
        groups, first = [], 0
        for group in optimizer.param_groups:
            end = first + len(group["params"])
            groups.append({**_group_of(names[first:end], given["param_groups"]), "params": [*range(first, end)]})
            first = end
        optimizer.load_state_dict(
            {"state": {number[name]: each for name, each in state.items() if name in number}, "param_groups": groups})


def _group_of(names: list[str], groups: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The group with these parameters; without parameters, the empty group."""
    found = [group for group in groups if (names[0] in group["params"] if names else not group["params"])]
    if len(found) != 1:
        raise ArgumentError(f"set_optimizer_state_dict: {len(found)} groups have {names[:1] or 'no parameters'}; want one")
    return found[0]


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _names(known: Mapping[int, str], optimizer: Optimizer) -> list[str]:
    """The names of an optimizer's parameters, in its order."""
    parameters = _parameters(optimizer)
    if any(id(p) not in known for p in parameters):
        raise ArgumentError("get_optimizer_state_dict: the optimizer has a parameter that is not the model's")
    return [known[id(p)] for p in parameters]


# ---- one level ----
def flattened(state: Mapping[str, Any]) -> dict[str, Any]:
    """State and groups in one flat dictionary; each parameter has its group's settings.

    Raises NotImplementedError for state other than tensors and numbers.
    """
    flat: dict[str, Any] = {}

    def add(path: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, each in value.items():
                add(f"{path}.{key}", each)
            return
        if isinstance(value, list | tuple | str) or value is None:
            raise NotImplementedError(
                f"flatten_optimizer_state_dict: {path} is a {type(value).__name__}; want tensors and numbers")
        flat[path] = value

    for name, each in state["state"].items():
        add(f"state.{name}", each)
    for group in state["param_groups"]:
        settings = {key: value for key, value in group.items() if key != "params"}
        flat |= {f"param_groups.{name}.{key}": value for name in group["params"] for key, value in settings.items()}
    return flat


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `flattened`, with one group per parameter."""
    state: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for path, value in flat.items():
        kind, _, rest = path.partition(".")
        name, _, key = rest.rpartition(".")
        if kind == "state":
            state.setdefault(name, {})[key] = value
        else:
            groups.setdefault(name, {"params": [name]})[key] = value
    return {"state": state, "param_groups": [*groups.values()]}


@contextmanager
def _begun(optimizer: Optimizer) -> Iterator[None]:
    """A context in which an optimizer has the state of after a first step."""
    unstepped = optimizer.state_dict()
    if unstepped["state"]:
        yield
        return
    parameters = [differentiated(p) for p in _parameters(optimizer) if p.requires_grad]
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
            with grad_mode(False):
                write(detach(p), value)
