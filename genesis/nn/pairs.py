"""Functions of pairs of points: all distances, and a loss by a distance of one's own."""

from __future__ import annotations

from collections.abc import Callable

from genesis.functions.creation import triu_indices
from genesis.functions.overrides import overridable
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["pdist", "triplet_margin_with_distance_loss"]


@overridable
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows of `input` (n, k), those of the first with the others first.

    >>> import genesis
    >>> pdist(genesis.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2 or p < 0:
        raise ValueError(f"pdist: p {p} of shape {input.shape}; want p 0 or more, and (n, k)")
    pairs = triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    return call(OPERATIONS["vector_norm"], (input[pairs[0]] - input[pairs[1]], p, -1))


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) of the distance d, the Euclidean one if None.

    With `swap`, the negative's distance from the positive counts where it is less. Raises ValueError unless `margin` is
    above 0.

    >>> import genesis
    >>> rows = genesis.tensor([[0.0]]), genesis.tensor([[3.0]]), genesis.tensor([[1.0]])
    >>> triplet_margin_with_distance_loss(*rows, distance_function=lambda a, b: (a - b).abs().sum(-1))
    tensor(3.)
    """
    if margin <= 0:
        raise ValueError(f"triplet_margin_with_distance_loss: margin is {margin}; want it above 0")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"triplet_margin_with_distance_loss: reduction must be 'mean', 'sum' or 'none', got {reduction!r}")

    def euclidean(a: Tensor, b: Tensor) -> Tensor:
        return call(OPERATIONS["pairwise_distance"], (a, b))

    distance = distance_function or euclidean
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    losses: Tensor = (near - far + margin).clamp(min=0)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()
