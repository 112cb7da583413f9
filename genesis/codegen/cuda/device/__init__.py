"""Functions that kernels call, in the language of kernels.

They are Python: on the device as numba-cuda compiles it, in the simulator as NumPy's scalars compute it.
"""

from __future__ import annotations

from genesis.codegen.cuda.device import arithmetic, horizontal_reduce, indexing, random_bits, vector_math
from genesis.codegen.cuda.toolchain import DTYPES, device, is_aligned, libdevice, math

_FILES = (arithmetic, horizontal_reduce, indexing, random_bits)
NAMES: dict[str, object] = {  # every public name of the files
    **{name: value for file in _FILES for name, value in vars(file).items() if not name.startswith("_")},
    **vector_math.FUNCTIONS, **DTYPES, "cuda": device, "math": math, "libdevice": libdevice, "is_aligned": is_aligned,
}
