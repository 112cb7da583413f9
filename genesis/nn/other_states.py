"""Pickled modules in other formats: PyTorch's, whose members are in dicts, and older versions'."""

from __future__ import annotations

import inspect
from typing import Any

from genesis.ir.annotations import Attributes
from genesis.nn.members import TABLES, own_attributes
from genesis.runtime import rng


def is_torch_state(state: Attributes) -> bool:
    """Whether a pickled module's attributes are in PyTorch's format."""
    return all([isinstance(state.get(table), dict) for table in TABLES]) and "_non_persistent_buffers_set" in state


def take_torch_state(module: Any, state: Attributes) -> None:
    """Give `module`, which has no attributes yet, those of PyTorch's module, except hooks and private ones."""
    settings = {name: value for name, value in state.items() if not name.startswith("_")}
    made = _as_built(type(module), settings) if type(module).__module__.startswith(("genesis.nn.", "torch.nn.")) else {}
    hidden = state["_non_persistent_buffers_set"]
    attributes = settings | {name: value for table in TABLES for name, value in state[table].items()}
    own = {name: value for name, value in made.items() if name.startswith("_")}
    members = {table: {name: name not in hidden for name in state[table]} for table in TABLES}
    own_attributes(module, own | attributes, members)


def take_older_state(module: Any, state: Attributes, parameter: type, module_class: type) -> None:
    """Give `module` the attributes of a pickle without tables: all of these classes are members; buffers are listed by name."""
    attributes = {name: value for name, value in state.items() if name not in ("_persistence", "_reserved")}
    kinds = {"_parameters": parameter, "_modules": module_class}
    members = {table: {name: True for name, value in attributes.items() if isinstance(value, kind)}
               for table, kind in kinds.items()}
    own_attributes(module, attributes, {**members, "_buffers": {**module._declared_buffers, **state.get("_persistence", {})}})


def _as_built(kind: type, settings: Attributes) -> Attributes:
    """The attributes of our layer built with these settings; empty if it needs others."""
    names = inspect.signature(kind).parameters
    before = rng.stored()
    try:
        return vars(kind(**{name: value for name, value in settings.items() if name in names}))
    except TypeError:
        return {}
    finally:
        rng.set_state(before)  # undo the draws of the dropped initial values
