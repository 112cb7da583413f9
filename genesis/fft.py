"""Shifts of the frequencies of Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.ir.replayable import replayable_module
from genesis.ir.shapes import normalize_axis
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["fftshift", "ifftshift"]


def _shifted(name: str, input: Tensor, dim: int | Sequence[int] | None, up: bool) -> Tensor:
    listed = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = tuple([normalize_axis(name, d, input.ndim) for d in listed])
    if not axes:
        return input.clone()
    steps = tuple([input.shape[a] // 2 if up else (input.shape[a] + 1) // 2 for a in axes])
    return call(OPERATIONS["roll"], (input, steps, axes))


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Move the zero frequency from the front to the middle of `dim` (all axes, if None).

    >>> fftshift(genesis.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _shifted("fftshift", input, dim, True)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _shifted("ifftshift", input, dim, False)


replayable_module(__name__)
