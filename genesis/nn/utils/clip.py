"""Gradient clipping. It reads no value: the program decides."""

from __future__ import annotations

from collections.abc import Iterable

from genesis.functions.creation import zeros
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import update_all
from genesis.tracing.state import recording


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = (parameters,) if isinstance(parameters, Tensor) else tuple(parameters)
    return [t.grad for t in tensors if t.grad is not None]


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale the gradients in place so that their norm, taken over all of them together, is at most `max_norm`.

    Args:
        parameters: a tensor, or tensors, whose `.grad` to scale.
        max_norm: the bound.
        norm_type: the p of the norm; float("inf") for the largest magnitude.

    Returns the norm before scaling, a 0-d tensor.

    >>> x = genesis.tensor([0.0, 0.0], requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, 4.0])
    >>> clip_grad_norm_(x, max_norm=1.0)
    tensor(5.)
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    gradients = _gradients(parameters)
    if not gradients:
        return zeros(())
    with recording(False) as again, again:
        (total,) = update_all(gradients, "clip_to_norm", float(max_norm), float(norm_type))
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value], in place.

    >>> x = genesis.tensor([0.0, 0.0], requires_grad=True)
    >>> x.grad = genesis.tensor([3.0, -0.5])
    >>> clip_grad_value_(x, 1.0)
    >>> x.grad
    tensor([ 1.0000, -0.5000])
    """
    gradients = _gradients(parameters)
    if gradients:
        bound = float(clip_value)
        with recording(False) as again, again:
            update_all(gradients, "clip_to_value", -bound, bound)
