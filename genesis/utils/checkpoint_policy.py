"""Selective checkpointing: a policy chooses by called function which results are kept."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from genesis.ir.annotations import AnyFunction, Options, Tree
from genesis.ops.registry import OPERATIONS
from genesis.pytree import leaves_of, with_leaves
from genesis.tensor.call_modes import FunctionMode
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts", "noop_context_fn"]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointPolicy(enum.Enum):
    """Whether a call's result is kept for backward or recomputed."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE, MUST_CPU_OFFLOAD, PREFER_CPU_OFFLOAD = range(6)


_KEPT = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_CPU_OFFLOAD,
         CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """A policy's context besides the call: whether this is the second run."""

    def __init__(self, *, is_recompute: bool, op_output: object = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


Policy = Callable[..., CheckpointPolicy | bool]


class _Run(FunctionMode):
    """One of the two runs. `kept` has the results that the first run keeps, by function, in order."""

    def __init__(self, policy: Policy, kept: dict[AnyFunction, list[list[Tensor]]], again: bool) -> None:
        self._policy, self._kept, self._again = policy, kept, again
        self._calls: dict[AnyFunction, int] = {}

    def __enter__(self) -> FunctionMode:
        self._calls = {}
        if not self._again:
            self._kept.clear()
        return super().__enter__()

    def intercept(self, function: AnyFunction, args: Sequence[Any], kwargs: Options) -> Tree:
        result = function(*args, **kwargs)
        chosen = self._policy(SelectiveCheckpointContext(is_recompute=self._again, op_output=result), function, *args, **kwargs)
        if chosen is not True and chosen not in _KEPT:
            return result
        if not self._again:
            results = [leaf.detach() for leaf in leaves_of(result) if isinstance(leaf, Tensor)]
            self._kept.setdefault(function, []).append(results)
            return result
        number = self._calls[function] = self._calls.get(function, -1) + 1
        values = iter(self._kept[function][number])
        return with_leaves(result, iter(
            [_valued(leaf, next(values)) if isinstance(leaf, Tensor) else leaf for leaf in leaves_of(result)]))


def _valued(derived: Tensor, value: Tensor) -> Tensor:
    """The kept value with the gradient of the recomputed one, which is then never computed."""
    if not derived.requires_grad:
        return value
    found: Tensor = call(OPERATIONS["with_value"], (derived, value))
    return found


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[AnyFunction], allow_cache_entry_mutation: bool = False
) -> Contexts:
    """The contexts of a checkpoint's two runs: results that a policy chooses are kept, not recomputed.

    `policy_fn_or_list` is a list of functions whose results are kept, or a function of a `SelectiveCheckpointContext`, the
    called function and its arguments, which returns a `CheckpointPolicy` or a bool: whether to keep the result.

    >>> from genesis.utils.checkpoint import checkpoint
    >>> x = genesis.tensor([1., 2.], requires_grad=True)
    >>> keep = lambda: create_selective_checkpoint_contexts([genesis.exp])
    >>> checkpoint(lambda x: x.exp().sin(), x, context_fn=keep).sum().backward()
    >>> genesis.allclose(x.grad, x.exp() * x.exp().cos())
    True
    """
    if callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        listed = [*policy_fn_or_list]

        def policy(context: SelectiveCheckpointContext, function: AnyFunction, *args: Any, **kwargs: Any) -> bool:
            return function in listed

    kept: dict[AnyFunction, list[list[Tensor]]] = {}
    return _Run(policy, kept, False), _Run(policy, kept, True)


def noop_context_fn() -> Contexts:
    """Two contexts that change nothing."""
    return nullcontext(), nullcontext()
