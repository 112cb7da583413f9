"""The short-time Fourier transform and its inverse by overlap-add (Griffin and Lim, 1984)."""

from __future__ import annotations

import numpy as np

from genesis.ir.errors import ArgumentError, ArgumentTypeError
from genesis.ir.graph import Node, Value
from genesis.ops.complex_operations import view_as_real
from genesis.ops.fourier import from_spectrum, spectrum, transformable, transformed
from genesis.ops.layout import Layout
from genesis.ops.registry import OPERATIONS, composite, expand, primitive
from genesis.ops.view_gradient import put_sums
from genesis.ops.views import permute_value, reshape_value, slice_value, view_node
from genesis.ops.window import pad_value


def _settings(
    name: str, x: Value, n_fft: int, hop_length: int | None, win_length: int | None, window: Value | None
) -> tuple[int, Value]:
    """The hop, and the window padded with zeros."""
    hop, length = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if n_fft < 1 or hop < 1 or not 0 < length <= n_fft:
        raise ArgumentError(
            f"{name}: n_fft {n_fft}, hop_length {hop}, win_length {length}; want 1 or more, win_length within n_fft")
    real = x.dtype.real
    if window is None:
        window = expand(x.graph.constant(1.0, real), (length,))
    elif window.shape != (length,):
        raise ArgumentError(f"{name}: window has shape {window.shape}; want ({length},)")
    before = (n_fft - length) // 2
    return hop, pad_value(window, (before,), (n_fft - length - before,))


@composite("stft", 1, takes_complex=True)
def stft(
    input: Value, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Value | None = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Value:
    """The Fourier transforms of windows of `n_fft` samples along a signal: (.., frequencies, windows).

    Args:
        input: a signal (time,) or several (batch, time), real or complex.
        n_fft: the samples of a transform.
        hop_length: the samples from one window to the next, by default n_fft / 4.
        win_length: the samples of `window`, by default n_fft; it is padded with zeros to n_fft.
        window: multiplies the samples, by default ones.
        center: whether window t is centred at sample t * hop_length; the signal is then padded by `pad_mode`.
        normalized: whether transforms are divided by sqrt(n_fft).
        onesided: whether to return only the first half, by default for real signals.
        return_complex: if False, real and imaginary parts are a last axis; required for a real signal.
        align_to_window: without `center`, whether the first window, and not its padding, begins where the signal does.

    Raises ValueError for a signal of more axes or too short, or mismatched settings.

    >>> genesis.stft(genesis.ones(8), 4, return_complex=True).shape
    (3, 9)
    """
    x = transformable("stft", input)
    is_complex = x.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise ArgumentError("stft: a real signal wants return_complex to be given: True for complex results")
    if x.ndim not in (1, 2):
        raise ArgumentError(f"stft: input has shape {x.shape}; want (time,) or (batch, time)")
    if onesided and is_complex:
        raise ArgumentError("stft: transforms of complex numbers have no half alone; want onesided=False")
    hop, weights = _settings("stft", x, n_fft, hop_length, win_length, window)
    if center and align_to_window is not None:
        raise ArgumentError(f"stft: align_to_window is {align_to_window}; want center=False with it")
    rows = reshape_value(x, (1, *x.shape)) if x.ndim == 1 else x
    if align_to_window and win_length is not None:
        before = (n_fft - win_length) // 2
        rows = pad_value(rows, (0, before), (0, n_fft - win_length - before))
    if center:
        around = n_fft // 2
        padded = OPERATIONS["pad"](reshape_value(rows, (1, *rows.shape)), (around, around), pad_mode)
        rows = reshape_value(padded, padded.shape[1:])
    batch, samples = rows.shape
    if samples < n_fft:
        raise ArgumentError(f"stft: the signal has {samples} samples, padding included; want n_fft = {n_fft} at least")
    count = 1 + (samples - n_fft) // hop
    frames = view_node(rows, Layout((batch, count, n_fft), (samples, hop, 1), 0), "frames") * weights
    half = not is_complex if onesided is None else onesided
    scale = int(normalized)
    found = spectrum(frames, (-1,), True, scale) if half else transformed(frames, (-1,), True, scale)
    found = permute_value(found, (0, 2, 1))
    found = reshape_value(found, found.shape[1:]) if x.ndim == 1 else found
    return view_as_real(found) if return_complex is False else found


def _reached(node: Node, share: np.ndarray) -> np.ndarray:
    """The sum of the squared windows; raises if it is 0 at a sample."""
    if share.size and np.abs(share).min() < 1e-11:
        sample = int(np.abs(share).argmin()) % share.shape[-1]
        raise ArgumentError(f"istft: window overlap add min is 0 at sample {sample} of {share.shape[-1]}; want windows that "
                            "reach all of the signal")
    return share


primitive("windows_reach", "host", grad=lambda g, y, share: g, reference=_reached)


@composite("istft", 1, takes_complex=True)
def istft(
    input: Value, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Value | None = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Value:
    """The signal whose `stft`, with the same settings, is closest to `input`: summed windows over summed squared windows.

    `length` cuts it, or pads it with zeros. Raises ValueError for other shapes, mismatched settings and, when evaluated,
    samples that no window covers; TypeError for a real `input`.

    >>> x = genesis.arange(8.0)
    >>> genesis.istft(genesis.stft(x, 4, return_complex=True), 4)
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    if not input.dtype.is_complex:
        raise ArgumentTypeError(f"istft: wants a complex tensor, got {input.dtype.name}; view_as_complex joins parts")
    input = transformable("istft", input)
    if input.ndim not in (2, 3) or 0 in input.shape:
        raise ArgumentError(
            f"istft: input has shape {input.shape}; want (frequencies, windows) or (batch, frequencies, windows)")
    half = input.shape[-2] != n_fft if onesided is None else onesided
    wanted = n_fft // 2 + 1 if half else n_fft
    if input.shape[-2] != wanted:
        raise ArgumentError(f"istft: input has {input.shape[-2]} frequencies; want {wanted} for n_fft {n_fft}")
    if return_complex and half:
        raise ArgumentError("istft: halves of spectra are those of real signals; want onesided=False for a complex one")
    hop, weights = _settings("istft", input, n_fft, hop_length, win_length, window)
    if hop > (n_fft if win_length is None else win_length):
        raise ArgumentError(f"istft: hop_length {hop} is more than win_length {win_length}; want no gaps between windows")
    rows = permute_value(input if input.ndim == 3 else reshape_value(input, (1, *input.shape)), (0, 2, 1))
    batch, count, _ = rows.shape
    scale = 1 if normalized else 2
    if return_complex:
        pieces = transformed(rows, (-1,), False, scale)
    else:  # a full spectrum counts as that of a real signal
        pieces = from_spectrum(slice_value(rows, 2, 0, n_fft // 2 + 1), (-1,), n_fft, False, scale)
    samples = n_fft + hop * (count - 1)
    at = Layout((batch, count, n_fft), (samples, hop, 1), 0)
    total = put_sums(pieces * weights, at, (batch, samples))
    squares = expand(weights * weights, (count, n_fft))
    share = put_sums(squares, Layout((count, n_fft), (hop, 1), 0), (samples,))
    start = n_fft // 2 if center else 0
    end = samples - start if length is None else min(start + length, samples)
    share = slice_value(share, 0, start, end)
    found = slice_value(total, 1, start, end) / share.graph.add("windows_reach", (share,), share.shape, share.dtype)
    if length is not None and end - start < length:
        found = pad_value(found, (0,), (length - (end - start),))
    return found if input.ndim == 3 else reshape_value(found, found.shape[1:])
