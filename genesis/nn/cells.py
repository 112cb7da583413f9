"""Single steps of recurrent networks, as modules."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from genesis.functions.creation import empty, zeros
from genesis.ir.dtypes import DType
from genesis.ir.errors import ArgumentError
from genesis.nn import init
from genesis.nn.getattr_bases import WithGetattr
from genesis.nn.module import Module
from genesis.nn.parameter import Parameter
from genesis.ops.registry import OPERATIONS
from genesis.ops.sequences import GATES
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module, WithGetattr):
    """The weights of one step, the base of `RNNCell`, `LSTMCell` and `GRUCell`.

    Args:
        input_size, hidden_size: the features of the input and of h.
        bias: whether there are biases.
        num_chunks: the weights have `num_chunks * hidden_size` rows.

    >>> genesis.nn.RNNCellBase(3, 4, True, num_chunks=2).weight_ih.shape
    (8, 3)
    """

    bias_ih: Parameter | None
    bias_hh: Parameter | None
    _mode = ""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(empty(gates, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(gates, hidden_size, device=device, dtype=dtype))
        self._hold_parameter("bias_ih", Parameter(empty(gates, device=device, dtype=dtype)) if bias else None)
        self._hold_parameter("bias_hh", Parameter(empty(gates, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters, as PyTorch does: uniform within 1 / sqrt(hidden_size)."""
        bound = 1 / sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input: Tensor, hx: Tensor | Sequence[Tensor] | None = None) -> Any:
        """The state after `input` (n, in) or (in,): h (n, out) or (out,); for an LSTMCell (h, c). `hx` defaults to zeros."""
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            name = type(self).__name__
            raise ArgumentError(f"{name}: input has shape {input.shape}; want (.., {self.input_size}) of 1 or 2 axes")
        want = (*input.shape[:-1], self.hidden_size)
        if hx is None:
            hx = self._initial_state(zeros(want, dtype=input.dtype, device=input.device))
        for state in hx if isinstance(hx, tuple | list) else (hx,):
            if state.shape != want:
                raise ArgumentError(f"{type(self).__name__}: hx has shape {state.shape}; want {want}")
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        return call(OPERATIONS[f"{self._mode.lower()}_cell"], (input, hx, *weights))

    def _initial_state(self, h: Tensor) -> Tensor | Sequence[Tensor]: return h
    def extra_repr(self) -> str: return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of `nn.RNN`.

    >>> genesis.nn.RNNCell(3, 4)(genesis.ones(2, 3)).shape
    (2, 4)
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: DeviceLike = None,
        dtype: DType | None = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"RNNCell: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        self.nonlinearity = nonlinearity
        self._mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(input_size, hidden_size, bias, GATES[self._mode], device, dtype)

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class _Gated(RNNCellBase):
    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: DeviceLike = None, dtype: DType | None = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, GATES[self._mode], device, dtype)


class LSTMCell(_Gated):
    """One step of `nn.LSTM`.

    >>> h, c = genesis.nn.LSTMCell(3, 4)(genesis.ones(2, 3))
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    """

    _mode = "LSTM"

    def _initial_state(self, h: Tensor) -> Tensor | Sequence[Tensor]:
        return h, h


class GRUCell(_Gated):
    """One step of `nn.GRU`.

    >>> genesis.nn.GRUCell(3, 4)(genesis.ones(2, 3)).shape
    (2, 4)
    """

    _mode = "GRU"
