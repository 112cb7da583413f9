"""Fourier transforms of one and two axes, single and in batches, beside torch's."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import genesis
from benchmarks.measure import Bar, Result, Settings, compare
from benchmarks.peers import eager, finish, torch

__all__ = ["CASES", "Case", "run"]


class Case(NamedTuple):
    """The function `name` of `genesis.fft` and `torch.fft`, of an operand of that dtype; real numbers have that shape."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def title(self) -> str:
        return f"{self.name} of {' x '.join(map(str, self.shape))} {self.dtype}"


def _cases() -> list[Case]:
    one = [(1 << bits,) for bits in range(8, 23)]
    several = [(16, n) for n in (256, 512, 1024, 1 << 12, 1 << 14, 1 << 16)] + [(1024, n) for n in (256, 512, 1024, 1 << 12)]
    squares = [(n, n) for n in (64, 128, 256, 512, 1024, 2048)]
    longer = [(1024,), (1 << 16,), (1 << 20,), (1024, 256), (1024, 1024)]
    found = [case for shape in one + several for case in _kinds(shape, "", "float32")]
    found += [case for shape in squares for case in _kinds(shape, "2", "float32")]
    return found + [case for shape in longer for case in _kinds(shape, "", "float64")]


def _kinds(shape: tuple[int, ...], axes: str, dtype: str) -> Iterator[Case]:
    """Complex and real transforms, forth and back; `dtype` is that of the numbers' parts."""
    for kind in ("fft", "ifft", "rfft", "irfft"):
        yield Case(kind + axes, shape, dtype if kind == "rfft" else {"float32": "complex64", "float64": "complex128"}[dtype])


CASES = _cases()


def run(settings: Settings) -> list[Result]:
    """One Result per transform, then one with their averages, and how many are slower."""
    results = [_one(case, settings) for case in CASES]
    summary = Result("Fourier transforms, on average")
    for contestant in ("genesis", "genesis compiled"):
        ratios = [r.medians[contestant] / r.medians["torch eager"] for r in results if "torch eager" in r.medians]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            summary.bars.append(Bar(f"{contestant} / torch eager, at most 1", mean, mean <= 1))
            slower = sum(ratio > 1 for ratio in ratios)
            summary.bars.append(Bar(f"{contestant}: transforms that are slower, none", slower, slower == 0))
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
