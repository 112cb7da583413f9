"""A softmax over many classes; rare classes are in clusters, computed only when needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from genesis.functions.creation import zeros
from genesis.functions.from_data import tensor
from genesis.ir.dtypes import DType, int64
from genesis.nn import functional
from genesis.nn.containers import ModuleList, Sequential
from genesis.nn.linear import Linear
from genesis.nn.module import Module
from genesis.ops.registry import OPERATIONS
from genesis.runtime.devices import DeviceLike
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log-probabilities of the targets, and the mean of their negatives."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """An efficient softmax with its loss, over many classes sorted by decreasing frequency (Grave et al., 2017).

    The `head` predicts frequent classes and clusters; each part of `tail` predicts the classes of a cluster, from fewer
    features.

    Args:
        in_features: the size of the input.
        n_classes: the number of classes.
        cutoffs: where clusters begin; the classes before the first are in the head.
        div_value: the factor by which the features shrink from cluster to cluster.
        head_bias: whether the head has a bias.

    Raises ValueError unless the cutoffs increase within the classes.

    >>> softmax = genesis.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> output, loss = softmax(genesis.ones(3, 8), genesis.tensor([0, 7, 19]))
    >>> output.shape, softmax.log_prob(genesis.ones(3, 8)).shape
    ((3,), (3, 20))
    """

    head: Linear
    tail: ModuleList

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: DeviceLike = None, dtype: DType | None = None,
    ) -> None:
        super().__init__()
        ends = [*cutoffs]
        rise = all(a < b for a, b in pairwise([0, *ends, n_classes]))
        if not ends or not rise or any(int(end) != end for end in ends):
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: cutoffs are {ends}; want ints that rise, from 1 to {n_classes - 1}")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*ends, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = ends[0]
        self.n_clusters = len(ends)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for number, (start, end) in enumerate(pairwise(self.cutoffs), 1):
            width = int(in_features // div_value**number)
            self.tail.append(Sequential(
                Linear(in_features, width, bias=False, device=device, dtype=dtype),
                Linear(width, end - start, bias=False, device=device, dtype=dtype),
            ))

    def reset_parameters(self) -> None:
        """Reinitialize the parameters."""
        for layer in (self.head, *[layer for cluster in self.tail for layer in cluster]):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """(output, loss) for `input_` (n, in_features) and targets (n,), or one of both without n.

        `output` has the targets' log-probabilities, `loss` is the mean of their negatives. The targets
        are read to decide which clusters to compute. Raises RuntimeError for other shapes and targets out of range.
        """
        if target_.ndim > 1 or input_.ndim != target_.ndim + 1 or input_.shape[:-1] != target_.shape:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: input {input_.shape} and target {target_.shape}; want (n, features) and (n,)")
        input, target = (input_, target_) if target_.ndim else (input_.unsqueeze(0), target_.unsqueeze(0))
        labels = target.numpy()
        if labels.size and not (labels.min() >= 0 and labels.max() < self.n_classes):
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: targets from {labels.min()} to {labels.max()}; want 0 to {self.n_classes - 1}")
        within, chosen = zeros(target.shape, dtype=input.dtype, device=input.device), target.to(int64)
        for number, (start, end) in enumerate(pairwise(self.cutoffs)):
            members = np.flatnonzero((labels >= start) & (labels < end))
            if not members.size:
                continue
            rows = tensor(members, device=input.device)
            logs = functional.log_softmax(self.tail[number](input.index_select(0, rows)), -1)
            picked = logs.gather(1, (target.index_select(0, rows).to(int64) - start).unsqueeze(1)).squeeze(1)
            within = within.index_copy(0, rows, picked.to(within.dtype))
            chosen = chosen.index_fill(0, rows, self.shortlist_size + number)
        logs = functional.log_softmax(self.head(input), -1)
        output = within + logs.gather(1, chosen.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if target_.ndim else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (n, n_classes), for `input` (n, in_features)."""
        head = functional.log_softmax(self.head(input), -1)
        parts = [head[:, : self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            rest = head[:, self.shortlist_size + number].unsqueeze(1)
            parts.append(functional.log_softmax(cluster(input), -1) + rest)
        return call(OPERATIONS["cat"], (parts, 1))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row, (n,); if the head predicts a cluster, the best class of it."""
        best = self.head(input).argmax(1)
        rare = best >= self.shortlist_size
        if not rare.any().item():
            return best
        return call(OPERATIONS["where"], (rare, self.log_prob(input).argmax(1), best))
