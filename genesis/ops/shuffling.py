"""Channels and places exchanged: what is laid out in channels becomes an image of more places, and back."""

from __future__ import annotations

from genesis.ir.graph import Value
from genesis.ops.registry import composite
from genesis.ops.views import permute_value, reshape_value

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


def _image(name: str, input: Value, channels: int, rows: int, columns: int) -> tuple[int, int, int]:
    """The channels, rows and columns of images (.., c, h, w), which the numbers must divide."""
    wants = f"want (.., c, h, w) that {channels}, {rows} and {columns} divide"
    if input.ndim < 3 or min(channels, rows, columns) < 1:
        raise ValueError(f"{name}: input has shape {input.shape}; {wants}")
    c, h, w = input.shape[-3:]
    if c % channels or h % rows or w % columns:
        raise ValueError(f"{name}: input has shape {input.shape}; {wants}")
    return c, h, w


@composite("pixel_shuffle", method=False, namespace="nn.functional")
def pixel_shuffle(input: Value, upscale_factor: int) -> Value:
    """(.., c * r^2, h, w) -> (.., c, h * r, w * r): every r^2 channels are a square of places (Shi et al., 2016).

    Raises ValueError unless r^2 divides the channels.

    >>> import genesis
    >>> genesis.nn.functional.pixel_shuffle(genesis.arange(4).reshape(4, 1, 1), 2)
    tensor([[[0, 1],
             [2, 3]]])
    """
    r = upscale_factor
    c, h, w = _image("pixel_shuffle", input, r * r, 1, 1)
    lead = input.shape[:-3]
    n = len(lead)
    parts = reshape_value(input, (*lead, c // (r * r), r, r, h, w))
    spread = permute_value(parts, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape_value(spread, (*lead, c // (r * r), h * r, w * r))


@composite("pixel_unshuffle", method=False, namespace="nn.functional")
def pixel_unshuffle(input: Value, downscale_factor: int) -> Value:
    """(.., c, h * r, w * r) -> (.., c * r^2, h, w): what `pixel_shuffle` does, undone."""
    r = downscale_factor
    c, h, w = _image("pixel_unshuffle", input, 1, r, r)
    lead = input.shape[:-3]
    n = len(lead)
    parts = reshape_value(input, (*lead, c, h // r, r, w // r, r))
    joined = permute_value(parts, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape_value(joined, (*lead, c * r * r, h // r, w // r))


@composite("channel_shuffle", method=False, namespace="nn.functional")
def channel_shuffle(input: Value, groups: int) -> Value:
    """The channels (axis 1) of all groups in turn: the first of each, then the second of each (Zhang et al., 2018).

    >>> import genesis
    >>> genesis.nn.functional.channel_shuffle(genesis.arange(4).reshape(1, 4, 1), 2).tolist()
    [[[0], [2], [1], [3]]]
    """
    if input.ndim < 3 or groups < 1 or input.shape[1] % groups:
        raise ValueError(f"channel_shuffle: {groups} groups of shape {input.shape}; want (n, c, ..) that {groups} divides")
    n, c, *rest = input.shape
    parts = reshape_value(input, (n, groups, c // groups, *rest))
    return reshape_value(permute_value(parts, (0, 2, 1, *range(3, parts.ndim))), input.shape)
