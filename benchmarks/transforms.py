"""Fourier transforms of one and two axes, single and in batches, beside torch's."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import genesis
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.peers import eager, finish, torch

__all__ = ["CASES", "Case", "run"]

MOST = 1 << 22  # numbers in an operand


class Case(NamedTuple):
    """The function `name` of `genesis.fft` and `torch.fft`, of an operand of that dtype; real numbers have that shape."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def title(self) -> str:
        return f"{self.name} of {' x '.join(map(str, self.shape))} {self.dtype}"


def _cases() -> list[Case]:
    lengths = [(n,) for n in (256, 1000, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)]
    batches = [(b, n) for b in (16, 1024) for n in (256, 1 << 10, 1 << 12, 1 << 16) if b * n <= MOST]
    squares = [(n, n) for n in (64, 256, 1024, 2048)]
    found = [Case("fft", shape, "complex64") for shape in lengths + batches]
    found += [Case(name, shape, dtype) for shape in ((1 << 10,), (1 << 16,), (1 << 20,), (16, 4096), (1024, 256), (1024, 1000))
              for name, dtype in (("ifft", "complex64"), ("rfft", "float32"), ("irfft", "complex64"))]
    found += [Case(name, shape, dtype) for shape in squares
              for name, dtype in (("fft2", "complex64"), ("rfft2", "float32"), ("irfft2", "complex64"))]
    found += [Case("fft", shape, "complex128") for shape in ((1 << 10,), (1 << 16,), (1 << 20,), (1024, 256))]
    return [*found, Case("rfft", (1024, 256), "float64"), Case("fft2", (1024, 1024), "complex128")]


CASES = _cases()


def run(settings: Settings) -> list[Result]:
    """One Result per transform, then one with the averages."""
    results = [_one(case, settings) for case in CASES]
    summary = Result("Fourier transforms, on average")
    for contestant in ("genesis", "genesis compiled"):
        ratios = [r.medians[contestant] / r.medians["torch eager"] for r in results if "torch eager" in r.medians]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            summary.bars.append(Bar(f"{contestant} / torch eager, at most 1", mean, mean <= 1))
    return [*results, summary]


def _one(case: Case, settings: Settings) -> Result:
    result = compare(case.title, {
        "genesis": _call(case, genesis, finish),
        "genesis compiled": _call(case, genesis, finish, genesis.compile),
        "torch eager": eager(lambda: _call(case, torch)),
    }, settings)
    result.no_slower_than("torch eager")
    return result


def _call(
    case: Case, library: Any, after: Callable[[], Any] = lambda: None, whole: Callable[[Any], Any] = lambda f: f
) -> Callable[[], Any]:
    x = library.tensor(_operand(case))
    transform = getattr(library.fft, case.name)
    function = whole(lambda x: transform(x))

    def call() -> Any:
        y = function(x)
        after()
        return y

    return call


def _operand(case: Case) -> np.ndarray:
    random, shape = np.random.default_rng(0), case.shape
    if case.name.startswith("irfft"):
        shape = (*shape[:-1], shape[-1] // 2 + 1)
    made = random.standard_normal(shape)
    return (made + 1j * random.standard_normal(shape) if case.dtype.startswith("complex") else made).astype(case.dtype)
