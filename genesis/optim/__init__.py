"""Optimizers, and schedules of their learning rates."""

from genesis.optim import lr_scheduler, swa_utils
from genesis.optim.adagrad import Adadelta, Adafactor, Adagrad, RMSprop
from genesis.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from genesis.optim.lbfgs import LBFGS
from genesis.optim.optimizer import Optimizer
from genesis.optim.sgd import ASGD, SGD, Muon, Rprop

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils",
]
__dir__ = __all__.copy
