"""Arguments for recurrent cells and layers."""

import numpy as np

from tests.ops.arguments import Sample, values


def _weights(gates, enters, shown=3, hidden=3):
    return [values(gates * hidden, enters, seed=1), values(gates * hidden, shown, seed=2), values(gates * hidden, seed=3),
            values(gates * hidden, seed=4)]


_X, _H, _C = values(2, 2), values(2, 3, seed=5), values(2, 3, seed=6)
_SEQUENCE = values(3, 2, 2)
SAMPLES: dict[str, list[Sample]] = {
    "lstm_cell": [Sample((_X, [_H, _C], *_weights(4, 2)))],
    "gru_cell": [Sample((_X, _H, *_weights(3, 2))), Sample((_X, _H, *_weights(3, 2)[:2]))],
    "rnn_tanh_cell": [Sample((_X, _H, *_weights(1, 2)))], "rnn_relu_cell": [Sample((_X, _H, *_weights(1, 2)))],
    "recurrent": [
        Sample((_SEQUENCE, [_H, _C], [*_weights(4, 2), None], "LSTM")),
        Sample((_SEQUENCE, [_H], [*_weights(3, 2)[:2], None, None, None], "GRU", True)),
        Sample((_SEQUENCE, [_H], [*_weights(1, 2), None], "RNN_TANH", True, np.array([3, 2]))),
        Sample((_SEQUENCE, [_H[:, :2], _C], [*_weights(4, 2, 2), values(2, 3)], "LSTM", False, np.array([3, 1]))),
    ],
}
