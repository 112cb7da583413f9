"""Layers that rearrange axes, channels and windows, and resample signals."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.nn import functional
from genesis.nn.layer import Layer
from genesis.nn.module import Module
from genesis.ops.window import PerAxis
from genesis.tensor.handle import Tensor
from genesis.tensor.views import view

__all__ = [
    "ChannelShuffle", "Flatten", "Fold", "Identity", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Unfold", "Upsample",
    "UpsamplingBilinear2d", "UpsamplingNearest2d",
]


class Identity(Module):
    """Returns its input.

    >>> genesis.nn.Identity()(genesis.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()  # accepts the arguments of any layer it replaces

    def forward(self, input: Tensor) -> Tensor:
        """`input` itself."""
        return input


class Flatten(Module):
    """The axes from `start_dim` to `end_dim` merged into one.

    >>> genesis.nn.Flatten()(genesis.ones(2, 3, 4)).shape
    (2, 12)
    """

    _printed = "start_dim", "end_dim"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """(a, b, c, ..) -> (a, b*c*..) with the default axes."""
        return view(input, "flatten", self.start_dim, self.end_dim)


class Unflatten(Module):
    """Axis `dim` split into `unflattened_size`.

    >>> genesis.nn.Unflatten(1, (2, 3))(genesis.ones(4, 6)).shape
    (4, 2, 3)
    """

    _printed = "dim", "unflattened_size"

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not all(isinstance(extent, int) for extent in unflattened_size):
            raise TypeError(f"Unflatten: unflattened_size is {unflattened_size}; want integers")
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """(.., n, ..) -> (.., *unflattened_size, ..)."""
        return view(input, "unflatten", self.dim, self.unflattened_size)


class PixelShuffle(Layer, function=functional.pixel_shuffle):
    upscale_factor: int


class PixelUnshuffle(Layer, function=functional.pixel_unshuffle):
    downscale_factor: int


class ChannelShuffle(Layer, function=functional.channel_shuffle):
    groups: int


class Unfold(Layer, function=functional.unfold):
    """The windows of images as columns: (n, c, h, w) -> (n, c * window, windows); see `nn.functional.unfold`.

    >>> genesis.nn.Unfold(2)(genesis.ones(1, 3, 4, 4)).shape
    (1, 12, 9)
    """

    kernel_size: PerAxis
    dilation: PerAxis = 1
    padding: PerAxis = 0
    stride: PerAxis = 1


class Fold(Layer, function=functional.fold):
    output_size: PerAxis
    kernel_size: PerAxis
    dilation: PerAxis = 1
    padding: PerAxis = 0
    stride: PerAxis = 1


class Upsample(Layer, function=functional.interpolate):
    size: int | Sequence[int] | None = None
    scale_factor: float | Sequence[float] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def __post_init__(self) -> None:
        factor = self.scale_factor
        if factor is not None:
            self.scale_factor = tuple(map(float, factor)) if isinstance(factor, Sequence) else float(factor)

    def extra_repr(self) -> str:
        which = "size" if self.scale_factor is None else "scale_factor"
        return f"{which}={getattr(self, which)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images by nearest neighbours.

    >>> genesis.nn.UpsamplingNearest2d(scale_factor=2)(genesis.tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    """

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images by bilinear interpolation with aligned corners.

    >>> genesis.nn.UpsamplingBilinear2d((1, 3))(genesis.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(self, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
