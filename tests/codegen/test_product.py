"""Matrix products: generated kernels against NumPy, for every tile, layout, cut and block."""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from genesis.codegen.cpu.product import launch
from genesis.codegen.cpu.product.driver import product_ir
from genesis.codegen.cpu.product.interface import tile_of
from genesis.codegen.cpu.tiling import RegisterTile, multiplies_pairs
from genesis.lower.index_map import PLAIN, AxisGroups, Digits
from genesis.lower.stages import Matrix, Product
from genesis.ops.layout import Layout
from genesis.runtime.kernel_cache import KernelSource, get_or_compile
from genesis.runtime.native import NativeLaunch, NativeProgram, Slot

TOLERANCE = {"float32": 2e-5, "float64": 1e-13}
TILES = [RegisterTile(dtype, lanes, rows, 2) for dtype in TOLERANCE for lanes, rows in ((4, 12), (4, 6), (8, 12), (16, 12))]


def kernel(tile: RegisterTile) -> int:
    name = f"product_test_{tile.dtype}_{tile.lanes}_{tile.rows}" + "_pairs" * tile.pairs
    [address] = get_or_compile([KernelSource(name, str(tile), functools.partial(product_ir, name, tile))])
    return address


def matrix(value: int, x: np.ndarray, axis_groups: AxisGroups) -> Matrix:
    """A batch of matrices, whose rows and columns may be several axes each."""
    layout = Layout(x.shape, tuple(s // x.itemsize for s in x.strides), 0)
    return Matrix(value, layout, layout.strides[:1], axis_groups)


def multiply(
    tile: RegisterTile, a: np.ndarray, b: np.ndarray, c: np.ndarray, cut: launch.Panels, add: bool = False, only: str = "",
    groups: tuple[AxisGroups, AxisGroups] = (PLAIN, PLAIN),
) -> None:
    """c = a @ b, or + c, for operands (batch, *rows, *columns) with any strides that products can read."""
    matrices = [matrix(value, x, of) for value, (x, of) in enumerate(zip((a, b, c), (*groups, PLAIN), strict=True))]
    m, n, k = *c.shape[1:], np.prod(a.shape[1 + groups[0][0] :])
    call = Product(*matrices, a.shape[:1], (m, n, int(k)), only, pairs=tile.pairs)
    memory = np.full(1 << 22, 255, np.uint8)  # NaNs: what was not packed must not be read
    dtype = "bfloat16" if tile.pairs else tile.dtype

    share = sum(launch.packed(call, dtype, cut))
    assert 2 * share + 64 <= memory.size
    workspace = -(-memory.ctypes.data // 64) * 64
    begins = 0 if add else launch.NEVER
    tables: list[np.ndarray] = []

    def offsets(digits: Digits) -> int:
        tables.append(launch.offsets_of(digits))
        return tables[-1].ctypes.data

    block = launch.block(call, dtype, cut, (Slot(0), Slot(1), Slot(2)), workspace, share, offsets, adds_from=begins)
    program = NativeProgram([NativeLaunch(kernel(tile), [block], 2)], "QQQ")
    assert program.run((a.ctypes.data, b.ctypes.data, c.ctypes.data)) is None


@pytest.fixture
def tile(request, monkeypatch) -> Iterator[RegisterTile]:
    with monkeypatch.context() as patched:
        patched.setattr(RegisterTile, "of", classmethod(lambda cls, dtype, vectors: request.param))
        tile_of.cache_clear()
        yield request.param
    tile_of.cache_clear()


def operand(random: np.random.Generator, dtype: str, transposed: bool, rows: int, columns: int) -> np.ndarray:
    x = random.standard_normal((3, columns, rows) if transposed else (3, rows, columns)).astype(dtype)
    return x.swapaxes(1, 2) if transposed else x


@pytest.mark.parametrize("tile", TILES, indirect=True, ids=str)
def test_products_of_every_layout_and_of_sizes_around_the_tile(tile):
    random = np.random.default_rng(0)
    for m, n, k in ((2, 2, 2), (13, 9, 5), (44, 31, 50), (12, 32, 16), (25, 70, 33), (7, 17, 400)):
        for transposed in itertools.product([False, True], repeat=2):
            a, b = operand(random, tile.dtype, transposed[0], m, k), operand(random, tile.dtype, transposed[1], k, n)
            for wanted in (1, 3):
                c = np.full((3, m, n), np.nan, tile.dtype)
                multiply(tile, a, b, c, launch.panels(tile.dtype, (m, n, k), wanted))
                np.testing.assert_allclose(c, a @ b, rtol=TOLERANCE[tile.dtype], atol=k * TOLERANCE[tile.dtype])


@pytest.mark.parametrize("by_columns", [False, True])
def test_blocks_of_k_rows_and_columns_add_up_and_a_product_can_be_added_to_what_is_there(by_columns):
    random = np.random.default_rng(1)
    a, b = random.standard_normal((1, 230, 800)), random.standard_normal((1, 800, 1100))
    a, b = a.astype(np.float32), b.astype(np.float32)
    c = np.ones((1, 230, 1100), np.float32)
    cut = launch.Panels(2, 560, True) if by_columns else launch.Panels(2, 204, False)
    multiply(tile_of("float32"), a, b, c, cut, add=True)
    np.testing.assert_allclose(c, a @ b + 1, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("tile", TILES, indirect=True, ids=str)
def test_right_operand_in_strips_is_read_in_place(tile):
    random = np.random.default_rng(2)
    for (m, strips, k), wanted in itertools.product(((20, 3, 33), (7, 2, 400)), (1, 2)):
        n = strips * tile.columns
        a = random.standard_normal((2, m, k)).astype(tile.dtype)
        packed = random.standard_normal((2, strips, k, tile.columns)).astype(tile.dtype)
        b, c = packed.swapaxes(1, 2), np.full((2, m, n), np.nan, tile.dtype)
        assert launch._strips(matrix(1, b, (1, 2)), tile) == k * tile.columns
        cut = launch.panels(tile.dtype, (m, n, k), wanted)
        multiply(tile, a, b, c, cut, groups=(PLAIN, (1, 2)))
        np.testing.assert_allclose(c, a @ b.reshape(2, k, n), rtol=TOLERANCE[tile.dtype], atol=k * TOLERANCE[tile.dtype])


BELOW, ABOVE = np.tril, np.triu
PROMISES = {  # which half of a, b and the result counts
    "n<=m": (None, None, BELOW), "m<=n": (None, None, ABOVE), "k<=m": (BELOW, None, None), "m<=k": (ABOVE, None, None),
    "n<=k": (None, BELOW, None), "k<=n": (None, ABOVE, None),
}


def with_numbers_beyond(x, half):
    """The `half` of a matrix that counts, zeros beside it, and further than tiles reach what must not be read."""
    return x if half is None else half(x) + (x - half(x, 64 if half is BELOW else -64))


@pytest.mark.parametrize("only", PROMISES)
@pytest.mark.parametrize("by_columns", [False, True])
def test_products_that_do_not_count_are_left_out(only, by_columns):
    random = np.random.default_rng(3)
    halves = PROMISES[only]
    of_result = halves[2] or (lambda x: x)
    for m, n, k in ((70, 70, 70), (40, 100, 90), (100, 40, 90), (60, 500, 500), (500, 60, 450)):
        a, b, c = (random.standard_normal((3, *shape)).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
        left, right = (x if half is None else half(x) for x, half in zip((a, b), halves, strict=False))
        height = -(-n // 64) * 32 if by_columns else -(-m // 24) * 12
        cut = launch.Panels(-(-(n if by_columns else m) // height), height, by_columns)
        read = (with_numbers_beyond(x, half) for x, half in zip((a, b), halves, strict=False))
        multiply(tile_of("float32"), *read, c, cut, only=only)
        np.testing.assert_allclose(of_result(c), of_result(left @ right), rtol=1e-4, atol=1e-3)
        assert halves[2] is None or not (c - halves[2](c, 64 if halves[2] is BELOW else -64)).any(), "zeros where nobody reads"


def test_results_may_lie_apart_and_operands_may_overlap_or_repeat():
    random = np.random.default_rng(2)
    signal = random.standard_normal((3, 60)).astype(np.float32)
    windows = np.lib.stride_tricks.as_strided(signal, (3, 20, 30), (240, 4, 4))
    repeated = np.broadcast_to(random.standard_normal((30, 7)).astype(np.float32), (3, 30, 7))
    memory = np.zeros((20, 3, 9), np.float32)
    multiply(tile_of("float32"), windows, repeated, memory.transpose(1, 0, 2)[:, :, 1:8], launch.Panels(1, 24, False))
    np.testing.assert_allclose(memory.transpose(1, 0, 2)[:, :, 1:8], windows @ repeated, rtol=1e-4, atol=1e-4)
    assert not memory[:, :, 0].any() and not memory[:, :, 8].any()


WINDOWS = {  # images, channels, padded extents, window, steps: runs of 9, of 4 and of 1 along columns, and of 6 two apart
    "wide": (3, 5, (11, 13), (3, 5), 1), "narrow": (5, 4, (6, 6), (3, 3), 1), "one in a row": (4, 6, (5, 3), (3, 3), 1),
    "two steps apart": (3, 3, (9, 12), (3, 2), 2),
}


@pytest.mark.parametrize("tile", TILES, indirect=True, ids=str)
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_packed_where_they_lie(tile, name):
    images, channels, extents, window, step = WINDOWS[name]
    random, bound = np.random.default_rng(4), dict(rtol=TOLERANCE[tile.dtype], atol=300 * TOLERANCE[tile.dtype])
    x = random.standard_normal((images, channels, *extents)).astype(tile.dtype)
    found = np.lib.stride_tricks.sliding_window_view(x, window, (2, 3))[:, :, ::step, ::step].transpose(0, 1, 4, 5, 2, 3)
    count, k, n = images, channels * int(np.prod(window)), int(np.prod(found.shape[-2:]))
    for m in (7, 26):
        weight = random.standard_normal((1, m, k)).astype(tile.dtype)
        for wanted in (1, 3):
            # All images side by side: columns run across images, rows and columns of them; terms across channels and windows.
            y = np.full((1, m, count * n), np.nan, tile.dtype)
            columns = found.transpose(1, 2, 3, 0, 4, 5)[None]
            multiply(tile, weight, columns, y, launch.panels(tile.dtype, (m, count * n, k), wanted), groups=(PLAIN, (3, 3)))
            np.testing.assert_allclose(y, weight @ columns.reshape(1, k, count * n), **bound)
            # What windows are summed over: terms run across images.
            g = random.standard_normal((count, m, n)).astype(tile.dtype)
            w = np.full((1, m, k), np.nan, tile.dtype)
            terms, rows = found.transpose(0, 4, 5, 1, 2, 3)[None], g.transpose(1, 0, 2)[None]
            multiply(tile, rows, terms, w, launch.panels(tile.dtype, (m, k, count * n), wanted), groups=((1, 2), (3, 3)))
            np.testing.assert_allclose(w, rows.reshape(1, m, count * n) @ terms.reshape(1, count * n, k), **bound)
            # Windows on the left, one product for each image.
            turned, right = found.transpose(0, 4, 5, 1, 2, 3), random.standard_normal((count, k, m)).astype(tile.dtype)
            z = np.full((count, n, m), np.nan, tile.dtype)
            multiply(tile, turned, right, z, launch.panels(tile.dtype, (n, m, k), wanted), groups=((2, 3), PLAIN))
            np.testing.assert_allclose(z, turned.reshape(count, n, k) @ right, **bound)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("step", "width"), [(1, 11), (2, 11), (1, 12), (2, 10)])
def test_operands_are_read_no_further_than_they_reach(step, width, dtype):
    """Vectors at the end of memory are masked: the next page may not be there."""
    if dtype == "bfloat16" and not multiplies_pairs():
        pytest.skip("the processor does not multiply pairs")
    tile, kind = tile_of(dtype), np.dtype(getattr(ml_dtypes, dtype, dtype))
    page, size = mmap.PAGESIZE, 4 * 5 * width
    memory = mmap.mmap(-1, 2 * page)
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert libc.mprotect(ctypes.c_void_p(start + page), page, 0) == 0
    try:
        x = np.frombuffer(memory, kind, size, page - kind.itemsize * size).reshape(1, 4, 5, width)
        x[...] = np.arange(x.size).reshape(x.shape) % 16
        found = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))[:, :, ::step, ::step].transpose(0, 1, 4, 5, 2, 3)
        n, wide = int(np.prod(found.shape[-2:])), found.reshape(1, 36, -1).astype(np.float32)
        weight = np.ones((1, 6, 36), kind)
        y = np.zeros((1, 6, n), np.float32)
        multiply(tile, weight, found, y, launch.Panels(1, 6, False), groups=(PLAIN, (3, 2)))
        np.testing.assert_allclose(y, weight.astype(np.float32) @ wide)
        g, w = np.zeros((1, 6, n + n % 2), kind)[..., :n], np.zeros((1, 6, 36), np.float32)
        g[...] = 1
        terms = found.transpose(0, 4, 5, 1, 2, 3)
        multiply(tile, g, terms, w, launch.Panels(1, 6, False), groups=(PLAIN, (2, 3)))
        np.testing.assert_allclose(w, g.astype(np.float32) @ wide.swapaxes(1, 2))
        rows, ones = x.reshape(1, 20, width), np.ones((1, 6, 20), kind)
        z = np.zeros((1, 6, width), np.float32)
        multiply(tile, ones, rows, z, launch.Panels(1, 6, False))
        np.testing.assert_allclose(z, ones.astype(np.float32) @ rows.astype(np.float32))
        z = np.zeros((1, width, 6), np.float32)
        multiply(tile, rows.swapaxes(1, 2), ones.swapaxes(1, 2), z, launch.Panels(1, width, False))
        np.testing.assert_allclose(z, (ones.astype(np.float32) @ rows.astype(np.float32)).swapaxes(1, 2))
    finally:
        libc.mprotect(ctypes.c_void_p(start + page), page, mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.mark.parametrize("tile", [RegisterTile("float32", 16, 12, 2)], indirect=True, ids=str)
@pytest.mark.usefixtures("tile")
def test_cuts_follow_what_is_dear_to_pack_again():
    assert launch.panels("float32", (2048, 96, 256), 2) == launch.Panels(2, 1032, False)
    assert launch.panels("float32", (128, 512, 784), 2) == launch.Panels(2, 256, True)
    assert launch.panels("float32", (128, 512, 784), 1).panels == 1
