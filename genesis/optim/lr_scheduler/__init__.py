"""Learning rate schedulers, under PyTorch's names.

A learning rate is a runtime argument of compiled programs: changing it does not recompile.
"""

from genesis.optim.lr_scheduler.cyclic import CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from genesis.optim.lr_scheduler.decay import (
    ConstantLR, ExponentialLR, LambdaLR, LinearLR, MultiplicativeLR, MultiStepLR, PolynomialLR, StepLR,
)
from genesis.optim.lr_scheduler.scheduler import ChainedScheduler, LRScheduler, ReduceLROnPlateau, SequentialLR

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau",
    "SequentialLR", "StepLR",
]
__dir__ = __all__.copy
