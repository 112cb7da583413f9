"""genesis: arrays and deep learning that look eager and run compiled.

Operations extend a graph; fused kernels compute values when one is read.

>>> import genesis
>>> x = genesis.tensor([1., 2., 3.], requires_grad=True)
>>> y = (x ** 2).sum()
>>> y.backward()
>>> x.grad
tensor([2., 4., 6.])
"""

import sys as _sys
from functools import partial as _partial
from math import e, inf, nan, pi
from typing import Any as _Any

from genesis.runtime import loaded_source as _comes_before_all_others  # it notes the time
# isort: split
from genesis.runtime import moved_modules as _moved_modules
from genesis.runtime.references import collector_paused as _collector_paused, grow_old as _grow_old

with _collector_paused():  # imported objects are long-lived
    from genesis.tensor.handle import Tensor
    # isort: split
    from genesis import autograd, linalg, ops, pytree, random, sparse, special
    _grow_old()  # otherwise the collector would scan them as soon as it resumes

# isort: split
from genesis.execution.eager import eager
from genesis.functions import indexing as _indexing
from genesis.functions.comparison import (
    allclose, broadcast_shapes, can_cast, equal, finfo, iinfo, is_nonzero, is_tensor, result_type,
)
from genesis.functions.counting import bincount, histc, histogram, histogramdd, mode, repeat_interleave, unique_consecutive
from genesis.functions.copies import empty_permuted, empty_strided, unravel_index
from genesis.functions.creation import empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like
from genesis.functions.from_data import as_tensor, asarray, from_dlpack, from_numpy, scalar_tensor, tensor
from genesis.functions.printing import get_printoptions, set_printoptions
from genesis.functions.ranges import arange, combinations, eye, linspace, logspace, meshgrid, tril_indices, triu_indices
from genesis.functions.public_names import (
    defined_later as _defined_later, function_named as _function_named, function_names as _function_names, show_in as _show_in,
)
from genesis.functions.selection import (
    argwhere, index_add, index_copy, index_fill, masked_select, nonzero, nonzero_static, put, take, unique,
    where,
)
from genesis.functions.splitting import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, chunk, dsplit, hsplit, split, split_with_sizes, tensor_split, unbind,
    vsplit,
)
from genesis.ir.dtypes import (
    DType, DType as dtype, bfloat16, bool_ as bool, complex32, complex32 as chalf, complex64, complex64 as cfloat, complex128,
    complex128 as cdouble, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu, float16,
    float16 as half, float32, float32 as float, float64, float64 as double, get_default_dtype, int8, int16, int16 as short,
    int32, int32 as int, int64, int64 as long, promote as promote_types, uint8, uint16, uint32, uint64,
)
from genesis.ir.made_methods import name_by_place as _name_by_place
from genesis.random import (
    bernoulli, binomial, get_rng_state, initial_seed, manual_seed, multinomial, normal, poisson, rand, rand_like, randint,
    randint_like, randn, randn_like, randperm, seed, set_rng_state,
)
from genesis.runtime.deferred import LazyNames as _LazyNames
from genesis.runtime.notebook import fold_tracebacks as _fold_tracebacks
from genesis.runtime.determinism import (
    are_deterministic_algorithms_enabled, get_deterministic_debug_mode, is_deterministic_algorithms_warn_only_enabled,
    set_deterministic_debug_mode, use_deterministic_algorithms,
)
from genesis.runtime.devices import Device as device, get_default_device, set_default_device
from genesis.runtime import gpus as _gpus
from genesis.runtime.logs import set_logs
from genesis.runtime.rng import Generator
from genesis.runtime.number_of_threads import get_num_threads, set_num_threads
from genesis.sparse.creation import sparse_bsc_tensor, sparse_bsr_tensor, sparse_compressed_tensor, sparse_coo_tensor
from genesis.sparse.creation import sparse_csc_tensor, sparse_csr_tensor
from genesis.ir.named_layouts import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from genesis.tensor.modes import (
    SwitchedModule as _SwitchedModule, autocast, enable_grad, inference_mode, is_autocast_enabled, is_grad_enabled,
    is_inference_mode_enabled, no_grad, set_grad_enabled,
)
from genesis.tensor.size import Size
from genesis.tracing.scopes import named_scope
from genesis.tracing.state import set_default_dtype

__all__ = [  # plus the functions of the operation table
    "AddFunction", "Context", "DType", "Dim", "ExportError", "ExportedProgram", "Function", "Generator", "GradManager",
    "GraphCycleError", "MatMulFunction", "MulFunction", "NDArray", "ReluFunction", "Size", "Tensor", "Variable", "allclose",
    "amp", "ao", "arange", "are_deterministic_algorithms_enabled", "argwhere", "array_api", "as_tensor", "asarray",
    "atleast_1d", "atleast_2d", "atleast_3d", "autocast", "autograd", "backends", "bernoulli", "bfloat16", "bincount",
    "binomial", "bool", "broadcast_shapes", "broadcast_tensors", "can_cast", "cdouble", "cfloat", "chalf", "chunk",
    "combinations", "compile", "complex32", "complex64", "complex128", "cuda", "debug", "device", "doctor", "double", "dsplit",
    "dtype", "e", "eager",
    "empty", "empty_like", "empty_permuted", "empty_strided", "enable_autocast", "enable_grad", "equal", "export", "eye", "fft",
    "finfo", "float", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64", "from_dlpack", "from_numpy", "full",
    "full_like", "func", "function", "get_default_device", "get_default_dtype", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_threads", "get_printoptions", "get_rng_state", "gradient", "half", "histc",
    "histogram", "histogramdd", "hsplit", "iinfo", "index_add", "index_copy", "index_fill", "inf", "inference_mode",
    "initial_seed", "int", "int8", "int16", "int32", "int64", "is_autocast_enabled",
    "is_deterministic_algorithms_warn_only_enabled", "is_grad_enabled", "is_inference_mode_enabled", "is_nonzero", "is_tensor",
    "linalg", "linspace", "load", "load_program", "lobpcg", "logspace", "long", "manual_seed", "masked", "masked_scatter",
    "masked_select", "meshgrid", "mode", "multinomial", "named_scope", "nan", "native_batch_norm", "native_group_norm",
    "native_layer_norm", "nested", "newaxis", "nn", "no_grad", "nonzero", "nonzero_static", "normal", "ones", "ones_like",
    "onnx", "ops", "optim", "pca_lowrank", "pi", "poisson", "profiler", "promote_types", "put", "pytree", "quasirandom", "rand",
    "rand_like", "randint", "randint_like", "randn", "randn_like", "random", "randperm", "repeat_interleave", "result_type",
    "save", "scalar_tensor", "seed", "serialization", "set_default_device", "set_default_dtype", "set_deterministic_debug_mode",
    "set_float32_matmul_precision", "set_grad_enabled", "set_logs", "set_num_threads", "set_printoptions", "set_rng_state",
    "short", "signal", "sparse", "sparse_bsc", "sparse_bsc_tensor", "sparse_bsr", "sparse_bsr_tensor",
    "sparse_compressed_tensor", "sparse_coo", "sparse_coo_tensor", "sparse_csc", "sparse_csc_tensor", "sparse_csr",
    "sparse_csr_tensor", "special", "split", "split_with_sizes", "strided", "svd_lowrank", "synchronize", "take", "tensor",
    "tensor_split", "testing", "tril_indices", "triu_indices", "uint8", "uint16", "uint32", "uint64", "unbind", "unique",
    "unique_consecutive", "unravel_index", "use_deterministic_algorithms", "utils", "vmap", "vsplit", "where", "zero_grad",
    "zeros", "zeros_like",
]

__version__ = "0.1.0"

newaxis = None  # in an index
NDArray = Tensor  # the class of `x.data`
enable_autocast: _Any  # a switch: setting it takes effect
_sys.modules[__name__].__class__ = _SwitchedModule

_LAZY = _LazyNames("genesis", {
    "genesis":
        "amp ao array_api backends cuda debug distributed distributions fft func function masked nested nn onnx optim "
        "profiler quasirandom serialization signal testing utils",
    "genesis.autograd": "Context Function GradManager GraphCycleError zero_grad",
    "genesis.capture": "compile",
    "genesis.debug.doctor": "doctor",
    "genesis.execution.synchronization": "synchronize",
    "genesis.func": "vmap",
    "genesis.function": "AddFunction MatMulFunction MulFunction ReluFunction",
    "genesis.functions.finite_differences": "gradient",
    "genesis.functions.low_rank": "lobpcg pca_lowrank svd_lowrank",
    "genesis.functions.variable": "Variable",
    "genesis.runtime.cuda.cublas": "get_float32_matmul_precision set_float32_matmul_precision",
    "genesis.nn.native": "native_batch_norm native_group_norm native_layer_norm",
    "genesis.serialization": "load save",
    "genesis.shipping": "Dim ExportError ExportedProgram export load_program",
})


def __getattr__(name: str) -> object:
    """Imports a name, or makes it from an operation's row, at its first use."""
    function = None if name in _LAZY else _function_named(name)
    if function is None:
        return _LAZY(name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted({*__all__} | _function_names())


_show_in(_sys.modules[__name__])
_fold_tracebacks()
_name_by_place(vars(Tensor), Tensor.__module__, "Tensor.")
for _name in ("gradient", "lobpcg", "native_layer_norm"):  # the last imports all of `nn`
    _defined_later(_partial(_LAZY, _name))
_grow_old()
