"""Fourier transforms beside torch's: values, gradients, arguments, and how often the host is called."""

import contextlib
import sys

import numpy as np
import pytest
import torch

import genesis
from genesis.autograd import gradcheck, gradgradcheck
from genesis.codegen.cpu.fourier import launch as fourier
from genesis.execution import flush
from genesis.ops import fourier as rows

rng = np.random.default_rng(0)
NAMES = [kind + end for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for end in ("", "2", "n")]
SETTINGS = {"": ({}, {"n": 4}, {"n": 9, "dim": 0}), "2": ({}, {"s": (3, 8)}, {"dim": (0, 2)}, {"s": (3, 8), "dim": (2, 0)})}
SETTINGS["n"] = (*SETTINGS["2"], {"dim": (1,)}, {"s": (7,)})


def numbers(dtype, *shape):
    made = rng.standard_normal(shape)
    return (made + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else made).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
def test_transforms_and_gradients(name):
    real = name.startswith(("rfft", "ihfft"))
    for dtype in ("float32", "float64") if real else ("float64", "complex64", "complex128"):
        x = numbers(dtype, 4, 5, 6)
        relative = 1e-3 if dtype in ("float32", "complex64") else 1e-10
        for number, settings in enumerate(SETTINGS[name[-1] if name[-1] in "2n" else ""]):
            norm = (None, "ortho", "forward", "backward")[number % 4]
            results = []
            for lib in (torch, genesis):
                leaf = lib.tensor(x, requires_grad=True)
                y = getattr(lib.fft, name)(leaf, norm=norm, **settings)
                if not results:
                    seed = numbers(str(y.dtype).removeprefix("torch."), *y.shape)
                (grad,) = lib.autograd.grad(y, [leaf], lib.tensor(seed))
                results.append((y.detach(), grad))
            (theirs, other), (ours, own) = results
            theirs, other = theirs.resolve_conj().numpy(), other.resolve_conj().numpy()
            assert (ours.numpy().dtype, own.numpy().dtype) == (theirs.dtype, other.dtype)
            np.testing.assert_allclose(ours.numpy(), theirs, relative, relative)
            np.testing.assert_allclose(own.numpy(), other, relative, relative)


@pytest.mark.parametrize("name", ["fft2", "irfft", "rfft2", "hfft", "ihfft"])
def test_derivatives_of_both_orders(name):
    dtype = "float64" if name.startswith(("rfft", "ihfft")) else "complex128"
    x = genesis.tensor(numbers(dtype, 3, 4), requires_grad=True)
    assert gradcheck(getattr(genesis.fft, name), x)
    assert gradgradcheck(getattr(genesis.fft, name), x)


@pytest.mark.parametrize("extent", [8, 34])
def test_a_gradient_is_one_call(extent, monkeypatch):
    hosted, native = [], []
    call, launches = flush.call_host, fourier.launches
    monkeypatch.setattr(flush, "call_host", lambda plan, host, *rest: (hosted.append(plan.lowered.nodes[host.node].op),
                                                                      call(plan, host, *rest)))

    def recorded(nodes, host, *rest):  # once for each call of a plan
        found = launches(nodes, host, *rest)
        native.extend([] if found is None else [nodes[host.node].op])
        return found

    monkeypatch.setattr(fourier, "launches", recorded)
    x = genesis.tensor(numbers("float64", 8, extent), requires_grad=True)
    genesis.fft.irfft2(genesis.fft.rfft2(x) * 2).square().sum().backward()
    assert x.grad.numpy().shape == (8, extent)
    wanted = sorted(["fft_from_real", "fft_to_real"] * 2)
    assert (sorted(native), hosted) == (wanted, []) if extent == 8 else (native, sorted(hosted)) == ([], wanted)


def test_transforms_batch_and_replay():
    x = numbers("float32", 3, 8)
    found = genesis.vmap(lambda row: genesis.fft.rfft(row).abs())(genesis.tensor(x))
    np.testing.assert_allclose(found.numpy(), np.abs(np.fft.rfft(x)), 1e-4, 1e-5)
    step = genesis.compile(lambda x: genesis.fft.ifft(genesis.fft.fft(x) * 1j).imag)
    for _ in range(3):
        x = numbers("float32", 16)
        np.testing.assert_allclose(step(genesis.tensor(x)).numpy(), x, 1e-4, 1e-5)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    for name in ("fftfreq", "rfftfreq"):
        assert getattr(genesis.fft, name)(n, 0.5).tolist() == pytest.approx(getattr(torch.fft, name)(n, 0.5).tolist())


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("2")])
def test_public_functions_of_scipy_serve_where_its_private_ones_are_gone(name, monkeypatch):
    extent = 18 if name.startswith(("irfft", "hfft")) else 17
    x = genesis.tensor(numbers("float64" if name.startswith(("rfft", "ihfft")) else "complex128", 4, extent))
    wanted = [getattr(genesis.fft, name)(x, norm=norm).numpy() for norm in ("backward", "ortho")]
    monkeypatch.setitem(sys.modules, "scipy.fft._pocketfft.pypocketfft", None)
    rows._transforms.cache_clear()
    try:
        assert rows._transforms().to_real is rows._public_to_real
        for norm, values in zip(("backward", "ortho"), wanted, strict=True):
            np.testing.assert_allclose(getattr(genesis.fft, name)(x, norm=norm).numpy(), values, 1e-10, 1e-12)
    finally:
        rows._transforms.cache_clear()


STFT = ({}, {"hop_length": 7, "win_length": 20, "window": 20}, {"center": False}, {"normalized": True, "onesided": False},
        {"pad_mode": "constant"})


@pytest.mark.parametrize("settings", STFT)
@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_short_time_transforms(settings):
    x = rng.standard_normal((2, 200))
    results = []
    for lib in (torch, genesis):
        given = dict(settings)
        if "window" in given:
            given["window"] = lib.tensor(np.hanning(22)[1:-1])
        leaf = lib.tensor(x, requires_grad=True)
        y = lib.stft(leaf, 32, return_complex=True, **given)
        (grad,) = lib.autograd.grad(y.abs().sum(), [leaf])
        given.pop("pad_mode", None)
        back = None if settings.get("center") is False else lib.istft(y.detach(), 32, length=150, **given).numpy()
        results.append((y.detach().numpy(), grad.numpy(), back))
    for theirs, ours in zip(*results, strict=True):
        assert (theirs is None) is (ours is None)
        if theirs is not None:
            np.testing.assert_allclose(ours, theirs, 1e-7, 1e-9)


@pytest.mark.parametrize("mode", ["lazy", "eager", "compiled"])
def test_places_that_no_window_reaches_are_an_error(mode):
    z, window = genesis.tensor(numbers("complex64", 5, 4)), genesis.signal.windows.hann(8, sym=False)
    back = lambda z, window: genesis.istft(z, 8, window=window, center=False) * 2  # noqa: E731
    back = genesis.compile(back) if mode == "compiled" else back
    with genesis.eager() if mode == "eager" else contextlib.nullcontext():
        for _ in range(3):
            with pytest.raises(RuntimeError, match="istft: window overlap add min is 0 at sample 0 of 14"):
                back(z, window).numpy()
        assert back(z, window + 1).numpy().shape == (14,)
    assert genesis.istft(z, 8, window=window).shape == (6,)
    with pytest.raises(ValueError, match="hop_length 8 is more than win_length 4"):
        genesis.istft(z, 8, 8, 4)


def test_refused():
    z = genesis.tensor(numbers("complex64", 4))
    with pytest.raises(TypeError, match="rfft: wants a real tensor, got complex64"):
        genesis.fft.rfft(z)
    with pytest.raises(ValueError, match="fft: norm is 'half'"):
        genesis.fft.fft(z, norm="half")
    with pytest.raises(ValueError, match="an axis has 0 points"):
        genesis.fft.fft(z, n=0)
    with pytest.raises(ValueError, match="names an axis more than once"):
        genesis.fft.fftn(z, dim=(0, -1))
    with pytest.raises(TypeError, match="wants float32, float64 or complex numbers, got float16"):
        genesis.fft.fft(genesis.ones(4, dtype=genesis.float16))
    with pytest.raises(ValueError, match="return_complex"):
        genesis.stft(genesis.ones(8), 4)
    with pytest.raises(TypeError, match="istft: wants a complex tensor"):
        genesis.istft(genesis.ones(3, 4), 4)
