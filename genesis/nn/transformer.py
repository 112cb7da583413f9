"""The encoder of the Transformer (Vaswani et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from genesis.ir.dtypes import DType
from genesis.nn import functional
from genesis.nn.attention import MultiheadAttention
from genesis.nn.containers import ModuleList
from genesis.nn.dropout import Dropout
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.normalization import LayerNorm
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = ["TransformerEncoder", "TransformerEncoderLayer"]


class TransformerEncoderLayer(Module):
    """Attention of a sequence to itself, then a network of two layers for each place; each is added to what came in.

    Args:
        d_model: the features.
        nhead: the heads, whose number divides d_model.
        dim_feedforward: the width of the network.
        dropout: the probability, in four places.
        activation: "relu", "gelu", or a function.
        layer_norm_eps: of the norms.
        batch_first: (n, l, e) instead of (l, n, e).
        norm_first: normalise what goes into each part, not what comes out of its sum.
        bias: whether linear layers and norms have one.

    Raises ValueError for another activation.

    >>> import genesis
    >>> layer = genesis.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(genesis.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor],
        Tensor] = functional.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device=device, dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = activation_named("TransformerEncoderLayer", activation)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """`src` of the shape that MultiheadAttention takes, with its masks; the same shape."""
        x = src
        if self.norm_first:
            x = x + self._attention(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._network(self.norm2(x))
        x = self.norm1(x + self._attention(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._network(x))

    def _attention(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        output, _ = self.self_attn(
            x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal
        )
        return self.dropout1(output)

    def _network(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """`num_layers` copies of `encoder_layer`, one after the other, then `norm` if given.

    `enable_nested_tensor` and `mask_check` are accepted and of no effect.

    >>> from genesis import nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), num_layers=3)
    >>> len(encoder.layers), len(list(encoder.parameters()))
    (3, 36)
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        self.layers = ModuleList(deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """`src` through all layers, with the same masks."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


def activation_named(layer: str, activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The function that a layer's argument stands for."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ValueError(f"{layer}: activation must be 'relu', 'gelu' or a function, got {activation!r}")
    return functional.relu if activation == "relu" else functional.gelu
