"""The Transformer (Vaswani et al., 2017): its encoder, its decoder, and both."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import ClassVar

from genesis.functions.creation import full
from genesis.ir.dtypes import DType, bool_
from genesis.ir.errors import ArgumentError
from genesis.nn import functional, init
from genesis.nn.attention import MultiheadAttention
from genesis.nn.containers import ModuleList
from genesis.nn.dropout import Dropout
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.nn.normalization import LayerNorm
from genesis.runtime.devices import DeviceLike
from genesis.tensor.composite import CompositeTensor
from genesis.tensor.handle import Tensor
from genesis.tracing.state import thread_state

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]


class TransformerEncoderLayer(Module):
    """Self-attention, then a two-layer network per position; each is added to its input.

    Args:
        d_model: the features.
        nhead: the heads, whose number divides d_model.
        dim_feedforward: the width of the network.
        dropout: the probability, used four times.
        activation: "relu", "gelu", or a function.
        layer_norm_eps: of the norms.
        batch_first: (n, l, e) instead of (l, n, e).
        norm_first: normalize the input of each part instead of the sum after it.
        bias: whether linear layers and norms have biases.

    Raises ValueError for another activation.

    >>> layer = genesis.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> layer(genesis.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    _attentions: ClassVar[tuple[str, ...]] = ("self_attn",)  # the attentions before the network, each with a norm and a dropout
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor],
        Tensor] = functional.relu, layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype))
        self.linear1 = Linear(d_model, dim_feedforward, bias, device=device, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device=device, dtype=dtype)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for part in parts:
            setattr(self, f"norm{part}", LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype))
        for part in parts:
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = _activation_named(type(self).__name__, activation)
        self.activation_relu_or_gelu = {functional.relu: 1, functional.gelu: 2}.get(self.activation, 0)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        """`src` of the shape that MultiheadAttention takes, with its masks; the same shape."""
        x, masks = src, (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            y = self.norm1(x)
            x = x + self.dropout1(_attended(self.self_attn, y, y, *masks))
            return x + self.dropout2(self._network(self.norm2(x)))
        x = self.norm1(x + self.dropout1(_attended(self.self_attn, x, x, *masks)))
        return self.norm2(x + self.dropout2(self._network(x)))

    def _network(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoder(Module):
    """`num_layers` copies of `encoder_layer`, one after the other, then `norm` if given.

    Where PyTorch computes nested tensors, results at padding are 0, as there: without gradients, in evaluation, of a batch with
    `src_key_padding_mask` alone, whose sequences are padded at their ends (not looked at without `mask_check`). Other results
    are the same without `enable_nested_tensor`, or `backends.mha.set_fastpath_enabled(False)`.

    >>> from genesis import nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), num_layers=3)
    >>> len(encoder.layers), len(list(encoder.parameters()))
    (3, 36)
    """

    has_fast_path: ClassVar[bool] = True  # set by `backends.mha`

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList(deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check
        self.use_nested_tensor = enable_nested_tensor and _could_be_nested(encoder_layer)

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """`src` through all layers, with the same masks."""
        zeros = self._zeros(src, mask, src_key_padding_mask)
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        src = src if zeros is None else src.masked_fill(zeros.unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _zeros(self, src: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
        """Where the last layer's results are 0; None if nowhere."""
        layer = self.layers[0]
        may = self.use_nested_tensor and self.has_fast_path
        if not may or padding is None or mask is not None or layer.training or src.ndim != 3 or (
            isinstance(src, CompositeTensor) or thread_state.autocast is not None
            or (thread_state.grad_enabled and any([x.requires_grad for x in (src, *layer.parameters())]))
        ):
            return None
        padded = padding if padding.dtype is bool_ else padding != 0
        return padded & (padded[:, 1:] | ~padded[:, :-1]).all() if self.mask_check else padded


def _could_be_nested(layer: Module) -> bool:
    """Whether PyTorch may use nested tensors."""
    attention = getattr(layer, "self_attn", None)
    return (
        isinstance(layer, TransformerEncoderLayer) and isinstance(attention, MultiheadAttention) and not layer.norm_first
        and attention.batch_first and attention.in_proj_weight is not None and attention.in_proj_bias is not None
        and layer.activation_relu_or_gelu > 0 and layer.norm1.eps == layer.norm2.eps and attention.num_heads % 2 == 0
    )


class TransformerDecoderLayer(TransformerEncoderLayer):
    """Self-attention, then attention to `memory`, then a two-layer network; each is added to its input.

    Arguments and errors as in TransformerEncoderLayer.

    >>> layer = genesis.nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> layer(genesis.ones(3, 5, 8), genesis.ones(3, 4, 8)).shape
    (3, 5, 8)
    """

    _attentions = "self_attn", "multihead_attn"
    multihead_attn: MultiheadAttention
    norm3: LayerNorm
    dropout3: Dropout

    def forward(  # type: ignore[override]
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:
        """`tgt` and `memory` of the shapes that MultiheadAttention takes, with their masks; the shape of `tgt`."""
        x, own = tgt, (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = memory, memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            y = self.norm1(x)
            x = x + self.dropout1(_attended(self.self_attn, y, y, *own))
            x = x + self.dropout2(_attended(self.multihead_attn, self.norm2(x), *other))
            return x + self.dropout3(self._network(self.norm3(x)))
        x = self.norm1(x + self.dropout1(_attended(self.self_attn, x, x, *own)))
        x = self.norm2(x + self.dropout2(_attended(self.multihead_attn, x, *other)))
        return self.norm3(x + self.dropout3(self._network(x)))


class TransformerDecoder(Module):
    """`num_layers` copies of `decoder_layer`, one after the other, then `norm` if given.

    >>> from genesis import nn
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), num_layers=2)
    >>> len(decoder.layers), len(list(decoder.parameters()))
    (2, 36)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(deepcopy(decoder_layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:
        """`tgt` through all layers, with the same memory and masks."""
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                        bool(tgt_is_causal), memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to the encoded `src`.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: those of the
            layers; see TransformerEncoderLayer.
        num_encoder_layers, num_decoder_layers: the number of layers.
        custom_encoder, custom_decoder: replace the built ones.

    >>> model = genesis.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    >>> model(genesis.ones(3, 4, 8), genesis.ones(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor], Tensor] = functional.relu,
        custom_encoder: Module | None = None, custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                    device, dtype)

        def norm() -> Module:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*settings), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*settings), num_decoder_layers, norm())
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:
        """`src` and `tgt` of the shapes that MultiheadAttention takes, with their masks; the shape of `tgt`.

        Raises ValueError unless they have `d_model` features, and one number of examples.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == tgt.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise ArgumentError(f"Transformer: src {src.shape} and tgt {tgt.shape}; want as many examples in both")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise ArgumentError(f"Transformer: src {src.shape} and tgt {tgt.shape}; want {self.d_model} features")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: DeviceLike = None, dtype: DType | None = None) -> Tensor:
        """-inf above the diagonal of (sz, sz), zeros elsewhere: each position attends to itself and to those before it.

        >>> genesis.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return full((sz, sz), float("-inf"), dtype=dtype, device=device).triu(1)


def _activation_named(layer: str, activation: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The activation function that a layer's argument names."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise ArgumentError(f"{layer}: activation must be 'relu', 'gelu' or a function, got {activation!r}")
    return functional.relu if activation == "relu" else functional.gelu


def _attended(
    attention: MultiheadAttention, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
) -> Tensor:
    output, _ = attention(x, memory, memory, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=is_causal)
    return output
