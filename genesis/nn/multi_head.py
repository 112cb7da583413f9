"""Attention as a function: of queries, keys and values, and with several heads, of `MultiheadAttention`'s parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from genesis.functions.creation import zeros
from genesis.functions.memory_order import memory_axes
from genesis.functions.overrides import overridable
from genesis.functions.random_draws import draws, kept_factors, stream
from genesis.functions.selection import where
from genesis.ir.dtypes import bool_
from genesis.ir.errors import ArgumentError, FormError
from genesis.ir.shapes import broadcast_shapes, numel
from genesis.nn.noise import dropout
from genesis.ops.registry import OPERATIONS
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor


class Heads(NamedTuple):
    """The parameters of multi-head attention; those that a layer lacks are None."""

    embed_dim: int
    num_heads: int
    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    own_weights: tuple[Tensor | None, ...] | None  # separate ones of query, key and value, instead of one for all
    bias_k: Tensor | None
    bias_v: Tensor | None
    add_zero_attn: bool
    dropout: float

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, padding: Tensor | None, need_weights: bool,
        static_k: Tensor | None = None, static_v: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """(output (n, l, e); weights (n, heads, l, s), if wanted) for query, key and value (n, l, ..).

        `static_k` and `static_v`, (n * heads, s, e / heads), replace the projections of key and value.
        """
        q, k, v = self._projected(query, key, value)
        mask = self._mask(q, k, attn_mask, padding)
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (_with_last(x, b.expand(x.shape[0], 1, -1)) for x, b in ((k, self.bias_k), (v, self.bias_v)))
        heads = [self._split(x) for x in (q, k, v)]
        for index, static in ((1, static_k), (2, static_v)):
            if static is not None:
                heads[index] = static.unflatten(0, (-1, self.num_heads))
        if self.add_zero_attn:
            heads[1:] = [_with_last(x, zeros(*x.shape[:2], 1, x.shape[-1], dtype=x.dtype, device=x.device)) for x in heads[1:]]
        if mask is not None and heads[1].shape[2] > mask.shape[-1]:
            mask = call(OPERATIONS["pad"], (mask, (0, heads[1].shape[2] - mask.shape[-1])))
        found, weights = self._weigh(heads[0], heads[1], heads[2], mask, need_weights)
        return found.transpose(1, 2).flatten(2), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        if self.own_weights is not None:
            weights = self.own_weights
        elif self.in_proj_weight is None:
            raise ArgumentError("multi_head_attention: wants in_proj_weight, or a weight for each of query, key and value")
        elif query is key is value:
            joint: Tensor = call(OPERATIONS["linear"], (query, self.in_proj_weight, self.in_proj_bias))
            return list(joint.chunk(3, -1))
        else:
            weights = tuple(self.in_proj_weight.chunk(3))
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [call(OPERATIONS["linear"], (x, w, b)) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _split(self, x: Tensor) -> Tensor:
        """(n, l, e) -> (n, heads, l, e / heads)."""
        return x.unflatten(-1, (self.num_heads, self.embed_dim // self.num_heads)).transpose(1, 2)

    def _mask(self, q: Tensor, k: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Both masks as numbers to add to (n, heads, l, s)."""
        (n, queries, _), keys, heads = q.shape, k.shape[1], self.num_heads
        total = None
        if attn_mask is not None:
            if attn_mask.shape not in ((queries, keys), (n * heads, queries, keys)):
                raise ArgumentError(
                    f"MultiheadAttention: attn_mask has shape {attn_mask.shape}; want {(queries, keys)} or "
                    f"{(n * heads, queries, keys)}"
                )
            total = _numbers(attn_mask, q)
            total = total if total.ndim == 2 else total.reshape(n, heads, queries, keys)
        if padding is not None:
            if padding.shape != (n, keys):
                raise FormError(f"MultiheadAttention: key_padding_mask has shape {padding.shape}; want {(n, keys)}")
            hidden = _numbers(padding, q).reshape(n, 1, 1, keys)
            total = hidden if total is None else total + hidden
        return total

    def _weigh(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool) -> tuple[Tensor, Tensor | None]:
        if not need_weights:
            return scaled_dot_product_attention(q, k, v, mask, self.dropout), None
        scores = (q * (self.embed_dim // self.num_heads) ** -0.5) @ k.transpose(-2, -1)
        weights = call(OPERATIONS["softmax"], (scores if mask is None else scores + mask, -1))
        weights = dropout(weights, self.dropout)
        return weights @ v, weights


def _with_last(x: Tensor, last: Tensor) -> Tensor:
    return call(OPERATIONS["cat"], ([x, last], -2))


def _numbers(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add: -inf where it is True. Raises ValueError, an AssertionError too, for integers."""
    if mask.dtype is not bool_ and not mask.dtype.is_floating_point:
        raise FormError(f"MultiheadAttention: a mask has dtype {mask.dtype.name}; want bools, True at hidden keys, or floats")
    return where(mask, float("-inf"), 0.0).to(like.dtype) if mask.dtype is bool_ else mask


@overridable
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """`nn.MultiheadAttention` as a function of its parameters: (output, weights).

    Args:
        query, key, value: (l, n, e), (s, n, ..), or all without n.
        embed_dim_to_check: e.
        num_heads, add_zero_attn: settings of the layer; `dropout_p` is used if `training`.
        in_proj_weight, in_proj_bias: (3 e, e) and (3 e,), for all three; or, with `use_separate_proj_weight`, the weights
            `q_proj_weight`, `k_proj_weight`, `v_proj_weight`.
        bias_k, bias_v: (1, 1, e), one more key and value.
        out_proj_weight, out_proj_bias: (e, e) and (e,).
        static_k, static_v: (n * num_heads, s, e / num_heads), instead of projected keys and values.

    Masks, weights and errors are those of `nn.MultiheadAttention`'s call.

    >>> x, square = genesis.ones(2, 1, 4), genesis.eye(4)
    >>> settings = (4, 2, genesis.ones(12, 4), None, None, None, False, 0.0)
    >>> output, weights = multi_head_attention_forward(x, x, x, *settings, square, None)
    >>> output.shape, weights.tolist()
    ((2, 1, 4), [[[0.5, 0.5], [0.5, 0.5]]])
    """
    embed_dim = query.shape[-1]
    if embed_dim != embed_dim_to_check or embed_dim % num_heads:
        raise ArgumentError(
            f"multi_head_attention_forward: {embed_dim} features of {num_heads} heads; want {embed_dim_to_check}")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    heads = Heads(
        embed_dim, num_heads, in_proj_weight, in_proj_bias, separate, bias_k, bias_v, add_zero_attn,
        dropout_p if training else 0.0)

    def project(found: Tensor) -> Tensor:
        return call(OPERATIONS["linear"], (found, out_proj_weight, out_proj_bias))

    return multi_head_attention(
        "multi_head_attention_forward", heads, project, (query, key, value), attn_mask, key_padding_mask, need_weights,
        average_attn_weights, is_causal, statics=(static_k, static_v))


def multi_head_attention(
    name: str, heads: Heads, project: Callable[[Tensor], Tensor], operands: Sequence[Tensor], attn_mask: Tensor | None,
    key_padding_mask: Tensor | None, need_weights: bool, average_weights: bool, is_causal: bool, *, batch_first: bool = False,
    statics: tuple[Tensor | None, Tensor | None] = (None, None),
) -> tuple[Tensor, Tensor | None]:
    """(output, weights) of the layer or function `name`; `project` maps the heads' joined results to the output."""
    if is_causal and attn_mask is None:
        raise ArgumentError(f"{name}: is_causal wants the causal attn_mask with it")
    query, key, value = operands
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise FormError(f"{name}: query {query.shape}, key {key.shape}, value {value.shape}; want all with 3 axes, or 2")
    batched = query.ndim == 3
    if not batched:
        query, key, value = (x.unsqueeze(0) for x in operands)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    elif not batch_first:
        same, query = query is key is value, query.transpose(0, 1)
        key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
    found, weights = heads.attend(query, key, value, attn_mask, key_padding_mask, need_weights, *statics)
    output = project(found)
    if weights is not None and average_weights:
        weights = weights.mean(1)
    if not batched:
        return output.squeeze(0), None if weights is None else weights.squeeze(0)
    in_pytorchs_order = stream(output.device) is not None  # then dropout draws in the memory order (l, n, e)
    if batch_first and (output.is_nested or not in_pytorchs_order):
        return output, weights
    output = output.transpose(0, 1).contiguous() if in_pytorchs_order else output.transpose(0, 1)
    return (output.transpose(0, 1) if batch_first else output), weights


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

    The result lies in memory as 4-d queries do: heads that were split from a projection are merged by `view`.

    Raises ValueError for mismatched shapes, a probability outside [0, 1], and a mask together with `is_causal`.

    >>> q, k, v = genesis.zeros(2, 2), genesis.ones(2, 2), genesis.tensor([[1.0], [2.0]])
    >>> scaled_dot_product_attention(q, k, v, is_causal=True).tolist()
    [[1.0], [1.5]]
    """
    if not 0 <= dropout_p <= 1:
        raise ArgumentError(f"scaled_dot_product_attention: dropout_p is a probability, got {dropout_p}")
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
    attended = call(OPERATIONS["scaled_dot_product_attention"], arguments)
    fused = query.ndim == 4 and not dropout_p and len({query.shape[-1], key.shape[-1], value.shape[-1]}) == 1
    axes = memory_axes(query) if fused else [0, 1, 2, 3]
    if axes == [0, 1, 2, 3] or (attn_mask is not None and attn_mask.requires_grad) or {
            x.stride(-1) for x in (query, key, value)} != {1}:
        return attended  # type: ignore[no-any-return]
    return attended.permute(axes).contiguous().permute([*map(axes.index, range(4))])  # type: ignore[no-any-return]
