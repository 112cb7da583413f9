"""The functions of neural networks on Tensors: rows of the operation table under PyTorch's names."""

from __future__ import annotations

from genesis.dispatch import call
from genesis.methods import function_of
from genesis.ops.registry import OPERATIONS
from genesis.overriding import overridable
from genesis.random import draws
from genesis.tensor import Tensor

__all__ = [
    "cross_entropy", "dropout", "embedding", "gelu", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "mse_loss", "nll_loss", "relu", "rms_norm", "sigmoid", "silu", "softmax", "tanh",
]

# ---- layers ----
linear = function_of(OPERATIONS["linear"])
embedding = function_of(OPERATIONS["embedding"])
layer_norm = function_of(OPERATIONS["layer_norm"])
rms_norm = function_of(OPERATIONS["rms_norm"])

# ---- activations ----
relu = function_of(OPERATIONS["relu"])
leaky_relu = function_of(OPERATIONS["leaky_relu"])
gelu = function_of(OPERATIONS["gelu"])
silu = function_of(OPERATIONS["silu"])
sigmoid = function_of(OPERATIONS["sigmoid"])
tanh = function_of(OPERATIONS["tanh"])
softmax = function_of(OPERATIONS["softmax"])
log_softmax = function_of(OPERATIONS["log_softmax"])

# ---- losses ----
cross_entropy = function_of(OPERATIONS["cross_entropy"])
nll_loss = function_of(OPERATIONS["nll_loss"])
mse_loss = function_of(OPERATIONS["mse_loss"])
l1_loss = function_of(OPERATIONS["l1_loss"])


@overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`input` with each element zeroed with probability `p` and the others scaled by 1/(1-p); `input` if not training.

    Raises ValueError for a `p` outside [0, 1].

    >>> import genesis
    >>> dropout(genesis.ones(3), p=1.0)
    tensor([0., 0., 0.])
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is a probability, got {p}")
    if not training or p == 0:
        return input
    return call(OPERATIONS["dropout"], (input, *draws(input.numel()), float(p)))
