"""Sequences: attention, and the cells of recurrent networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genesis.ir.dtypes import bool_, int32
from genesis.ir.graph import Value
from genesis.ops.activation import softmax
from genesis.ops.contraction import linear, multiplied, swapped
from genesis.ops.conversion import stop_gradient
from genesis.ops.elementwise import exp, relu, sigmoid, tanh, where
from genesis.ops.layout import contiguous_layout, slice_layout
from genesis.ops.reduction import amax, sum
from genesis.ops.registry import Operation, cast, composite, expand, widened
from genesis.ops.source import dropout, iota
from genesis.ops.time_loop import time_loop
from genesis.ops.views import reshape_value, view_value


@composite("scaled_dot_product_attention", (8, 9), method=False, autocast="low")
def scaled_dot_product_attention(
    query: Value, key: Value, value: Value, attn_mask: Value | None = None, dropout_p: float = 0.0, is_causal: bool = False,
    scale: float | None = None, enable_gqa: bool = False, seed: Value | int = 0, start: Value | int = 0,
    factors: Value | None = None,
) -> Value:
    """softmax(query @ key.T * scale) @ value (Vaswani et al., 2017).

    Arguments as in `nn.functional.scaled_dot_product_attention`. Dropout uses the random numbers of `seed` from `start` on, or
    the `factors` of the weights, if given.
    """
    name = "scaled_dot_product_attention"
    if min(query.ndim, key.ndim, value.ndim) < 2 or query.shape[-1] != key.shape[-1] or key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"{name}: query {query.shape}, key {key.shape} and value {value.shape}; want (.., l, e), (.., s, e) and (.., s, v)"
        )
    if is_causal and attn_mask is not None:
        raise ValueError(f"{name}: is_causal is a mask already; want no attn_mask beside it")
    if attn_mask is not None and attn_mask.dtype is not bool_ and attn_mask.dtype.category < 2:
        raise TypeError(f"{name}: attn_mask has dtype {attn_mask.dtype.name}; want bools, True at seen keys, or floats to add")
    if enable_gqa:
        key, value = (_shared(name, query, v) for v in (key, value))
    below = ("n<=m", "k<=m") if is_causal else ("", "")
    # With 16-bit inputs, only the operands of products are rounded.
    scores = multiplied(query, swapped(key), below[0], wide=True)
    scores = scores * (max(query.shape[-1], 1) ** -0.5 if scale is None else scale)
    if is_causal:
        queries, keys = scores.shape[-2:]
        rows = reshape_value(iota(scores.graph, queries, int32), (queries, 1))  # int32: the size of a score
        scores = where(iota(scores.graph, keys, int32) <= rows, scores, float("-inf"))
    weights = cast(softmax(scores, -1) if attn_mask is None else _masked_softmax(scores, attn_mask), query.dtype)
    if factors is not None:
        weights = weights * factors
    elif dropout_p > 0:
        weights = dropout(weights, seed, start, dropout_p)
    return multiplied(weights, value, below[1])


def _masked_softmax(scores: Value, mask: Value) -> Value:
    """softmax along the last axis; zeros for fully masked rows."""
    if not scores.shape[-1]:
        return scores
    masked = where(mask, scores, float("-inf")) if mask.dtype is bool_ else scores + cast(mask, scores.dtype)
    x = widened(masked)
    top = stop_gradient(amax(x, -1, True))
    e = exp(x - where(top == float("-inf"), 0, top))
    total = sum(e, -1, True)
    return cast(e * (1 / where(total == 0, 1, total)), scores.dtype)


def _shared(name: str, query: Value, x: Value) -> Value:
    """Repeats each head of `x` for the heads of `query` that share it (grouped-query attention)."""
    if query.ndim < 3 or x.ndim < 3 or query.shape[-3] % x.shape[-3]:
        raise ValueError(f"{name}: enable_gqa wants heads that divide the query's, got shapes {query.shape} and {x.shape}")
    times = query.shape[-3] // x.shape[-3]
    grouped = reshape_value(x, (*x.shape[:-2], 1, *x.shape[-2:]))
    spread = expand(grouped, (*x.shape[:-2], times, *x.shape[-2:]))
    return reshape_value(spread, (*x.shape[:-3], x.shape[-3] * times, *x.shape[-2:]))


State = tuple[Value, ...]  # a cell's state; its first tensor is the output


# ---- the new state, from the gates' input and hidden products ----
def _parts(x: Value, count: int) -> list[Value]:
    """The last axis in equal parts, widened."""
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
def _cell(name: str, mode: str, doc: str) -> Operation:
    def define(
        input: Value, hx: Value | State, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
    ) -> Value | State:
        state = (hx,) if isinstance(hx, Value) else tuple(hx)
        given, shown = linear(input, w_ih, b_ih), linear(state[0], w_hh, b_hh)
        if given.shape != shown.shape:
            raise ValueError(f"{mode.lower()} cell: input {input.shape} and hidden {state[0].shape} give gates of shapes "
                             f"{given.shape} and {shown.shape}; want them equal")
        found = _CELLS[mode](given, shown, state)
        return found if len(found) > 1 else found[0]

    define.__annotations__ |= dict.fromkeys(("hx", "return"), "State" if mode == "LSTM" else "Value")
    return composite(name, (), method=False, autocast="low", doc=doc)(define)


lstm_cell = _cell(
    "lstm_cell", "LSTM",
    "(h, c) after one step: gates i, f, g, o of input (.., in) and h (.., out); c = f * c + i * g, h = o * tanh(c).",
)
gru_cell = _cell(
    "gru_cell", "GRU", "h after one step: gates r, z, n of input (.., in) and h (.., out); h = (1 - z) * n + z * h.",
)
rnn_tanh_cell = _cell("rnn_tanh_cell", "RNN_TANH", "tanh(w_ih @ input + b_ih + w_hh @ h + b_hh).")
rnn_relu_cell = _cell("rnn_relu_cell", "RNN_RELU", "relu(w_ih @ input + b_ih + w_hh @ h + b_hh).")


# ---- a layer ----
@composite("recurrent", (), method=False, autocast="low", public=False)
def recurrent(
    given: Value, state: State, weights: Sequence[Value | None], mode: str, reverse: bool = False, left: Value | None = None
) -> State:
    """A layer's outputs (l, n, out) for the gates' input products `given` (l, n, gates), and its state after the last step.

    `weights` are weight_hh, bias_ih, bias_hh and weight_hr, which projects the output. `reverse` goes from the last step to
    the first. `left` (n,) are the steps that shorter sequences have here: beyond its end a sequence gives zeros, and keeps its
    state.
    """
    constants = [weight for weight in weights if weight is not None]
    sequences = [given]
    if left is not None:
        positions = reshape_value(iota(given.graph, given.shape[0], left.dtype), (given.shape[0], 1, 1))
        sequences.append(reshape_value(left, (1, *left.shape, 1)) > positions)

    def step(constants: Sequence[Value], state: Sequence[Value], rows: Sequence[Value]) -> tuple[Sequence[Value], list[Value]]:
        following = iter(constants)
        hidden, bias, hidden_bias, projection = [None if weight is None else next(following) for weight in weights]
        assert hidden is not None
        entering = rows[0] if bias is None else rows[0] + bias
        fresh = _CELLS[mode](entering, linear(state[0], hidden, hidden_bias), tuple(state))
        if projection is not None:
            fresh = (linear(fresh[0], projection), *fresh[1:])
        if len(rows) == 1:
            return fresh, [fresh[0]]
        kept = [where(rows[1], new, old) for new, old in zip(fresh, state, strict=True)]
        return kept, [where(rows[1], fresh[0], 0)]

    last, [shown] = time_loop(step, constants, [cast(value, given.dtype) for value in state], sequences, reverse)
    return shown, *last
