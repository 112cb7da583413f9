"""Fractional max pooling: windows of one size at random starts, so that the result has the requested extents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from genesis.functions.overrides import overridable
from genesis.functions.ranges import arange
from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import int64
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import Shape, numel
from genesis.nn.layer import Family
from genesis.ops.registry import OPERATIONS
from genesis.ops.window import PerAxis, per_axis
from genesis.random import rand
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor
from genesis.tensor.views import detach

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d"]

Ratios = float | Sequence[float]


def _ratios(name: str, given: Ratios, axes: int) -> tuple[float, ...]:
    ratios = (float(given),) * axes if isinstance(given, int | float) else tuple(given)
    if len(ratios) != axes or not all(0 < ratio < 1 for ratio in ratios):
        raise ArgumentError(f"{name}: output_ratio is {given}; want {axes} numbers between 0 and 1, or one")
    return ratios


def _starts(sample: Tensor, extent: int, count: int, size: int) -> Tensor:
    """(n, c, count): the window starts along one axis, from a random number in [0, 1) per plane, `sample` (n, c)."""
    last = sample.new_full((*sample.shape, 1), extent - size).to(int64)
    if count < 2:
        return last[..., :count]
    step = (extent - size) / (count - 1)
    windows = arange(count - 1, dtype=sample.dtype, device=sample.device)
    found = ((windows + sample.unsqueeze(-1)) * step).trunc() - (sample.unsqueeze(-1) * step).trunc()
    return call(OPERATIONS["cat"], ([found.to(int64), last], -1))


def _counts(name: str, plane: Shape, sizes: Shape, output_size: PerAxis | None, output_ratio: Ratios | None) -> Shape:
    """The number of windows along each axis."""
    if output_size is not None:
        counts = per_axis(name, "output_size", output_size, len(plane), 0)
    elif output_ratio is not None:
        counts = tuple(int(n * ratio) for n, ratio in zip(plane, _ratios(name, output_ratio, len(plane)), strict=True))
    else:
        raise ArgumentError(f"{name}: wants output_size or output_ratio")
    if any(count + size - 1 > n for count, size, n in zip(counts, sizes, plane, strict=True)):
        raise ArgumentError(f"{name}: {counts} windows of {sizes} do not fit {plane}")
    return counts


def _flat_indices(samples: Tensor, plane: Shape, counts: Shape, sizes: Shape) -> Tensor:
    """(n, c, windows along each axis, elements along each axis): the elements' indices in the flattened plane."""
    axes, flat = len(plane), cast(Any, 0)
    for axis in range(axes):
        drawn = samples[..., axis if axes == 3 else axes - 1 - axis]  # PyTorch orders them (w, h), but (d, h, w)
        at = _starts(drawn, plane[axis], counts[axis], sizes[axis]).unsqueeze(-1) + arange(sizes[axis], device=samples.device)
        shape = [*samples.shape[:2], *[1] * (2 * axes)]
        shape[2 + axis], shape[2 + axes + axis] = counts[axis], sizes[axis]
        flat = flat * plane[axis] + at.reshape(shape)
    return flat  # type: ignore[no-any-return]


def _fractional_max_pool(axes: int, letters: str) -> AnyFunction:
    """The pooling over `axes` axes, named by these `letters`."""
    name = f"fractional_max_pool{axes}d"

    def pool(
        input: Tensor, kernel_size: PerAxis, output_size: PerAxis | None = None, output_ratio: Ratios | None = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        if input.ndim not in (axes + 1, axes + 2) or not numel(input.shape[-axes - 1 :]):
            raise ArgumentError(f"{name}: input has shape {input.shape}; want (n, c, {letters}) or (c, {letters}), not empty")
        sizes, plane = per_axis(name, "kernel_size", kernel_size, axes), input.shape[-axes:]
        counts = _counts(name, plane, sizes, output_size, output_ratio)
        x = input if input.ndim == axes + 2 else input.unsqueeze(0)
        lead = x.shape[:2]
        if _random_samples is None:
            _random_samples = rand(*lead, axes, dtype=input.dtype, device=input.device)
        elif input.ndim == axes + 1:
            _random_samples = _random_samples[:1]  # a layer's samples may be for more examples than this one
        if _random_samples.shape != (*lead, axes):
            raise ArgumentError(f"{name}: _random_samples have shape {_random_samples.shape}; want {(*lead, axes)}")
        flat, windows = x.reshape(*lead, numel(plane)), numel(counts)
        at = _flat_indices(_random_samples, plane, counts, sizes).reshape(*lead, windows, numel(sizes))
        elements = detach(flat).gather(-1, at.reshape(*lead, windows * numel(sizes))).reshape(at.shape)
        chosen = at.gather(-1, elements.argmax(-1, keepdim=True)).squeeze(-1)
        extents = (*input.shape[: input.ndim - axes], *counts)
        values = flat.gather(-1, chosen).reshape(extents)
        return (values, chosen.reshape(extents)) if return_indices else values

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"""The greatest element of each window over the last {axes} axes, at random positions (Graham, 2015).

    Args:
        input: (n, c, {letters}) or (c, {letters}).
        kernel_size: the windows' extents.
        output_size: how many windows along each axis, or
        output_ratio: how many for each element.
        return_indices: (values, indices in the flattened plane).
        _random_samples: (n, c, {axes}) numbers in [0, 1) that place the windows; drawn if None.

    Raises ValueError for neither of both, and for windows that do not fit.

    >>> genesis.nn.functional.{name}(genesis.ones(1, 2, {", ".join("8" * axes)}), 2, output_ratio=0.5).shape
    (1, 2, {", ".join("4" * axes)})
    """
    return overridable(pool)


fractional_max_pool2d = _fractional_max_pool(2, "h, w")
fractional_max_pool3d = _fractional_max_pool(3, "d, h, w")


class _FractionalMaxPool(Family):
    """The greatest element of each window of (n, c, {extents}), at random positions; see `nn.functional.{function}`.

    >>> genesis.nn.{name}(2, output_size=4)(genesis.ones(1, 2, {9})).shape
    (1, 2, {4})
    """

    _random_samples: Tensor | None

    def __init__(
        self, kernel_size: PerAxis, output_size: PerAxis | None = None, output_ratio: Ratios | None = None,
        return_indices: bool = False, _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, axes = type(self).__name__, self._axes
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(f"{name}: output_size {output_size} and output_ratio {output_ratio}; want one of both")
        self.kernel_size = per_axis(name, "kernel_size", kernel_size, axes)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else per_axis(name, "output_size", output_size, axes, 0)
        self.output_ratio = None if output_ratio is None else _ratios(name, output_ratio, axes)

    def forward(self, input: Tensor) -> Any:
        """The greatest elements, with their indices if requested."""
        settings = self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        return self.function(input, *settings)


class FractionalMaxPool2d(_FractionalMaxPool, axes=2, function=fractional_max_pool2d): ...
class FractionalMaxPool3d(_FractionalMaxPool, axes=3, function=fractional_max_pool3d): ...
