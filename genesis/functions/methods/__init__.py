"""The methods of Tensor: rows of the operation table, and what it takes to look at a tensor, convert it and write to it."""

from genesis.functions.methods import conversion, differentiation, inspection, restriding, shaping, sharing, writing
from genesis.functions.methods.table import install

__all__ = ["conversion", "differentiation", "inspection", "restriding", "shaping", "sharing", "writing"]

install()
