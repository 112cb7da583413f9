"""Modules that PyTorch pickled: their parameters, buffers and submodules lie in tables, here they are attributes."""

from __future__ import annotations

import inspect
from typing import Any, Protocol

from genesis.ir.annotations import Attributes
from genesis.runtime import rng

TABLES = ("_parameters", "_buffers", "_modules")


class _Module(Protocol):
    _persistence: Any


def is_torch_state(state: Attributes) -> bool:
    """Whether the attributes of a pickled module are laid out as PyTorch's are."""
    return all([isinstance(state.get(table), dict) for table in TABLES]) and "_non_persistent_buffers_set" in state


def take_torch_state(module: _Module, state: Attributes) -> None:
    """Give `module`, which has no attributes yet, those of PyTorch's; its hooks and private attributes are left out."""
    settings = {name: value for name, value in state.items() if not name.startswith("_")}
    made = _as_built(type(module), settings) if type(module).__module__.startswith("genesis.nn.") else {}
    hidden = state["_non_persistent_buffers_set"]
    attributes = settings | {name: value for table in TABLES for name, value in state[table].items()}
    module.__dict__.update({name: value for name, value in made.items() if name.startswith("_")} | attributes)
    if state["_buffers"]:
        module._persistence = {name: name not in hidden for name in state["_buffers"]}


def _as_built(kind: type, settings: Attributes) -> Attributes:
    """The attributes of a layer of ours that is built with these settings; none if it wants others."""
    names = inspect.signature(kind).parameters
    before = rng.stored()
    try:
        return vars(kind(**{name: value for name, value in settings.items() if name in names}))
    except TypeError:
        return {}
    finally:
        rng.set_state(before)  # initial values are drawn, and dropped
