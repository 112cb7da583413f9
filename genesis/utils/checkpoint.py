"""Checkpointing trades time for memory: backward recomputes intermediates, but those that a policy chooses to keep."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from genesis.autograd.backward_pass import BackwardPass
from genesis.autograd.custom import Context, Deferred, record_custom
from genesis.autograd.saved_tensors import passed_back
from genesis.ir.annotations import AnyFunction, Options, Tree
from genesis.ops.registry import OPERATIONS
from genesis.pytree import leaves_of, map_tree, with_leaves
from genesis.runtime import rng
from genesis.tensor.call_modes import FunctionMode
from genesis.tensor.composite import differentiated, like
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor, is_written_since, root_of, tensor_of
from genesis.tensor.modes import autocast
from genesis.tracing.state import current_trace, grad_mode, thread_mode, thread_state

__all__ = [
    "CheckpointPolicy", "SelectiveCheckpointContext", "checkpoint", "checkpoint_sequential",
    "create_selective_checkpoint_contexts", "noop_context_fn",
]
__dir__ = __all__.copy


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


_TENSOR = object()  # placeholder of a tensor argument


def checkpoint(
    function: AnyFunction, *args: Tree, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
    context_fn: Callable[[], Contexts] = noop_context_fn, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, **kwargs: Tree,
) -> Tree:
    """`function(*args, **kwargs)`, run again in backward instead of keeping what it computes between.

    Gradients are the same as without checkpoint, and reach every tensor that `function` uses, argument or not. The second run
    draws the same random numbers (unless `preserve_rng_state` is off) and has the same autocast. `context_fn` returns a
    context for each of the two runs, such as `create_selective_checkpoint_contexts`. PyTorch's other options have no effect.
    Raises RuntimeError if `function` changes an argument in place.

    >>> from genesis.utils.checkpoint import checkpoint
    >>> x = genesis.tensor([1., 2.], requires_grad=True)
    >>> checkpoint(lambda x: x * x * x, x).sum().backward()
    >>> x.grad
    tensor([ 3., 12.])
    """
    given = [differentiated(a) for a in leaves_of((args, kwargs)) if isinstance(a, Tensor)]
    arrays, changes = [array_of(t) for t in given], [root_of(t)._changes for t in given]
    state, dtype = rng.stored(), thread_state.autocast
    first_run, second_run = context_fn()
    with first_run:
        outcome = function(*args, **kwargs)
    results = _parts_in(outcome)
    carried = [isinstance(r, Tensor) and r.requires_grad for r in results]
    if not thread_state.grad_enabled or not any(carried):
        return outcome
    if any(map(is_written_since, given, changes)):
        raise RuntimeError("checkpoint: the function changed an argument in place, so it cannot be run again; clone() it there")
    context = Context()
    context.save_for_backward(*given)
    context.mark_non_differentiable(*[r for r, c in zip(results, carried, strict=True) if isinstance(r, Tensor) and not c])
    context.set_materialize_grads(False)
    context._reaches_more = True

    bare = map_tree(  # the graph must not hold them twice
        lambda a: a if not isinstance(a, Tensor) else _TENSOR if differentiated(a) is a else a.detach(), (args, kwargs))

    def again(saved: Sequence[Tensor]) -> list[Tensor]:
        tensors = iter(saved)
        again_args, again_kwargs = map_tree(
            lambda a: next(tensors) if a is _TENSOR else like(a, next(tensors)) if isinstance(a, Tensor) else a, bare)
        cast_as_then = autocast(dtype=dtype, enabled=dtype is not None)(function)
        with rng.drawing_from(state if preserve_rng_state else None), second_run:
            return _parts_in(cast_as_then(*again_args, **again_kwargs))

    def backward(context: Context, *gradients: Tensor | None) -> Deferred:
        return _recomputed(again, context.saved_tensors, gradients)

    inputs = [(t, array) if t.requires_grad else None for t, array in zip(given, arrays, strict=True)]
    recorded = record_custom("Checkpoint", backward, context, inputs, results, {})
    return with_leaves(outcome, map(like, leaves_of(outcome), recorded))


def _parts_in(tree: Tree) -> list[Tree]:
    """The leaves of a tree, of composite tensors their parts that are differentiated."""
    return [differentiated(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves_of(tree)]


def _recomputed(
    again: Callable[[Sequence[Tensor]], list[Tensor]], saved: Sequence[Tensor | None], gradients: Sequence[Tensor | None]
) -> Deferred:
    """The second run, from copies of the arguments, and the backward pass from its results to those copies."""
    create_graph = thread_state.grad_enabled
    device = next(array_of(g).device for g in gradients if g is not None)
    with grad_mode(True):
        with thread_mode("undivided", True):
            copies = [array_of(call(OPERATIONS["optimization_barrier"], (t,))) for t in saved]
            trace = current_trace(device)
        inner = BackwardPass(create_graph, create_graph, until=(trace, len(trace.nodes) - 1))
        results = again([tensor_of(array, array.node.differentiable) for array in copies])
    return passed_back(inner, trace, copies, results, gradients)


def checkpoint_sequential(
    functions: Iterable[AnyFunction], segments: int, input: Tree, use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Tree:
    """`input` through `functions` (a list, or an `nn.Sequential`), in `segments` parts, all but the last checkpointed.

    Raises ValueError for more segments than functions.

    >>> from genesis.utils.checkpoint import checkpoint_sequential
    >>> checkpoint_sequential([genesis.exp, genesis.log, genesis.neg], 2, genesis.tensor([1., 2.]))
    tensor([-1., -2.])
    """
    steps = list(functions)
    if not 1 <= segments <= len(steps):
        raise ValueError(f"checkpoint_sequential: {segments} segments of {len(steps)} functions; want 1 to {len(steps)}")
    size = len(steps) // segments
    last = size * (segments - 1)

    def run(piece: Sequence[AnyFunction], x: Tree) -> Tree:
        for step in piece:
            x = step(x)
        return x

    for start in range(0, last, size):
        input = checkpoint(run, steps[start : start + size], input, preserve_rng_state=preserve_rng_state)
    return run(steps[last:], input)
