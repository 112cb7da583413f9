"""Attention with several heads."""

from __future__ import annotations

from typing import Any

from genesis.functions.creation import empty, zeros
from genesis.functions.selection import where
from genesis.ir.dtypes import DType, bool_
from genesis.ir.replayable import replayable_module
from genesis.nn import functional, init
from genesis.nn.linear import NonDynamicallyQuantizableLinear
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention by `num_heads` heads, each on its part of the projected features (Vaswani et al., 2017).

    Args:
        embed_dim: the features of the query and of the output; `num_heads` divides them.
        num_heads: how many.
        dropout: the probability with which a weight is zeroed while training.
        bias: whether the projections have one.
        add_bias_kv: learn one more key and value.
        add_zero_attn: add a key and a value of zeros.
        kdim, vdim: the features of key and value; embed_dim if None.
        batch_first: (n, l, e) instead of (l, n, e).

    Raises ValueError unless `num_heads` divides `embed_dim`.

    >>> attention = genesis.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = genesis.ones(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {num_heads} heads do not divide embed_dim {embed_dim}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        joint = self.kdim == embed_dim == self.vdim
        self.in_proj_weight = Parameter(empty(3 * embed_dim, embed_dim, device=device, dtype=dtype)) if joint else None
        self.q_proj_weight = None if joint else Parameter(empty(embed_dim, embed_dim, device=device, dtype=dtype))
        self.k_proj_weight = None if joint else Parameter(empty(embed_dim, self.kdim, device=device, dtype=dtype))
        self.v_proj_weight = None if joint else Parameter(empty(embed_dim, self.vdim, device=device, dtype=dtype))
        self.in_proj_bias = Parameter(zeros(3 * embed_dim, device=device, dtype=dtype)) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = Parameter(empty(1, 1, embed_dim, device=device, dtype=dtype)) if add_bias_kv else None
        self.bias_v = Parameter(empty(1, 1, embed_dim, device=device, dtype=dtype)) if add_bias_kv else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, as PyTorch does."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output, weights) for `query` (l, n, e), `key` (s, n, kdim), `value` (s, n, vdim), or all without n.

        `key_padding_mask` (n, s) and `attn_mask` (l, s) or (n * heads, l, s) are bools, True where not to look, or numbers
        that are added. `is_causal` says that `attn_mask` is the causal one, which is needed with it. The weights are
        (n, l, s), without `average_attn_weights` (n, heads, l, s), and None unless `need_weights`.
        """
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal wants the causal attn_mask with it")
        batched = query.ndim == 3
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ValueError(
                f"MultiheadAttention: query {query.shape}, key {key.shape}, value {value.shape}; want all with 3 axes, or 2"
            )
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = self._projected(query, key, value)
        mask = self._mask(q, k, attn_mask, key_padding_mask)
        if self.bias_k is not None and self.bias_v is not None:
            k, v = (_with_last(x, b.expand(x.shape[0], 1, -1)) for x, b in ((k, self.bias_k), (v, self.bias_v)))
        if self.add_zero_attn:
            k, v = (_with_last(x, zeros(x.shape[0], 1, self.embed_dim, dtype=x.dtype, device=x.device)) for x in (k, v))
        if mask is not None and k.shape[1] > mask.shape[-1]:
            mask = functional.pad(mask, (0, k.shape[1] - mask.shape[-1]))
        heads, weights = self._attend(self._split(q), self._split(k), self._split(v), mask, need_weights)
        output = self.out_proj(heads.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return (output if self.batch_first else output.transpose(0, 1)), weights

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        if self.in_proj_weight is not None:
            if query is key is value:
                joint: Tensor = functional.linear(query, self.in_proj_weight, self.in_proj_bias)
                return list(joint.chunk(3, -1))
            weights: tuple[Any, ...] = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [functional.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]

    def _split(self, x: Tensor) -> Tensor:
        """(n, l, e) -> (n, heads, l, head_dim)."""
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _mask(self, q: Tensor, k: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Both masks as numbers to add to (n, heads, l, s)."""
        (n, queries, _), keys, heads = q.shape, k.shape[1], self.num_heads
        total = None
        if attn_mask is not None:
            if attn_mask.shape not in ((queries, keys), (n * heads, queries, keys)):
                raise ValueError(
                    f"MultiheadAttention: attn_mask has shape {attn_mask.shape}; want {(queries, keys)} or "
                    f"{(n * heads, queries, keys)}"
                )
            total = _numbers(attn_mask, q)
            total = total if total.ndim == 2 else total.reshape(n, heads, queries, keys)
        if padding is not None:
            if padding.shape != (n, keys):
                raise ValueError(f"MultiheadAttention: key_padding_mask has shape {padding.shape}; want {(n, keys)}")
            hidden = _numbers(padding, q).reshape(n, 1, 1, keys)
            total = hidden if total is None else total + hidden
        return total

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool) -> tuple[Tensor, Tensor | None]:
        probability = self.dropout if self.training else 0.0
        if not need_weights:
            return functional.scaled_dot_product_attention(q, k, v, mask, probability), None
        scores = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
        weights = functional.softmax(scores if mask is None else scores + mask, -1)
        weights = functional.dropout(weights, probability)
        return weights @ v, weights


def _with_last(x: Tensor, last: Tensor) -> Tensor:
    return call(OPERATIONS["cat"], ([x, last], 1))


def _numbers(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers to add: -inf where it is True."""
    return where(mask, float("-inf"), 0.0).to(like.dtype) if mask.dtype is bool_ else mask


replayable_module(__name__)
