"""Max unpooling: elements return to the positions that max pooling took them from, zeros elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from genesis.functions.overrides import overridable
from genesis.ir.annotations import AnyFunction
from genesis.ir.errors import ArgumentError
from genesis.ir.shapes import numel
from genesis.ops.registry import OPERATIONS
from genesis.ops.window import PerAxis, per_axis
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


def _max_unpool(axes: int, extents: str) -> AnyFunction:
    """The inverse of max pooling over `axes` axes, named `extents`."""
    name = f"max_unpool{axes}d"

    def max_unpool(
        input: Tensor, indices: Tensor, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        if input.ndim not in (axes + 1, axes + 2) or indices.shape != input.shape:
            raise ArgumentError(
                f"{name}: input {input.shape}, indices {indices.shape}; want one shape, {axes + 1} or {axes + 2} axes")
        sizes = per_axis(name, "kernel_size", kernel_size, axes)
        steps = sizes if stride is None else per_axis(name, "stride", stride, axes)
        pads = per_axis(name, "padding", padding, axes, 0)
        lead, last = input.shape[: input.ndim - axes], input.shape[input.ndim - axes :]
        usual = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(last, steps, sizes, pads, strict=True))
        want = usual if output_size is None else tuple(output_size)[-axes:]
        if len(want) != axes or any(abs(w - u) >= s for w, u, s in zip(want, usual, steps, strict=True)):
            raise ArgumentError(f"{name}: output_size is {output_size}; want {usual}, or less than a step {steps} from it")
        zeros = input.new_zeros((*lead, numel(want)))
        flat = [x.reshape(*lead, numel(last)) for x in (indices, input)]
        return call(OPERATIONS["scatter"], (zeros, input.ndim - axes, *flat)).reshape(*lead, *want)

    max_unpool.__name__ = max_unpool.__qualname__ = name
    max_unpool.__doc__ = f"""The elements that `max_pool{axes}d` took, at the `indices` that it returned, and zeros.

    Of (n, c, {extents}) or (c, {extents}). `output_size` is what was pooled, where it is not what the windows reach. Raises
    ValueError for other sizes.

    >>> y, at = genesis.nn.functional.max_pool{axes}d(genesis.ones(1, {"2, " * axes}), 2, return_indices=True)
    >>> {name}(y, at, 2).sum()
    tensor(1.)
    """
    return overridable(max_unpool)


max_unpool1d, max_unpool2d, max_unpool3d = _max_unpool(1, "l"), _max_unpool(2, "h, w"), _max_unpool(3, "d, h, w")
