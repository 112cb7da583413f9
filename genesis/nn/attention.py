"""Attention with several heads."""

from __future__ import annotations

from genesis.functions.creation import empty, zeros
from genesis.ir.dtypes import DType
from genesis.ir.errors import FormError
from genesis.nn import init
from genesis.nn.linear import NonDynamicallyQuantizableLinear
from genesis.nn.module import Module
from genesis.nn.multi_head import Heads, multi_head_attention
from genesis.nn.parameter import Parameter
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention by `num_heads` heads, each on its part of the projected features (Vaswani et al., 2017).

    Args:
        embed_dim: the features of the query and of the output; `num_heads` divides them.
        num_heads: the number of heads.
        dropout: the probability with which a weight is zeroed while training.
        bias: whether the projections have a bias.
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
    in_proj_bias: Parameter | None

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise FormError(f"MultiheadAttention: {num_heads} heads do not divide embed_dim {embed_dim}")
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        joint = self.kdim == embed_dim == self.vdim
        whole = Parameter(empty(3 * embed_dim, embed_dim, device=device, dtype=dtype)) if joint else None
        self._hold_parameter("in_proj_weight", whole)
        for name, width in ("q_proj_weight", embed_dim), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim):
            part = None if joint else Parameter(empty(embed_dim, width, device=device, dtype=dtype))
            self._hold_parameter(name, part)
        self._hold_parameter("in_proj_bias", Parameter(zeros(3 * embed_dim, device=device, dtype=dtype)) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = Parameter(empty(1, 1, embed_dim, device=device, dtype=dtype)) if add_bias_kv else None
        self.bias_v = Parameter(empty(1, 1, embed_dim, device=device, dtype=dtype)) if add_bias_kv else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters, as PyTorch does."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                init.zeros_(bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    _reset_parameters = reset_parameters  # PyTorch's name, which libraries call

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None, need_weights: bool = True,
        attn_mask: Tensor | None = None, average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(output, weights) for `query` (l, n, e), `key` (s, n, kdim), `value` (s, n, vdim), or all without n.

        `key_padding_mask` (n, s) and `attn_mask` (l, s) or (n * heads, l, s) are bools, True for masked positions, or numbers
        to add. `is_causal` is a hint that `attn_mask`, then required, is the causal mask. The weights are
        (n, l, s), without `average_attn_weights` (n, heads, l, s), and None unless `need_weights`. With `batch_first` and
        without masks, all may be nested tensors: each sequence attends to its own.
        """
        if query.shape[-1:] != (self.embed_dim,):
            raise FormError(f"MultiheadAttention: query has shape {query.shape}; want (.., {self.embed_dim})")
        separate = None
        if self.in_proj_weight is None:
            separate = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        heads = Heads(
            self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, separate, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout if self.training else 0.0)
        return multi_head_attention(
            "MultiheadAttention", heads, self.out_proj, (query, key, value), attn_mask, key_padding_mask, need_weights,
            average_attn_weights, is_causal, batch_first=self.batch_first)
