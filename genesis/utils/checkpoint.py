"""Checkpointing: a function whose intermediate results are not kept for backward, but computed again when it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.amp import autocast
from genesis.autograd import Function, enable_grad, grad, is_grad_enabled
from genesis.autograd.leaves import leaves_of
from genesis.runtime import rng
from genesis.storage import detach
from genesis.tensor import Tensor, array_of, tensor_of
from genesis.trace import thread_state

__all__ = ["checkpoint"]

_PLACE = object()  # stands for a tensor among the arguments


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`; backward calls the function a second time instead of keeping what lies in between.

    Args:
        function: returns a tensor or a tuple of them, the same each time for the same arguments.
        use_reentrant: accepted as PyTorch's; gradients reach the tensors among `args` and all leaves that the function
            uses, parameters among them, either way.
        preserve_rng_state: draw the same random numbers the second time.

    >>> import genesis
    >>> from genesis.utils.checkpoint import checkpoint
    >>> x = genesis.tensor([1.0, 2.0], requires_grad=True)
    >>> checkpoint(lambda x: (x ** 2).exp(), x).sum().backward()
    >>> x.grad
    tensor([  5.4366, 218.3926])
    """
    if not is_grad_enabled():
        return function(*args, **kwargs)
    state, low = rng.get_state(), thread_state.autocast
    tensors = [a for a in args if isinstance(a, Tensor)]
    others = [_PLACE if isinstance(a, Tensor) else a for a in args]  # who kept the tensors would keep their derivation

    def again(tensors: Sequence[Tensor]) -> Any:
        given = iter(tensors)
        with enable_grad(), autocast(dtype=low, enabled=low is not None):
            return function(*[next(given) if other is _PLACE else other for other in others], **kwargs)

    def replayed(tensors: Sequence[Tensor]) -> Any:
        before = rng.get_state()
        rng.set_state(state)
        try:
            return again(tensors)
        finally:
            rng.set_state(before)

    results = again([detach(t) for t in tensors])
    used = {id(leaf): leaf for result in _listed(results) if isinstance(result, Tensor) for leaf in leaves_of(result)}
    leaves = list(used.values())
    bare = [detach(r) if isinstance(r, Tensor) else r for r in _listed(results)]
    linked = _Checkpoint.apply(replayed if preserve_rng_state else again, bare, leaves, *tensors, *leaves)
    return linked if isinstance(results, tuple | list) else linked[0]


class _Checkpoint(Function):
    """Results that are there already, of tensors and of the leaves that came in by themselves."""

    @staticmethod
    def forward(
        ctx: Any, again: Callable[..., Any], results: Sequence[Any], leaves: Sequence[Tensor], *tensors: Tensor
    ) -> Sequence[Any]:
        """The results as they are."""
        ctx.save_for_backward(*tensors)
        ctx.save_variable("again", again)
        ctx.save_variable("leaves", leaves)
        return results

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        """The gradients, by way of the function's second call."""
        leaves, saved = ctx.saved_variables["leaves"], ctx.saved_tensors
        tensors = saved[: len(saved) - len(leaves)]
        if not is_grad_enabled():
            tensors = [_apart(t, needs) for t, needs in zip(tensors, ctx.needs_input_grad[3:], strict=False)]
        results = _listed(ctx.saved_variables["again"](tensors))
        pairs = [(r, g) for r, g in zip(results, grad_outputs, strict=True) if isinstance(r, Tensor) and r.requires_grad]
        sources = [t for t in (*tensors, *leaves) if t.requires_grad]
        found = iter(grad(
            [r for r, _ in pairs], sources, [g for _, g in pairs], retain_graph=True, create_graph=is_grad_enabled(),
            allow_unused=True,
        ))
        return (None, None, None, *[next(found) if t.requires_grad else None for t in (*tensors, *leaves)])


def _listed(results: Any) -> Sequence[Any]:
    return results if isinstance(results, tuple | list) else (results,)


def _apart(tensor: Tensor, requires_grad: bool) -> Tensor:
    """A leaf with the value of `tensor`, which does not know where that came from."""
    return tensor_of(array_of(detach(tensor)), requires_grad, tensor._result_class)
