"""Functions that kernels call, in the language of kernels.

They are Python: on the device as numba-cuda compiles it, in the simulator as NumPy's scalars compute it.
"""

from __future__ import annotations

from genesis.codegen.cuda.device import conversion, horizontal_reduce, indexing, integers, random_bits, real, vectors
from genesis.codegen.cuda.toolchain import DTYPES, device, libdevice, math

__all__ = ["NAMES"]

_FILES = (conversion, horizontal_reduce, indexing, integers, random_bits, real, vectors)
NAMES: dict[str, object] = {
    **DTYPES, "cuda": device, "math": math, "libdevice": libdevice,
    **{name: getattr(file, name) for file in _FILES for name in file.__all__},
}
