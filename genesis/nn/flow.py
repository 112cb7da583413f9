"""Flow fields for `grid_sample`, and the older names of `interpolate`."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.functions.overrides import overridable
from genesis.functions.ranges import linspace
from genesis.ir.errors import ArgumentError
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor


@overridable
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The sampling grid (n, h, w, 2) of the affine maps `theta` (n, 2, 3) for a result of `size` (n, c, h, w); see
    `grid_sample`.

    For volumes: `theta` (n, 3, 4), `size` (n, c, d, h, w), grid (n, d, h, w, 3). `align_corners` as in `grid_sample`.
    Raises ValueError for other shapes.

    >>> affine_grid(genesis.tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2))
    tensor([[[[0., 0.],
              [1., 0.]]]])
    """
    axes = len(size) - 2
    if axes not in (2, 3) or theta.shape != (size[0], axes, axes + 1) or min(size) < 1:
        raise ArgumentError(f"affine_grid: theta {theta.shape}, size {tuple(size)}; want (n, 2, 3) and (n, c, h, w), or "
                            "(n, 3, 4) and (n, c, d, h, w)")
    extents = tuple(size[2:])
    moved = theta[:, :, -1].reshape(size[0], *[1] * axes, axes)
    for axis, extent in enumerate(extents):
        along = linspace(-min(extent - 1, 1), 1, extent, dtype=theta.dtype, device=theta.device)
        if not align_corners:
            along = along * (extent - 1) / extent
        coordinate = along.reshape(*[extent if a == axis else 1 for a in range(axes)], 1)
        moved = moved + coordinate * theta[:, :, axes - 1 - axis].reshape(size[0], *[1] * axes, axes)
    return moved


INTERPOLATIONS, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _by_number(name: str, rank: int) -> None:
    def sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
        if input.ndim != rank or interpolation_mode not in range(3) or padding_mode not in range(3):
            raise ArgumentError(f"{name}: mode {interpolation_mode}, padding {padding_mode} of {input.shape}; want indices in "
                                f"{', '.join(INTERPOLATIONS)} and in {', '.join(PADDINGS)}, and {rank} axes")
        arguments = (input, grid, INTERPOLATIONS[interpolation_mode], PADDINGS[padding_mode], align_corners)
        return call(OPERATIONS["grid_sample"], arguments)

    sampler.__name__ = sampler.__qualname__ = name
    sampler.__doc__ = "`grid_sample`, with mode and padding by number."
    overridable(sampler)


_by_number("grid_sampler_2d", 4)
_by_number("grid_sampler_3d", 5)


def upsample_nearest(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | None = None) -> Tensor:
    """`interpolate` in mode "nearest".

    >>> genesis.nn.functional.upsample_nearest(genesis.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    return call(OPERATIONS["interpolate"], (input, size, scale_factor, "nearest"))


def upsample_bilinear(input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | None = None) -> Tensor:
    """`interpolate` in mode "bilinear" with aligned corners.

    >>> genesis.nn.functional.upsample_bilinear(genesis.arange(4.0).reshape(1, 1, 2, 2), size=(1, 3))
    tensor([[[[0.0000, 0.5000, 1.0000]]]])
    """
    return call(OPERATIONS["interpolate"], (input, size, scale_factor, "bilinear", True))
