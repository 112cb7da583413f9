"""Images whose channels become places and back, and windows taken out and laid over each other, as modules."""

from __future__ import annotations

from genesis.nn import functional
from genesis.nn.module import Module
from genesis.ops.window import PerAxis
from genesis.tensor.handle import Tensor

__all__ = ["ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold"]


class PixelShuffle(Module):
    """(.., c * r^2, h, w) -> (.., c, h * r, w * r); see `nn.functional.pixel_shuffle`.

    >>> import genesis
    >>> genesis.nn.PixelShuffle(2)(genesis.ones(1, 8, 3, 3)).shape
    (1, 2, 6, 6)
    """

    _printed = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(.., c * r^2, h, w) -> (.., c, h * r, w * r)."""
        return functional.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """(.., c, h * r, w * r) -> (.., c * r^2, h, w); see `nn.functional.pixel_unshuffle`.

    >>> import genesis
    >>> genesis.nn.PixelUnshuffle(2)(genesis.ones(1, 2, 6, 6)).shape
    (1, 8, 3, 3)
    """

    _printed = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(.., c, h * r, w * r) -> (.., c * r^2, h, w)."""
        return functional.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """The channels of all groups in turn; see `nn.functional.channel_shuffle`.

    >>> import genesis
    >>> genesis.nn.ChannelShuffle(2)(genesis.arange(4).reshape(1, 4, 1)).tolist()
    [[[0], [2], [1], [3]]]
    """

    _printed = ("groups",)

    def __init__(self, groups: int) -> None:
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, ..), of the same shape."""
        return functional.channel_shuffle(input, self.groups)


class _Windows(Module):
    _printed: tuple[str, ...] = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1) -> None:
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride


class Unfold(_Windows):
    """The windows of images as columns: (n, c, h, w) -> (n, c * window, windows); see `nn.functional.unfold`.

    >>> import genesis
    >>> genesis.nn.Unfold(2)(genesis.ones(1, 3, 4, 4)).shape
    (1, 12, 9)
    """

    def forward(self, input: Tensor) -> Tensor:
        """(n, c, h, w) -> (n, c * window, windows)."""
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Windows):
    """Columns laid over each other as images and added: what `Unfold` took apart; see `nn.functional.fold`.

    >>> import genesis
    >>> genesis.nn.Fold((4, 4), 2, stride=2)(genesis.ones(1, 12, 4)).shape
    (1, 3, 4, 4)
    """

    _printed = ("output_size", *_Windows._printed)

    def __init__(
        self, output_size: PerAxis, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1
    ) -> None:
        self.output_size = output_size
        super().__init__(kernel_size, dilation, padding, stride)

    def forward(self, input: Tensor) -> Tensor:
        """(n, c * window, windows) -> (n, c, h, w)."""
        return functional.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
