"""The methods of Tensor: rows of the operation table, properties, conversions and writes."""

from genesis.functions.methods import (
    complex_numbers, conversion, differentiation, inspection, rarer_names, rebinding, restriding,
    shaping, sharing, storage, writing,
)
from genesis.functions.methods.table import install

__all__ = [
    "complex_numbers", "conversion", "differentiation", "inspection", "rarer_names", "rebinding",
    "restriding", "shaping", "sharing", "storage", "writing",
]

install()
