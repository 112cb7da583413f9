"""Matrix products as kernels: for each panel one single-threaded BLAS call, and an epilogue while it is in cache."""

from __future__ import annotations

import struct

from genesis.runtime import gemm_ir
from genesis.runtime.blas import blas
from genesis.runtime.kernel_cache import KernelSource, get_or_compile
from genesis.runtime.native import Block, Word

_C_TYPES = {"float32": "float", "float64": "double"}


def gemm_kernel(dtype: str) -> int:
    """The kernel of matrix products of "float32" or "float64"; `gemm_block` makes its arguments."""
    element = _C_TYPES[dtype]
    source = gemm_ir.kernel_ir(element)
    [address] = get_or_compile([KernelSource(f"genesis_gemm_{element}", source, lambda: source)])
    return address


def gemm_block(
    dtype: str,
    extents: tuple[int, int, int],
    a: Word,
    lda: int,
    b: Word,
    ldb: int,
    c: Word,
    ldc: int,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    batch: tuple[int, int] = (1, 1),
    a_strides: tuple[int, int] = (0, 0),
    b_strides: tuple[int, int] = (0, 0),
    c_strides: tuple[int, int] = (0, 0),
    panels: int = 1,
    split_columns: bool = False,
    beta: float = 0.0,
    epilogue: int = 0,
    epilogue_words: tuple[Word, ...] = (),
) -> Block:
    """The argument block of C = A @ B + beta * C for row-major matrices, for every one of batch[0] * batch[1] products.

    extents: (M, N, K). a, b, c: addresses; what is stored of a transposed matrix is its transpose.
    lda, ldb, ldc: elements from one stored row to the next.
    a_strides, b_strides, c_strides: bytes from one product's matrix to the next, along both batch axes; 0 repeats it.
    panels: into how many panels of rows (or, split_columns, of columns) each product is cut; a panel is an item.
    epilogue: a kernel to call for each finished panel with `epilogue_words`; its items are the panel's rows (columns),
    counted through the whole batch.
    """
    m, n, k = extents
    [beta_bits] = struct.unpack("=q", struct.pack("=d", beta))
    gemm = blas().cblas_sgemm if dtype == "float32" else blas().cblas_dgemm
    words = (
        *(gemm, int(transpose_a), int(transpose_b), m, n, k, a, lda, b, ldb, c, ldc),
        *(*batch, *a_strides, *b_strides, *c_strides),
        *(panels, int(split_columns), beta_bits, epilogue, epilogue_words),
    )
    return Block(words, items=batch[0] * batch[1] * panels)
