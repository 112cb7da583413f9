"""Scaled dot-product attention with dropout."""

from __future__ import annotations

from genesis.functions.overrides import overridable
from genesis.functions.random_draws import draws, kept_factors, stream
from genesis.ir.shapes import broadcast_shapes, numel
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor


@overridable
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale) @ value (Vaswani et al., 2017).

    Args:
        query: (.., l, e).
        key: (.., s, e).
        value: (.., s, v).
        attn_mask: broadcasts to (.., l, s): bools, True where a query sees a key, or numbers that are added to the products.
            A query that sees no key gets zeros.
        dropout_p: the probability with which a weight is zeroed, training or not.
        is_causal: query i sees the keys 0 to i; not together with `attn_mask`.
        scale: 1 / sqrt(e) if None.
        enable_gqa: several heads of query (the axis before l) share one of key and value.

    Raises ValueError for mismatched shapes, a probability outside [0, 1], and a mask together with `is_causal`.

    >>> q, k, v = genesis.zeros(2, 2), genesis.ones(2, 2), genesis.tensor([[1.0], [2.0]])
    >>> scaled_dot_product_attention(q, k, v, is_causal=True).tolist()
    [[1.0], [1.5]]
    """
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"scaled_dot_product_attention: dropout_p is a probability, got {dropout_p}")
    if isinstance(query, CompositeTensor):
        given = query, key, value, attn_mask, float(dropout_p), is_causal, scale, enable_gqa
        return query.computed("scaled_dot_product_attention", given, {})  # type: ignore[no-any-return]
    seed, start, factors = 0, 0, None
    if dropout_p and query.ndim > 1 and key.ndim > 1:
        others = () if enable_gqa else (key.shape[:-2], value.shape[:-2])
        batch = broadcast_shapes("scaled_dot_product_attention", query.shape[:-2], *others)
        weights = (*batch, query.shape[-2], key.shape[-2])
        if stream(query.device) is None:
            seed, start = draws(numel(weights))
        else:
            factors = kept_factors(weights, dropout_p, query.dtype)
    arguments = (query, key, value, attn_mask, float(dropout_p), is_causal, scale, enable_gqa, seed, start, factors)
    return call(OPERATIONS["scaled_dot_product_attention"], arguments)
