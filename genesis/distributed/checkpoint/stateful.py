"""Objects in a checkpoint: their state is saved and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`, such as a model, or a class of a model and its optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """The state to save."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a loaded state."""
        ...


def states_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state with stateful objects replaced by their states."""
    return {key: each.state_dict() if isinstance(each, Stateful) else each for key, each in state.items()}


def give_back(state: dict[str, Any], loaded: Mapping[str, Any]) -> None:
    """Restore the stateful objects of `state` from the loaded values, and replace its other values."""
    for key, each in [*state.items()]:
        if isinstance(each, Stateful):
            each.load_state_dict(loaded[key])
        else:
            state[key] = loaded[key]
