"""Forward-mode derivatives with dual tensors: the API of `torch.autograd.forward_ad`.

A level opened under `no_grad` records. A dual tensor requires a gradient, and its level remembers its tangent. Unpacking a
result computes its tangent by reverse mode twice: v -> v J is linear in v, and the derivative by v along the tangents is J
times the tangents.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from genesis.autograd.pullback import or_zeros, pull, pull_linear
from genesis.ir.errors import ArgumentError
from genesis.tensor.handle import Tensor
from genesis.tracing.state import grad_mode, thread_state

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
__dir__ = __all__.copy


class UnpackedDualTensor(NamedTuple):
    """A value, and its tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a level, in which dual tensors can be made; returns its number. Raises RuntimeError within another one."""
    if thread_state.dual_level is not None:
        raise RuntimeError("forward_ad: levels do not nest; use genesis.func.jvp for derivatives of derivatives")
    thread_state.dual_level = [], thread_state.grad_enabled
    if thread_state.grad_enabled is False:  # a level records under no_grad too
        thread_state.grad_enabled = True
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Exit the level. Raises RuntimeError outside of one."""
    if thread_state.dual_level is None:
        raise RuntimeError("forward_ad: there is no level to leave; enter one with dual_level()")
    (_, before), thread_state.dual_level = thread_state.dual_level, None
    if before is False:
        thread_state.grad_enabled = False


@contextlib.contextmanager
def dual_level() -> Iterator[int]:
    """A level as a context.

    >>> import genesis.autograd.forward_ad as forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(genesis.tensor([2.0, 3.0]), genesis.tensor([1.0, 0.0]))
    ...     forward_ad.unpack_dual(x * x).tangent
    tensor([4., 0.])
    """
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """`tensor` with a tangent of its shape. Raises RuntimeError outside of a level, ValueError for other shapes or integers."""
    if thread_state.dual_level is None:
        raise RuntimeError("make_dual: there is no level; enter one with dual_level()")
    if tensor.shape != tangent.shape:
        raise ArgumentError(f"make_dual: the tangent has shape {tangent.shape}; want the tensor's {tensor.shape}")
    if tensor.dtype.category < 2 or tangent.dtype.category < 2:
        raise ArgumentError(f"make_dual: wants floating tensors, got {tensor.dtype.name} and a tangent of {tangent.dtype.name}")
    if tangent.requires_grad and unpack_dual(tangent).tangent is not None:
        raise RuntimeError("make_dual: the tangent has a tangent itself; use genesis.func.jvp for derivatives of derivatives")
    with grad_mode(True):
        dual = tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_()
    thread_state.dual_level[0].append((dual, tangent))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and its tangent; the tangent is None if it depends on no dual tensor."""
    duals = thread_state.dual_level[0] if thread_state.dual_level is not None else []
    tangent = next((tangent for dual, tangent in duals if dual is tensor), None)
    if tangent is None and duals and tensor.requires_grad:
        seeds, slopes = pull_linear([tensor], [dual for dual, _ in duals])
        met = [(slope, along) for slope, (_, along) in zip(slopes, duals, strict=True) if slope is not None]
        if met:
            [tangent] = or_zeros(pull([slope for slope, _ in met], [along for _, along in met], seeds, False), [tensor])
    return UnpackedDualTensor(tensor.detach(), tangent)
