"""Attention: products of queries with keys, as weights of values."""

from __future__ import annotations

from genesis.ir.dtypes import bool_, int32
from genesis.ir.graph import Value
from genesis.ops.contraction import multiplied, swapped
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import exp, where
from genesis.ops.neural import softmax
from genesis.ops.reduction import amax, sum
from genesis.ops.registry import cast, composite, expand, widened
from genesis.ops.source import dropout, iota
from genesis.ops.views import reshape_value

__all__ = ["scaled_dot_product_attention"]


@composite("scaled_dot_product_attention", (8, 9), method=False, autocast="low")
def scaled_dot_product_attention(
    query: Value, key: Value, value: Value, attn_mask: Value | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False, seed: Value | int = 0, start: Value | int = 0,
) -> Value:
    """softmax(query @ key.T * scale) @ value (Vaswani et al., 2017).

    Arguments as those of `nn.functional.scaled_dot_product_attention`, which draws the numbers: what dropout zeroes is
    decided by those from `start` of `seed` on.
    """
    name = "scaled_dot_product_attention"
    if min(query.ndim, key.ndim, value.ndim) < 2 or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"{name}: query {query.shape}, key {key.shape} and value {value.shape}; want (.., l, e), (.., s, e) and (.., s, v)"
        )
    if is_causal and attn_mask is not None:
        raise ValueError(f"{name}: is_causal is a mask already; want no attn_mask beside it")
    if enable_gqa:
        key, value = (_shared(name, query, v) for v in (key, value))
    below = ("n<=m", "k<=m") if is_causal else ("", "")
    scores = multiplied(query, swapped(key), below[0]) * (max(query.shape[-1], 1) ** -0.5 if scale is None else scale)
    if is_causal:
        queries, keys = scores.shape[-2:]
        rows = reshape_value(iota(scores.graph, queries, int32), (queries, 1))  # of a score's size: as many in a vector
        scores = where(iota(scores.graph, keys, int32) <= rows, scores, float("-inf"))
    weights = softmax(scores, -1) if attn_mask is None else _masked_softmax(scores, attn_mask)
    if dropout_p > 0:
        weights = dropout(weights, seed, start, dropout_p)
    return multiplied(weights, value, below[1])


def _masked_softmax(scores: Value, mask: Value) -> Value:
    """softmax along the last axis; zeros where the mask leaves nothing."""
    if not scores.shape[-1]:
        return scores
    masked = where(mask, scores, float("-inf")) if mask.dtype is bool_ else scores + cast(mask, scores.dtype)
    x = widened(masked)
    top = stop_gradient(amax(x, -1, True))
    e = exp(x - where(top == float("-inf"), 0, top))
    total = sum(e, -1, True)
    return cast(e * (1 / where(total == 0, 1, total)), scores.dtype)


def _shared(name: str, query: Value, x: Value) -> Value:
    """Each head of `x` as often as `query` has heads for it."""
    if query.ndim < 3 or x.ndim < 3 or query.shape[-3] % x.shape[-3]:
        raise ValueError(f"{name}: enable_gqa wants heads that divide the query's, got shapes {query.shape} and {x.shape}")
    times = query.shape[-3] // x.shape[-3]
    grouped = reshape_value(x, (*x.shape[:-2], 1, *x.shape[-2:]))
    spread = expand(grouped, (*x.shape[:-2], times, *x.shape[-2:]))
    return reshape_value(spread, (*x.shape[:-3], x.shape[-3] * times, *x.shape[-2:]))
