"""Matrix products by cuBLAS, through nvmath-python: one call on raw addresses, which a graph can capture. Their precision."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from genesis.runtime.cuda.gpu import UnavailableError
from genesis.runtime.deferred import import_whole


class _Matmul:
    """Settings of matrix products."""

    __slots__ = ("_allow_tf32",)

    def __init__(self) -> None:
        self._allow_tf32 = False

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 operands may be rounded to TF32, which has 10 bits after the point: faster on tensor cores."""
        return self._allow_tf32

    @allow_tf32.setter
    def allow_tf32(self, allowed: bool) -> None:
        if not isinstance(allowed, bool):
            raise TypeError(f"allow_tf32: wants True or False, got {type(allowed).__name__} {allowed!r}")
        self._allow_tf32 = allowed


matmul = _Matmul()


def set_float32_matmul_precision(precision: str) -> None:
    """The precision of float32 products on GPUs: "highest" is IEEE's, "high" and "medium" may round to TF32.

    Raises ValueError for another word.

    >>> genesis.set_float32_matmul_precision("high")
    >>> genesis.backends.cuda.matmul.allow_tf32
    True
    >>> genesis.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f'set_float32_matmul_precision: wants "highest", "high" or "medium", got {precision!r}')
    matmul.allow_tf32 = precision != "highest"


def get_float32_matmul_precision() -> str:
    """The setting of `set_float32_matmul_precision`: "highest" or, where products may round to TF32, "high"."""
    return "high" if matmul.allow_tf32 else "highest"


WORKSPACE = 32 << 20  # bytes, as cuBLAS advises for the largest GPUs; set, so that a capture allocates nothing
_TYPES = {"float16": (2, 2), "bfloat16": (2, 14), "float32": (4, 0), "float64": (8, 1)}  # bytes, cudaDataType
_COMPUTE_32F, _COMPUTE_32F_FAST_TF32, _COMPUTE_64F = 68, 77, 70  # cublasComputeType_t
_DEFAULT_ALGORITHM = -1  # cublasGemmAlgo_t
_WIDE_SUMS = 16  # cublasMath_t: parts of a sum are not rounded to 16 bits before they are added up


class Operand(NamedTuple):
    """A matrix in memory: whether it is stored transposed, and the distance between its stored rows."""

    is_turned: bool
    ld: int


class Gemm(NamedTuple):
    """`matrices` products c = a @ b, or c += a @ b if it `adds`, of matrices of (m, n, k), `steps` elements of a, b and c
    apart, from `offsets` on.
    """

    dtype: str
    stored: str  # the dtype of c
    extents: tuple[int, int, int]
    a: Operand
    b: Operand
    ldc: int
    matrices: int
    steps: tuple[int, ...]
    offsets: tuple[int, ...]
    adds: bool = False


@functools.cache
def _library() -> Any:
    """The bindings; None where they or the library are missing."""
    try:
        bindings = import_whole("nvmath.bindings.cublas")
        import_whole("cuda.pathfinder").load_nvidia_dynamic_lib("cublas")
    except (ImportError, RuntimeError):
        return None
    return bindings


def cublas_is_here() -> bool:
    return _library() is not None


def cublas_error() -> type[Exception]:
    """The exception of cuBLAS' calls; without the library, one that is never raised here."""
    return getattr(_library(), "cuBLASError", UnavailableError)


def gemm_call(handle: int, gemm: Gemm, a: int, b: int, c: int, library: ModuleType | None = None) -> Callable[[], None]:
    """The call that computes a Gemm of the matrices at these addresses, in the handle's stream.

    cuBLAS stores matrices by columns: what it is told to compute is the transposed result, of the operands in turn.
    float32 is IEEE's unless `allow_tf32`; 16-bit operands are multiplied exactly and added up in float32.
    """
    library = library or _library()
    (size, kind), (c_size, c_kind), compute = _TYPES[gemm.dtype], _TYPES[gemm.stored], _compute_type(gemm.dtype)
    m, n, k = gemm.extents
    (a_step, b_step, c_step), (a_at, b_at, c_at) = gemm.steps, gemm.offsets
    # cuBLAS reads alpha and beta by address, in the type of the sums.
    alpha, beta = (np.array(number, np.float64 if gemm.dtype == "float64" else np.float32) for number in (1, gemm.adds))
    call = functools.partial(
        library.gemm_strided_batched_ex_64, handle, int(gemm.b.is_turned), int(gemm.a.is_turned), n, m, k,
        alpha.ctypes.data, b + size * b_at, kind, gemm.b.ld, b_step, a + size * a_at, kind, gemm.a.ld, a_step,
        beta.ctypes.data, c + c_size * c_at, c_kind, gemm.ldc, c_step, gemm.matrices, compute, _DEFAULT_ALGORITHM,
    )
    call.numbers = alpha, beta  # type: ignore[attr-defined]  # they live as long as the call
    return call


def _compute_type(dtype: str) -> int:
    if dtype == "float32" and matmul.allow_tf32:
        return _COMPUTE_32F_FAST_TF32
    return _COMPUTE_64F if dtype == "float64" else _COMPUTE_32F


def cublas_handle(stream: int, workspace: int, library: ModuleType | None = None) -> int:
    """A handle of the library for a stream, with WORKSPACE bytes at an address (0: its own), in the context that is current."""
    library = library or _library()
    handle: int = library.create()
    library.set_stream(handle, stream)  # resets the workspace, so it comes first
    if workspace:
        library.set_workspace(handle, workspace, WORKSPACE)
    library.set_math_mode(handle, _WIDE_SUMS)
    return handle
