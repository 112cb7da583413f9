"""Recurrent layers: RNN, LSTM, GRU, with several layers, in one or both directions."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np

from genesis.functions.creation import empty, zeros
from genesis.functions.from_data import tensor
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.nn import functional, init
from genesis.nn.getattr_bases import WithGetattr
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.nn.utils.rnn import PackedSequence, pack_as, padded
from genesis.ops.registry import OPERATIONS
from genesis.ops.sequences import GATES
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

KINDS = "weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr"  # the kinds of a layer's parameters

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]


class RNNBase(Module, WithGetattr):
    """The base of `RNN`, `LSTM` and `GRU`: each layer reads the output sequence of the one before.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as in `RNN`.
        proj_size: the features that an LSTM's h is projected to; 0 for none.

    >>> output, h = genesis.nn.RNNBase("GRU", 3, 4)(genesis.ones(5, 2, 3))
    >>> output.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in GATES:
            raise ArgumentError(f"{name}: mode is {mode!r}; want {', '.join(map(repr, GATES))}")
        if proj_size and mode != "LSTM":
            raise ArgumentError(f"{name}: proj_size is {proj_size}; an LSTM alone has projections")
        for setting, value in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            if not isinstance(value, bool):
                raise TypeError(f"{name}: {setting} should be of type bool, got: {type(value).__name__}")
        if min(input_size, hidden_size, num_layers) < 1:
            raise ArgumentError(f"{name}: sizes {input_size}, {hidden_size} and {num_layers} layers; want 1 or more of each")
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"{name}: dropout is a probability, got {dropout}")
        if not 0 <= proj_size < hidden_size:
            raise ArgumentError(f"{name}: proj_size is {proj_size}; want less than hidden_size, {hidden_size}, or 0 for none")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._shown = proj_size or hidden_size
        self._directions = 2 if bidirectional else 1
        gates = GATES[self.mode] * hidden_size
        for layer in range(num_layers):
            enters = input_size if layer == 0 else self._directions * self._shown
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, enters), "weight_hh": (gates, self._shown)}
            if bias:
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for end in self._ends(layer):
                for kind, shape in shapes.items():
                    setattr(self, kind + end, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters, as PyTorch does: uniform within 1 / sqrt(hidden_size)."""
        bound = 1 / sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction.

        >>> [weight.shape for weight in genesis.nn.RNN(3, 4).all_weights[0]]
        [(4, 3), (4, 4), (4,), (4,)]
        """
        ends = [end for layer in range(self.num_layers) for end in self._ends(layer)]
        names = [[kind + end for kind in KINDS if hasattr(self, kind + end)] for end in ends]
        return [[getattr(self, name) for name in own] for own in names]

    def flatten_parameters(self) -> None:
        """Does nothing: there is no memory to arrange. PyTorch's scripts call it."""

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | Sequence[Tensor] | None = None) -> tuple[Any, Any]:
        """(output, state) of `input` (l, n, in), (n, l, in) with `batch_first`, (l, in), or a PackedSequence.

        `hx`, and the state after the last step, are h (layers * directions, n, out), without n for an unbatched input;
        for an LSTM, (h, c). `hx` defaults to zeros. The output is (l, n, directions * out), with the input's axis order.
        """
        packed = input if isinstance(input, PackedSequence) else None
        x, lengths = padded(input) if isinstance(input, PackedSequence) else (input, None)
        batched = x.ndim == 3
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ArgumentError(f"{type(self).__name__}: input has shape {x.shape}; want (.., {self.input_size}), 2 or 3 axes")
        if not batched:
            x = x.unsqueeze(1)
        elif self.batch_first and packed is None:
            x = x.transpose(0, 1)
        if not x.shape[0]:
            raise ArgumentError(f"{type(self).__name__}: a sequence of length 0; want 1 or more")
        states = self._first(x, hx, batched)
        if packed is not None and hx is not None and packed.sorted_indices is not None:
            states = [state.index_select(1, packed.sorted_indices) for state in states]
        output: Tensor | PackedSequence
        output, states = self._through(x, states, lengths, packed)
        if packed is not None:
            output = pack_as(output, packed)
            if packed.unsorted_indices is not None:
                states = [state.index_select(1, packed.unsorted_indices) for state in states]
        elif not batched:
            output, states = output.squeeze(1), [state.squeeze(1) for state in states]
        elif self.batch_first:
            output = output.transpose(0, 1)
        return output, states[0] if len(states) == 1 else tuple(states)

    def _first(self, x: Tensor, hx: Tensor | Sequence[Tensor] | None, batched: bool) -> list[Tensor]:
        """The initial state of every layer and direction, along a first axis."""
        lead = self.num_layers * self._directions, x.shape[1]
        sizes = (self._shown, self.hidden_size) if self.mode == "LSTM" else (self.hidden_size,)  # of h and c
        if hx is None:
            return [zeros(*lead, size, dtype=x.dtype, device=x.device) for size in sizes]
        given: list[Tensor] = [hx] if len(sizes) == 1 else list(hx)  # type: ignore[list-item]
        for state, size, name in zip(given, sizes, ("h", "c"), strict=False):
            want = (*lead, size) if batched else (lead[0], size)
            if state.shape != want:
                raise ArgumentError(f"{type(self).__name__}: {name}_0 has shape {state.shape}; want {want}")
        return given if batched else [state.unsqueeze(1) for state in given]

    def _through(
        self, x: Tensor, states: list[Tensor], lengths: np.ndarray | None, packed: PackedSequence | None
    ) -> tuple[Tensor, list[Tensor]]:
        after: list[tuple[Tensor, ...]] = []
        ends = None if lengths is None else tensor(lengths, device=x.device)
        for layer in range(self.num_layers):
            if layer and self.dropout and self.training:
                x = self._dropped(x, packed)
            outputs = []
            for reverse, end in enumerate(self._ends(layer)):
                weight_ih, weight_hh, bias_ih, bias_hh, weight_hr = [getattr(self, kind + end, None) for kind in KINDS]
                given = call(OPERATIONS["linear"], (x, weight_ih))  # of the whole input: only the state goes by steps
                first = [state[len(after)] for state in states]
                output, *last = call(OPERATIONS["recurrent"], (
                    given, first, [weight_hh, bias_ih, bias_hh, weight_hr], self.mode, bool(reverse), ends))
                outputs.append(output)
                after.append(tuple(last))
            x = outputs[0] if len(outputs) == 1 else call(OPERATIONS["cat"], (outputs, -1))
        return x, [call(OPERATIONS["stack"], (list(each),)) for each in zip(*after, strict=True)]

    def _dropped(self, x: Tensor, packed: PackedSequence | None) -> Tensor:
        """Dropout between layers; of packed sequences for their own steps, in the order in which these are packed."""
        if packed is None:
            return functional.dropout(x, self.dropout)
        kept = pack_as(x, packed)
        return padded(kept._replace(data=functional.dropout(kept.data, self.dropout)))[0]

    def _ends(self, layer: int) -> list[str]:
        """The suffixes of a layer's parameter names, one per direction."""
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def extra_repr(self) -> str:
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        settings = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([str(self.input_size), str(self.hidden_size), *settings])


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), step by step (Elman, 1990).

    Args:
        input_size, hidden_size: the features of the input and of h.
        num_layers: the number of layers; each reads the output of the one before.
        nonlinearity: "tanh" or "relu".
        bias: whether there are biases.
        batch_first: (n, l, in) instead of (l, n, in).
        dropout: the probability, between layers while training.
        bidirectional: also run from the last step to the first, with separate weights.

    Raises ValueError for another nonlinearity, sizes below 1, and a dropout outside [0, 1].

    >>> output, h = genesis.nn.RNN(3, 4)(genesis.ones(5, 2, 3))
    >>> output.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"RNN: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), with a forget gate.

    Arguments as in `RNN`; with `proj_size`, h is projected to that many features. The state is (h, c).

    >>> lstm = genesis.nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)
    >>> output, (h, c) = lstm(genesis.ones(2, 5, 3))
    >>> output.shape, h.shape, c.shape
    ((2, 5, 8), (4, 2, 4), (4, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        sizes = input_size, hidden_size, num_layers
        super().__init__("LSTM", *sizes, bias, batch_first, dropout, bidirectional, proj_size, device, dtype)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014). Arguments as in `RNN`.

    >>> output, h = genesis.nn.GRU(3, 4)(genesis.ones(5, 2, 3))
    >>> output.shape, h.shape
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        sizes = input_size, hidden_size, num_layers
        super().__init__("GRU", *sizes, bias, batch_first, dropout, bidirectional, 0, device, dtype)
