"""The kernel of Fourier transforms beside NumPy's, in longer numbers: lengths, columns, layouts, widths, accuracy."""

import numpy as np
import pytest

import genesis
from genesis.codegen.cpu.fourier import driver, plan
from genesis.codegen.cpu.fourier.butterflies import roots
from genesis.codegen.cpu.fourier.driver import width_of
from genesis.execution import flush

rng = np.random.default_rng(0)
LONGER = {"float32": "float64", "complex64": "complex128", "float64": "longdouble", "complex128": "clongdouble"}
ERRORS = {"float32": 3e-7, "complex64": 3e-7, "float64": 6e-16, "complex128": 6e-16}  # relative, of the root of mean squares


@pytest.fixture(autouse=True)
def no_host(monkeypatch):
    def refuse(*_):
        raise AssertionError("the host is called")

    monkeypatch.setattr(flush, "call_host", refuse)


def numbers(dtype, *shape):
    made = rng.standard_normal(shape)
    return (made + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else made).astype(dtype)


def assert_transformed(name, x, given=None, **settings):
    """`given`, or `x` as it is, is transformed as NumPy transforms `x` in longer numbers."""
    found = getattr(genesis.fft, name)(genesis.tensor(x) if given is None else given, **settings).numpy()
    if "dim" in settings:
        settings["axes" if name.endswith(("n", "2")) else "axis"] = settings.pop("dim")
    wanted = getattr(np.fft, name)(x.astype(LONGER[str(x.dtype)]), **settings)
    assert found.shape == wanted.shape
    error = np.sqrt(np.mean(np.abs(found - wanted) ** 2) / np.mean(np.abs(wanted) ** 2))
    assert error < ERRORS[str(x.dtype)], (name, x.shape, error)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [8, 20, 32, 100, 243, 256, 1000, 1001, 2048, 1 << 14, 36 * 1024])
def test_lengths(n, dtype):
    assert_transformed("fft", numbers(dtype, n))
    assert_transformed("ifft", numbers(dtype, 3, n), norm="ortho")


def test_rows_that_go_one_by_one():
    """Each first radix, with whole and with overlapping vectors of places; halves of fewer numbers than two vectors have."""
    for n in (64, 72, 104, 256, 264, 512, 1000, 3000):
        assert_transformed("fft", numbers("complex64", 9, n))
        assert_transformed("ifft", numbers("complex128", 9, n))
    width = width_of("float32")
    for half in (width, width + 1, 2 * width - 1, 11, 64, 243, 1024):
        assert_transformed("rfft", numbers("float32", 9, 2 * half))
        assert_transformed("irfft", numbers("complex64", 9, half + 1), n=2 * half)
    assert_transformed("rfft", numbers("float64", 3, 78732))  # a long one of an odd half
    assert_transformed("irfft", numbers("complex128", 3, 39367))


@pytest.mark.parametrize("batch", [37, 131, 300])
def test_rows_that_go_through_a_pass_together(batch):
    """As many as a first-level cache holds, and the rest with the last ones."""
    for n in (64, 128, 256, 512):
        assert_transformed("fft", numbers("complex64", batch, n))
        assert_transformed("ifft", numbers("complex128", 2, batch, n)[:, ::2])
        assert_transformed("rfft", numbers("float32", batch, 2 * n))
        assert_transformed("irfft", numbers("complex64", batch, n + 1), n=2 * n)


@pytest.mark.parametrize("n", [1 << 14, 1 << 18])
def test_long_transforms_of_a_batch(n):
    """Each by itself, and those that no cache holds as matrices."""
    assert_transformed("fft", numbers("complex64", 5, n))
    assert_transformed("rfft", numbers("float32", 4, n))
    assert_transformed("irfft", numbers("complex64", 4, n // 2 + 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [16, 24, 100, 1000, 2048, 1 << 15, 9 << 13])
def test_real_lengths(n, dtype):
    longer = "complex64" if dtype == "float32" else "complex128"
    assert_transformed("rfft", numbers(dtype, 3, n))
    assert_transformed("ihfft", numbers(dtype, n))
    spectrum = numbers(longer, 2, n // 2 + 1)  # whose first and last numbers are not real
    assert_transformed("irfft", spectrum)
    assert_transformed("hfft", spectrum, norm="ortho")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(19, 64), (2, 9, 21), (8, 243)])
def test_transforms_side_by_side(shape, dtype):
    x = numbers(dtype, *shape)
    assert_transformed("fft", x, norm="forward")
    assert_transformed("ifft", np.moveaxis(x, 0, -1), genesis.tensor(np.ascontiguousarray(np.moveaxis(x, 0, -1))), dim=0)
    assert_transformed("hfft", x[..., :41])
    assert_transformed("rfft", x.real[..., : shape[-1] // 2 * 2].copy(), norm="ortho")


@pytest.mark.parametrize("shape", [(64, 64), (256, 100), (5, 7), (16, 40), (30, 9), (33, 66), (2, 3, 4, 5)])
def test_several_axes(shape):
    x = numbers("complex128", *shape)
    assert_transformed("fftn", x)
    assert_transformed("ifft", x, dim=0)
    if shape[-1] > 7:
        assert_transformed("rfft2", x.real[..., : shape[-1] // 2 * 2].copy())
        assert_transformed("irfft2", x)


def test_operands_that_do_not_lie_end_to_end():
    x = numbers("complex64", 6, 5, 4, 64)
    whole = genesis.tensor(x)
    assert_transformed("fft", x[::2, :, 1:3], whole[::2, :, 1:3])
    assert_transformed("fft", x.transpose(1, 0, 2, 3), whole.permute(1, 0, 2, 3))
    assert_transformed("fft", x[..., :24], whole[..., :24], dim=2)
    assert_transformed("irfft", x[:, 1], whole[:, 1])
    real = numbers("float32", 3, 40)
    assert_transformed("rfft", real[:, 8:], genesis.tensor(real)[:, 8:])


def test_other_lengths_and_batches_compile_nothing():
    assert_transformed("fft", numbers("complex64", 3, 64))
    genesis.debug.reset_stats()
    for shape in (5, 64), (3, 1000), (1 << 15,), (16, 9, 24):
        genesis.fft.fft(genesis.tensor(numbers("complex64", *shape))).numpy()
    stats = genesis.debug.stats()
    assert stats["plans_built"] and stats["kernels_compiled"] + stats["kernels_loaded"] == 0


def test_transforms_join_the_program_around_them():
    x = genesis.tensor(numbers("complex64", 4, 96))
    y = genesis.fft.ifft(genesis.fft.fft(x) * 2.0)
    assert str(genesis.debug.program(y)).count("native  fft_complex: ") == 2
    np.testing.assert_allclose(y.numpy(), 2 * x.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("nbytes", [16, 32])
def test_narrower_vectors(nbytes, monkeypatch):
    monkeypatch.setattr(driver, "vector_bytes", lambda: nbytes)
    plan.passes.cache_clear()
    try:
        for n in (nbytes, 3 * nbytes, 75, 1 << 14):
            assert_transformed("fft", numbers("complex64", 2, n))
        assert_transformed("irfft", numbers("complex64", 5, 61))
        assert_transformed("rfft2", numbers("float32", 12, 20))
    finally:
        plan.passes.cache_clear()


def test_no_number_is_read_or_written_elsewhere():
    for shape in (3, 20), (7, 9), (1, 1000):
        memory = np.full(numbers("complex64", *shape).size + 32, np.nan, "complex64")
        x = numbers("complex64", *shape)
        memory[16:-16] = x.ravel()
        given = genesis.from_numpy(memory)[16:-16].reshape(shape)
        assert_transformed("fft2", x, given)
        assert np.isnan(memory[:16]).all() and np.isnan(memory[-16:]).all()


def test_roots_are_right_to_the_last_place():
    for n in (7, 100, 1024, 6561):
        k = np.arange(n)
        angle = 8 * np.arctan(np.longdouble(1)) * k / n
        assert np.abs(roots(k, n) - (np.cos(angle) - 1j * np.sin(angle))).max() < 1.6e-16


@pytest.mark.parametrize("n", [12, 64, 1000, 243, 8 * 11 * 13])
@pytest.mark.parametrize("columns", [1, 3, 8])
def test_passes_have_the_length_for_their_product(n, columns):
    found = plan.passes(n, columns, "float32", True)
    assert np.prod([a_pass.radix for a_pass in found]) == n
    assert all(a_pass.kind != "transposed" or a_pass.m >= driver.width_of("float32") for a_pass in found)
    for a_pass in found:
        assert a_pass.l * a_pass.m * a_pass.radix == n
        assert a_pass.kind in ("narrow", "transposed") or a_pass.l * columns >= driver.width_of("float32")
