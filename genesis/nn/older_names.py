"""Layers under PyTorch's older names, and batch norm over several processes, here for a single one."""

from __future__ import annotations

from typing import Any

from genesis.ir.dtypes import DType
from genesis.nn import functional
from genesis.nn.loss import NLLLoss
from genesis.nn.module import Module
from genesis.nn.normalization import BatchNorm, LocalResponseNorm
from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor

__all__ = ["Container", "CrossMapLRN2d", "NLLLoss2d", "SyncBatchNorm"]


class Container(Module):
    """A module of modules under given names.

    >>> genesis.nn.Container(first=genesis.nn.ReLU())
    Container(
      (first): ReLU()
    )
    """

    def __init__(self, **kwargs: Module) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class NLLLoss2d(NLLLoss):
    """`NLLLoss`, under its name for images.

    >>> genesis.nn.NLLLoss2d()(genesis.ones(1, 2, 1, 1), genesis.zeros(1, 1, 1, dtype=genesis.int64))
    tensor(-1.)
    """


class CrossMapLRN2d(LocalResponseNorm, function=functional.local_response_norm):
    """`LocalResponseNorm` for images (n, c, h, w), under its name in Torch.

    >>> genesis.nn.CrossMapLRN2d(2, alpha=2.0, beta=1.0)(genesis.ones(1, 2, 1, 1)).flatten().tolist()
    [0.5, 0.3333333432674408]
    """

    k: float = 1

    def forward(self, input: Tensor) -> Tensor:
        """`input` (n, c, h, w), the same shape."""
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: input must be (n, c, h, w), got shape {input.shape}")
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class SyncBatchNorm(BatchNorm):
    """Batch norm over any number of axes, in one process; `genesis.distributed.SyncBatchNorm` is for several.

    Arguments as in `BatchNorm2d`; `process_group` has no effect.

    >>> genesis.nn.SyncBatchNorm(3)(genesis.ones(2, 3, 4)).shape
    (2, 3, 4)
    """

    _ranks = tuple(range(2, 9))

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: Any = None, device: DeviceLike = None, dtype: DType | None = None, *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with each batch norm replaced by one of this class, with the same parameters and statistics.

        >>> genesis.nn.SyncBatchNorm.convert_sync_batchnorm(genesis.nn.Sequential(genesis.nn.BatchNorm1d(2)))[0].eps
        1e-05
        """
        made = module
        if isinstance(module, BatchNorm) and not isinstance(module, cls):
            settings = module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats
            made = cls(*settings, process_group)
            vars(made).update(vars(module))
        for name, child in module._children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


SyncBatchNorm.__doc__ = SyncBatchNorm._template  # its example runs, unlike a family's template

NOT_REPLAYABLE = ("convert_sync_batchnorm",)
