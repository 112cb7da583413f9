"""The methods of Tensor: rows of the operation table, and what it takes to look at a tensor, convert it and write to it."""

from genesis.functions.methods import conversion, differentiation, inspection, restriding, shaping, sharing, writing
from genesis.functions.methods.table import ALIASES, function_of, install, view_function_of

__all__ = [
    "ALIASES", "conversion", "differentiation", "function_of", "inspection", "install", "restriding", "shaping", "sharing",
    "view_function_of", "writing",
]

install()
