"""Arguments for recurrent cells and layers."""

import numpy as np

from tests.ops.arguments import Sample, values


def _weights(gates, enters, shown=3, hidden=3):
    return [values(gates * hidden, enters, seed=1), values(gates * hidden, shown, seed=2), values(gates * hidden, seed=3),
            values(gates * hidden, seed=4)]


_X, _H, _C = values(2, 2), values(2, 3, seed=5), values(2, 3, seed=6)
SAMPLES: dict[str, list[Sample]] = {
    "lstm_cell": [Sample((_X, [_H, _C], *_weights(4, 2)))],
    "gru_cell": [Sample((_X, _H, *_weights(3, 2))), Sample((_X, _H, *_weights(3, 2)[:2]))],
    "rnn_tanh_cell": [Sample((_X, _H, *_weights(1, 2)))], "rnn_relu_cell": [Sample((_X, _H, *_weights(1, 2)))],
    "recurrent": [
        Sample((values(3, 2, 12), [_H, _C], [values(12, 3, seed=2), values(12, seed=3), values(12, seed=4), None], "LSTM")),
        Sample((values(3, 2, 9), [_H], [values(9, 3, seed=2), None, None, None], "GRU", True)),
        Sample((values(3, 2, 3), [_H], [values(3, 3, seed=2), None, values(3, seed=4), None], "RNN_TANH", True,
                np.array([3, 2]))),
        Sample((values(3, 2, 12), [_H[:, :2], _C],
                [values(12, 2, seed=2), values(12, seed=3), values(12, seed=4), values(2, 3)], "LSTM", False,
                np.array([3, 1]))),
    ],
}
