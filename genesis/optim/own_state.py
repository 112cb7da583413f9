"""The state of optimizers with their own `step`: a dictionary per parameter, empty until a step fills it.

It is saved unchanged, by the parameters' positions, and loaded by PyTorch's rules.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from itertools import chain
from typing import Any

from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach

State = dict[Any, Any]


def packed(state: Mapping[Any, Any], positions: Mapping[int, int]) -> State:
    """The state for a state dict: tensor keys become positions, and tensors are detached."""
    return {positions[id(key)] if isinstance(key, Tensor) else key: _each(value, lambda _, tensor: detach(tensor))
            for key, value in state.items()}


def unpacked(saved: Mapping[Any, Any], parameters: Mapping[int, Tensor]) -> State:
    """Copies of a state dict's state, by parameter. Tensors are converted to the parameter's device and, if it is floating,
    dtype; step counts are not.
    """
    state: State = {}
    for key, value in saved.items():
        parameter = parameters.get(key) if isinstance(key, int) else None
        if parameter is None:
            state[key] = copy.deepcopy(value)
        else:
            state[parameter] = _each(value, lambda name, tensor, to=parameter: _taken(name, tensor, to))
    return state


def parameters_at(saved_groups: list[State], groups: list[State]) -> dict[int, Tensor]:
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
