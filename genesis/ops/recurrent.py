"""Recurrent networks: what a cell makes of an input and its state, and a layer, which goes through a sequence cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.ir.graph import Value
from genesis.ops.contraction import linear
from genesis.ops.elementwise import relu, sigmoid, tanh, where
from genesis.ops.joining import stack
from genesis.ops.layout import contiguous_layout, slice_layout
from genesis.ops.registry import cast, composite, widened
from genesis.ops.views import reshape_value, slice_value, view_value

__all__ = ["GATES", "gru_cell", "lstm_cell", "recurrent", "rnn_relu_cell", "rnn_tanh_cell"]

State = tuple[Value, ...]  # what a cell hands on; the first is what it shows
Weights = Sequence[Value | None]  # weight_ih, weight_hh, bias_ih, bias_hh; and weight_hr, which projects what is shown


# ---- what becomes of the state, from the gates' parts of the input and of what was shown ----


def _parts(x: Value, count: int) -> list[Value]:
    """The last axis in equal parts, wide."""
    size, axis = x.shape[-1] // count, x.ndim - 1
    at = contiguous_layout(x.shape)
    return [widened(view_value(x, slice_layout(at, axis, k * size, (k + 1) * size), "slice")) for k in range(count)]


def _lstm(given: Value, shown: Value, state: State) -> State:
    """Hochreiter and Schmidhuber, 1997, with the forget gate of Gers, Schmidhuber and Cummins, 2000."""
    enter, keep, fresh, show = _parts(given + shown, 4)
    cell = sigmoid(keep) * widened(state[1]) + sigmoid(enter) * tanh(fresh)
    return cast(sigmoid(show) * tanh(cell), given.dtype), cast(cell, given.dtype)


def _gru(given: Value, shown: Value, state: State) -> State:
    """Cho et al., 2014, with the reset gate after the product."""
    (reset, keep, fresh), (old_reset, old_keep, old_fresh) = _parts(given, 3), _parts(shown, 3)
    new = tanh(fresh + sigmoid(reset + old_reset) * old_fresh)
    return (cast(new + sigmoid(keep + old_keep) * (widened(state[0]) - new), given.dtype),)


def _rnn(activation: Callable[[Value], Value]) -> Callable[..., State]:
    return lambda given, shown, state: (activation(given + shown),)


_CELLS: dict[str, Callable[[Value, Value, State], State]] = {
    "LSTM": _lstm, "GRU": _gru, "RNN_TANH": _rnn(tanh), "RNN_RELU": _rnn(relu),
}
GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


# ---- a cell ----


def _cell(mode: str, input: Value, state: State, *weights: Value | None) -> State:
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    given, shown = linear(input, weight_ih, bias_ih), linear(state[0], weight_hh, bias_hh)
    if given.shape != shown.shape:
        raise ValueError(f"{mode.lower()} cell: input {input.shape} and hidden {state[0].shape} give gates of shapes "
                         f"{given.shape} and {shown.shape}; want them equal")
    return _CELLS[mode](given, shown, state)


@composite("lstm_cell", (), method=False, autocast="low")
def lstm_cell(
    input: Value, hx: State, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
) -> State:
    """(h, c) after one step: gates i, f, g, o of input (.., in) and h (.., out); c = f * c + i * g, h = o * tanh(c)."""
    return _cell("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


@composite("gru_cell", (), method=False, autocast="low")
def gru_cell(
    input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
) -> Value:
    """h after one step: gates r, z, n of input (.., in) and h (.., out); h = (1 - z) * n + z * h."""
    return _cell("GRU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite("rnn_tanh_cell", (), method=False, autocast="low")
def rnn_tanh_cell(
    input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
) -> Value:
    """tanh(w_ih @ input + b_ih + w_hh @ h + b_hh)."""
    return _cell("RNN_TANH", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


@composite("rnn_relu_cell", (), method=False, autocast="low")
def rnn_relu_cell(
    input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
) -> Value:
    """relu(w_ih @ input + b_ih + w_hh @ h + b_hh)."""
    return _cell("RNN_RELU", input, (hx,), w_ih, w_hh, b_ih, b_hh)[0]


# ---- a layer ----


@composite("recurrent", (), method=False, autocast="low", public=False)
def recurrent(
    input: Value, state: State, weights: Weights, mode: str, reverse: bool = False, lengths: Value | None = None
) -> State:
    """What a layer shows at each place of `input` (l, n, in), (l, n, out), and its state after the last.

    `reverse` goes from the last place to the first. Of a sequence shorter than l, `lengths` (n,) says where it ends: beyond,
    zeros are shown and the state stays. The whole input meets its weights in one product; only the state goes step by step.
    """
    weight_ih, weight_hh, bias_ih, bias_hh, weight_hr = weights
    given = linear(input, weight_ih, bias_ih)
    count, state = input.shape[0], tuple(state)
    shown: list[Value] = []
    for place in range(count - 1, -1, -1) if reverse else range(count):
        gates = reshape_value(slice_value(given, 0, place, place + 1), given.shape[1:])
        fresh = _CELLS[mode](gates, linear(state[0], weight_hh, bias_hh), state)
        if weight_hr is not None:
            fresh = (linear(fresh[0], weight_hr), *fresh[1:])
        if lengths is None:
            state = fresh
            shown.append(fresh[0])
        else:
            within = reshape_value(lengths > place, (*lengths.shape, 1))
            state = tuple([where(within, new, old) for new, old in zip(fresh, state, strict=True)])
            shown.append(where(within, fresh[0], 0))
    return stack(shown[::-1] if reverse else shown), *state
