"""Optimizers."""

from genesis.optim.adam import Adam, AdamW
from genesis.optim.optimizer import Optimizer
from genesis.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
