"""Products on the device: the kernel compiles without spills, and in the simulator computes what NumPy's einsum does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import genesis
from genesis.codegen.cuda.binaries import machine_code, names, toolchain
from genesis.codegen.cuda.product import Matrices, matrices_of, steps_of, tiles_of
from genesis.codegen.cuda.product_kernel import Form, parameters, product_source
from genesis.codegen.cuda.signature import Function
from genesis.codegen.cuda.simulate import run
from genesis.codegen.cuda.target import SIMULATED
from genesis.lower.stages import Matrix, Product
from genesis.ops.layout import Layout

pytest.importorskip("numba_cuda")
simulated = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator: see test_in_the_simulator.py")
compiled = pytest.mark.skipif(SIMULATED, reason="the simulator compiles nothing")

PLAIN, WINDOWS = (1,) * 7, (2, 2, 2, 1, 2, 4, 2)
TILES = tiles_of("float32")
FORMS = [
    Form("float32", "float32", TILES[0], PLAIN, True, False), Form("float32", "float32", TILES[0], WINDOWS, False, False),
    Form("float32", "float32", TILES[1], WINDOWS, False, True), Form("float64", "float64", TILES[1], PLAIN, True, False),
    Form("bfloat16", "bfloat16", TILES[0], PLAIN, False, False),
    Form("float32", "float32", TILES[0], PLAIN, False, False, adds=True),
    Form("bfloat16", "float32", TILES[1], PLAIN, False, True, adds=True),
]


@compiled
@pytest.mark.parametrize(
    ("form", "capability"), [*((form, (9, 0)) for form in FORMS), (FORMS[4], (8, 0))],
    ids=lambda value: f"{value.dtype} {value.tile.rows} {sum(value.digits)} {value.adds}" if isinstance(value, Form) else None)
def test_sums_stay_in_registers(form, capability):
    """All forms on the newer architecture, that of 16 bits on the older; sums are most of what a thread keeps."""
    machine = machine_code(Function("product", product_source("product", form), parameters(form), ()), capability)
    assert machine.spilled == 0
    assert form.tile.own_rows * form.tile.own_columns < machine.registers <= 65536 // form.tile.threads


@compiled
def test_four_neighbours_are_one_load_from_shared_memory():
    form = FORMS[0]
    ptx = toolchain().compile_ptx(product_source("product", form), "product", parameters(form), names(), (9, 0))
    assert ptx.count("ld.shared.v4.f32") >= (form.tile.own_rows + form.tile.own_columns) // 4
    assert "ld.shared.f32" not in ptx


# ---- in the simulator ----

def computed(matrices, dtype, a, b, c, processors=1, **how):
    """What the launches write to `c`."""
    steps, size = steps_of(matrices, dtype, processors, **how)
    partial = np.full(max(size // 4, 1), np.nan, np.float32)
    places = {"a": a, "b": b, "c": c, "partial": partial}
    for step in steps:
        values = [*(places[name].ctypes.data for name in step.pointers), *step.numbers]
        run(step.function, (step.blocks, 1), (step.threads, 1), values)
    return c


def plain(a, b, c, batch=()):
    """The Matrices of NumPy arrays (.., rows, columns), all batch axes by their strides."""
    strides = [[s // x.itemsize for s in x.strides] for x in (a, b, c)]
    (m, k), n = a.shape[-2:], b.shape[-1]
    axes = tuple(zip(a.shape[:-2], *(s[:-2] for s in strides), strict=True))
    (ar, ac), (br, bc), (cr, _) = (s[-2:] for s in strides)
    return Matrices(axes, ((m, ar),), ((k, ac),), ((k, br),), ((n, bc),), cr)


extents = st.integers(1, 11)


@simulated
@settings(max_examples=12)
@given(extents, extents, st.integers(0, 20), st.sampled_from([(), (1,), (3,), (2, 2)]), st.booleans(), st.booleans())
def test_matrices_lie_any_way(m, n, k, batch, a_turned, b_turned):
    random = np.random.default_rng(m + n + k)
    a, b = random.normal(size=(*batch, m, k)).astype(np.float32), random.normal(size=(*batch, k, n)).astype(np.float32)
    if a_turned:
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if b_turned:
        b = np.repeat(np.ascontiguousarray(b.swapaxes(-1, -2)), 2, -1).swapaxes(-1, -2)[..., ::2, :]
    c = np.full((*batch, m, n), np.nan, np.float32)
    np.testing.assert_allclose(computed(plain(a, b, c), "float32", a, b, c), a @ b, 1e-5, 1e-5)


@simulated
@pytest.mark.parametrize(("dtype", "numpy"), [
    ("float64", np.float64), ("float16", np.float16), ("int64", np.int64), ("int32", np.int32),
])
def test_every_dtype_is_summed_in_its_own(dtype, numpy):
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, size=size).astype(numpy) for size in ((5, 9), (9, 6)))
    c = np.zeros((5, 6), numpy)
    assert (computed(plain(a, b, c), dtype, a, b, c) == a @ b).all()


@simulated
def test_sixteen_bits_are_summed_in_thirty_two():
    """In float16, 2048 + 1 is 2048."""
    a, b, c = np.ones((2, 17), np.float16), np.ones((17, 2), np.float16), np.zeros((2, 2), np.float16)
    a[:, 0] = 2048
    assert (computed(plain(a, b, c), "float16", a, b, c) == 2064).all()


@simulated
@pytest.mark.parametrize("processors", [1, 8])  # terms in one part, in several
def test_sums_of_sixteen_bits_are_kept_in_thirty_two_and_added_to(processors):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(3, 50)).astype(np.float16), random.normal(size=(50, 5)).astype(np.float16)
    c = np.full((3, 5), np.nan, np.float32)
    for adds in (False, True):
        computed(plain(a, b, c), "float16", a, b, c, processors, stored="float32", adds=adds)
    np.testing.assert_allclose(c, 2 * (a.astype(np.float32) @ b.astype(np.float32)), 1e-5, 1e-5)


@simulated
def test_few_tiles_of_many_terms_are_summed_in_parts():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 3, 50)).astype(np.float32), random.normal(size=(2, 50, 5)).astype(np.float32)
    c = np.full((2, 3, 5), np.nan, np.float32)
    steps, size = steps_of(plain(a, b, c), "float32", 8)
    assert len(steps) == 2 and size % (4 * c.size) == 0 and size // (4 * c.size) > 1
    np.testing.assert_allclose(computed(plain(a, b, c), "float32", a, b, c, 8), a @ b, 1e-5, 1e-5)


@simulated
@pytest.mark.parametrize("processors", [1, 4])
def test_matrices_that_are_added_up_are_more_terms(processors):
    random = np.random.default_rng(0)
    a, b = random.normal(size=(3, 5, 7)).astype(np.float32), random.normal(size=(3, 7, 4)).astype(np.float32)
    c = np.full((5, 4), np.nan, np.float32)
    layouts = [Layout(x.shape, tuple(s // 4 for s in x.strides), 0) for x in (a, b, c)]
    steps = [(35,), (28,), (0,)]
    call = Product(*map(Matrix, range(3), layouts, steps), (3,), (5, 4, 7))
    np.testing.assert_allclose(computed(matrices_of(call), "float32", a, b, c, processors), (a @ b).sum(0), 1e-5, 1e-5)


@simulated
def test_windows_of_an_image_are_read_where_they_lie():
    """A convolution: terms are a channel and a place in the window, columns are places in the image."""
    random = np.random.default_rng(0)
    image, weight = random.normal(size=(2, 3, 5, 6)).astype(np.float32), random.normal(size=(4, 3, 2, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(image, (2, 3), (2, 3))
    _, _, rows, columns, height, width = windows.shape
    c = np.full((2, 4, rows * columns), np.nan, np.float32)
    terms, places = ((3, 30), (height, 6), (width, 1)), ((rows, 6), (columns, 1))
    matrices = Matrices(((2, 0, 90, c[0].size),), ((4, 18),), ((18, 1),), terms, places, rows * columns)
    expected = np.einsum("ncrshw,ochw->nors", windows, weight).reshape(c.shape)
    np.testing.assert_allclose(computed(matrices, "float32", weight, image, c), expected, 1e-5, 1e-5)


@simulated
def test_a_program_with_products_is_one_call():
    x, w, v = (genesis.tensor(np.cos(np.arange(a * b)).reshape(a, b), dtype=genesis.float32, device="cuda")
               for a, b in ((5, 7), (7, 6), (4, 6)))
    genesis.debug.reset_stats()
    y = ((x @ w).relu() @ v.t()).cpu()
    assert genesis.debug.stats()["native_calls"] == 1
    np.testing.assert_allclose(y.numpy(), np.maximum(x.cpu().numpy() @ w.cpu().numpy(), 0) @ v.cpu().numpy().T, 1e-5, 1e-5)
