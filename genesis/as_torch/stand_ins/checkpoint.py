"""More names of `torch.utils.checkpoint`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import genesis
from genesis.as_torch.stand_ins._pytree import tree_map  # noqa: F401
from genesis.as_torch.stand_ins.overrides import TorchDispatchMode  # noqa: F401
from genesis.as_torch.stand_ins.settings import no_effect
from genesis.autograd.forward_values import ChangedError
from genesis.ir.annotations import AnyFunction
from genesis.tensor.handle import Tensor
from genesis.utils.checkpoint import checkpoint

CheckpointError = ChangedError  # what is raised where a second run cannot give what the first one did
set_checkpoint_debug_enabled = set_checkpoint_early_stop = no_effect  # a second run is one program, of what backward reads
SAC_IGNORED_OPS = {genesis.Tensor.detach, genesis.Tensor.is_contiguous}
Text = str


class CheckpointFunction:
    """`checkpoint` under the name of PyTorch's class."""

    @staticmethod
    def apply(run_function: AnyFunction, preserve_rng_state: bool, *args: Any) -> Any:
        """`checkpoint(run_function, *args)`."""
        return checkpoint(run_function, *args, preserve_rng_state=preserve_rng_state)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn unless one of the tensors among `inputs` requires a gradient."""
    if not any(leaf.requires_grad for leaf in inputs if isinstance(leaf, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The inputs, with tensors detached into leaves that keep `requires_grad`. Raises RuntimeError unless given a sequence."""
    if not isinstance(inputs, tuple | list):
        raise RuntimeError(f"detach_variable: wants a tuple of tensors, got {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The GPUs of the tensors among `args`, and their generators' states: genesis has one state for all devices."""
    found = sorted({leaf.get_device() for leaf in args if isinstance(leaf, Tensor) and leaf.is_cuda})
    return found, [genesis.get_rng_state() for _ in found]


def set_device_states(devices: list[int], states: list[Any], *, device_type: str | None = None) -> None:
    """Restore states from `get_device_states`."""
    for state in states[:1]:
        genesis.set_rng_state(state)
