"""Windows of signals, and frequencies moved to the middle, against torch's."""

import numpy as np
import pytest
import torch

import genesis
from tests.tolerances import assert_close

SETTINGS = {
    "bartlett": {}, "blackman": {}, "cosine": {}, "exponential": {"tau": 2.5}, "gaussian": {"std": 1.5},
    "general_cosine": {"a": [0.4, 0.3, 0.2, 0.1]}, "general_hamming": {"alpha": 0.6}, "hamming": {}, "hann": {},
    "kaiser": {"beta": 5.0}, "nuttall": {},
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_windows_are_torchs(name, dtype):
    for length in (0, 1, 2, 5, 8):
        for sym in (True, False):
            found = [getattr(library.signal.windows, name)(length, sym=sym, dtype=getattr(library, dtype), **SETTINGS[name])
                     for library in (genesis, torch)]
            assert_close(*found, note=f"{name} {length} {sym}")
    assert getattr(genesis.signal.windows, name)(3, requires_grad=True, **SETTINGS[name]).requires_grad


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 0)])
@pytest.mark.parametrize("dim", [None, -1, (0,)])
def test_frequencies_are_moved_as_torchs(shape, dim):
    x = np.random.default_rng(0).normal(size=shape)
    for name in ("fftshift", "ifftshift"):
        found = [getattr(library.fft, name)(library.tensor(x), dim) for library in (genesis, torch)]
        assert_close(*found)
    back = genesis.fft.ifftshift(genesis.fft.fftshift(genesis.tensor(x), dim), dim)
    assert_close(back, x)


@pytest.mark.parametrize(("build", "error"), [
    (lambda w: w.hann(-1), ValueError), (lambda w: w.hann(3, dtype=genesis.int64), ValueError),
    (lambda w: w.exponential(3, center=1.0), ValueError), (lambda w: w.gaussian(3, std=0), ValueError),
    (lambda w: w.kaiser(3, beta=-1), ValueError), (lambda w: w.general_cosine(3, a=[]), ValueError),
])
def test_settings_that_make_no_sense_are_refused(build, error):
    with pytest.raises(error):
        build(genesis.signal.windows)
