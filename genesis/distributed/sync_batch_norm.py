"""Batch normalization with statistics over all ranks' batches."""

from __future__ import annotations

from typing import Any

from genesis.distributed.nn.functional import all_gather
from genesis.distributed.process_group import group_of, is_initialized
from genesis.nn.older_names import SyncBatchNorm as OneProcess
from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.from_python import filled
from genesis.tensor.handle import Tensor
from genesis.tensor.in_place import write
from genesis.tracing.state import grad_mode


class SyncBatchNorm(OneProcess):
    """(x - mean) / sqrt(var + eps) for each channel of (n, c, ..), then `weight` and `bias`, over all ranks' batches.

    While training, ranks exchange counts, means and sums of squared differences (Chan, Golub and LeVeque, 1979); batches may
    have different lengths. Gradients flow through the statistics. In eval mode, on one rank, and without a process group
    it is BatchNorm.

    Args:
        process_group: the ranks; by default all. The other arguments are BatchNorm's.

    >>> genesis.distributed.SyncBatchNorm(1)(genesis.tensor([[1.0], [3.0]])).detach()
    tensor([[-1.0000],
            [ 1.0000]])
    """

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, num_features, ..), the same shape. While training, the statistics are those of all ranks."""
        group = group_of(self.process_group) if is_initialized() else None
        if group is None or group.size() == 1 or not (self.training or self.running_mean is None):
            return super().forward(input)
        self._check_input_dim(input)
        axes = tuple([axis for axis in range(input.ndim) if axis != 1])
        x = call(OPERATIONS["to_dtype"], (input, input.dtype.compute))
        mean, squares, total = self._statistics(x, axes, group)
        shape = (1, -1, *[1] * (input.ndim - 2))
        self._follow(mean.detach(), (squares / (total - 1)).detach())
        scale = (squares / total + self.eps).rsqrt()
        y = (x - mean.reshape(shape)) * scale.reshape(shape)
        if self.weight is not None:
            y = y * self.weight.reshape(shape)
        if self.bias is not None:
            y = y + self.bias.reshape(shape)
        return call(OPERATIONS["to_dtype"], (y, input.dtype))  # type: ignore[no-any-return]

    def _statistics(self, x: Tensor, axes: tuple[int, ...], group: Any) -> tuple[Tensor, Tensor, Tensor]:
        """The mean and the sum of squared differences of each channel, and the count, over all ranks."""
        channels = x.shape[1]
        count = x.numel() // max(channels, 1)
        own = x.sum(axes) / max(count, 1)
        spread = (x - own.reshape((1, -1, *[1] * (x.ndim - 2)))).square().sum(axes)
        counted = filled(count, (1,), x.dtype, x.device)
        found = call(OPERATIONS["stack"], (list(all_gather(call(OPERATIONS["cat"], ([own, spread, counted],)), group)),))
        means, spreads, counts = found[:, :channels], found[:, channels:-1], found[:, -1:]
        total = counts.sum()
        mean = (means * counts).sum(0) / total
        return mean, (spreads + counts * (means - mean).square()).sum(0), total

    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Update the running statistics with this batch's."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        with grad_mode(False):
            write(self.num_batches_tracked, self.num_batches_tracked + 1)
            for running, new in ((self.running_mean, mean), (self.running_var, variance)):
                part: Any = self.momentum if self.momentum is not None else 1 / self.num_batches_tracked.to(running.dtype)
                write(running, call(OPERATIONS["to_dtype"], (running + (new - running) * part, running.dtype)))
