"""Resampling as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genesis.nn import functional
from genesis.nn.module import Module
from genesis.tensor.handle import Tensor

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Signals, images or volumes at another size. Arguments as those of `nn.functional.interpolate`.

    >>> import genesis
    >>> genesis.nn.Upsample(scale_factor=2, mode="bilinear")(genesis.ones(1, 3, 4, 5)).shape
    (1, 3, 8, 10)
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.size = size
        self.scale_factor = _floats(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """See `nn.functional.interpolate`."""
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        which = "size" if self.scale_factor is None else "scale_factor"
        return f"{which}={getattr(self, which)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images, each element taken from its nearest.

    >>> import genesis
    >>> genesis.nn.UpsamplingNearest2d(scale_factor=2)(genesis.tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images, weighed between neighbours, with the corners in their places.

    >>> import genesis
    >>> genesis.nn.UpsamplingBilinear2d((1, 3))(genesis.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


def _floats(factor: Any) -> Any:
    if isinstance(factor, Sequence):
        return tuple([float(f) for f in factor])
    return None if factor is None else float(factor)
