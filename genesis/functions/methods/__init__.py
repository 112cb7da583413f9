"""The methods of Tensor: rows of the operation table, properties, conversions and writes."""

from genesis.functions.methods import conversion, differentiation, inspection, restriding, shaping, sharing, writing
from genesis.functions.methods.table import install

__all__ = ["conversion", "differentiation", "inspection", "restriding", "shaping", "sharing", "writing"]

install()
