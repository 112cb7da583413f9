"""Objects in a checkpoint: what they give as their state is saved, and given back to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """What has a `state_dict` and takes one by `load_state_dict`, such as a model, or a class of a model and its optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """What is to be saved."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what was loaded."""
        ...


def states_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state to save: of objects what they give."""
    return {key: each.state_dict() if isinstance(each, Stateful) else each for key, each in state.items()}


def give_back(state: dict[str, Any], loaded: Mapping[str, Any]) -> None:
    """Have objects of `state` take what was loaded, and replace the rest."""
    for key, each in [*state.items()]:
        if isinstance(each, Stateful):
            each.load_state_dict(loaded[key])
        else:
            state[key] = loaded[key]
