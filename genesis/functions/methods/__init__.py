"""The methods of Tensor, which `table` makes of the rows of the operation table, and others written here by topic.

    inspection       shape, dtype, device, strides, length     conversion       item, tolist, to, clone, copies, pickles
    complex_numbers  real, imag, conjugates                    differentiation  backward, detach, hooks, grad_fn
    shaping          T, repeat, view_as, new_zeros, subclasses strides          as_strided, changes of shape in place
    writing          copy_, fill_, random fills, data          storage          storages, set_, hash
    sharing          numpy, DLPack, other processes            rarer_names      old spellings, the array API's, apply_
"""

from genesis.functions.methods import (
    complex_numbers, conversion, differentiation, inspection, rarer_names, shaping, sharing, storage, strides, writing,
)
from genesis.functions.methods.table import install

__all__ = [
    "complex_numbers", "conversion", "differentiation", "inspection", "rarer_names", "shaping", "sharing", "storage", "strides",
    "writing",
]

install()
