"""Forty single functions at three sizes each, beside torch's: a program is as slow as its slowest line.

The same lines serve genesis and torch. Sizes are those of a layer's bias, of a small layer, and of a large one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import genesis
from benchmarks.measure import Limits, Result, Settings, averaged, compare
from benchmarks.peers import compiled, eager, finish, torch

__all__ = ["CASES", "run"]

AVERAGE, WORST = Limits(compiled=0.5, eager=1.0), Limits(compiled=1.0, eager=1.5)
EXTENTS = {"small": 32, "middle": 256, "large": 1024}


class Case(NamedTuple):
    """A function of tensors: `call(library, functional, *tensors)`; its operands, a letter each, see `_operand`."""

    title: str
    operands: str
    call: Callable[..., Any]


CASES = [
    Case("a * b + c", "mmm", lambda lib, F, a, b, c: a * b + c),
    Case("abs() ** 1.7", "m", lambda lib, F, a: a.abs() ** 1.7),
    Case("sin * exp", "m", lambda lib, F, a: a.sin() * a.exp()),
    Case("sigmoid", "m", lambda lib, F, a: a.sigmoid()),
    Case("where", "mm", lambda lib, F, a, b: lib.where(a > b, a, b)),
    Case("sum of all", "m", lambda lib, F, a: a.sum()),
    Case("sum of columns", "m", lambda lib, F, a: a.sum(0)),
    Case("variance of rows", "m", lambda lib, F, a: a.var(1)),
    Case("argmax of rows", "m", lambda lib, F, a: a.argmax(1)),
    Case("cumsum", "m", lambda lib, F, a: a.cumsum(1)),
    Case("softmax", "m", lambda lib, F, a: F.softmax(a, -1)),
    Case("layer_norm", "mr", lambda lib, F, a, w: F.layer_norm(a, w.shape, w)),
    Case("cross_entropy", "ml", lambda lib, F, a, labels: F.cross_entropy(a, labels)),
    Case("a @ b", "mm", lambda lib, F, a, b: a @ b),
    Case("a.t() @ b", "mm", lambda lib, F, a, b: a.t() @ b),
    Case("a @ row", "mr", lambda lib, F, a, row: a @ row),
    Case("batched a @ b.mT", "bb", lambda lib, F, a, b: a @ b.mT),
    Case("linear, 20 rows", "tm", lambda lib, F, x, w: F.linear(x, w)),
    Case("attention, causal", "bbb", lambda lib, F, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    Case("attention of one query", "qbb", lambda lib, F, q, k, v: F.scaled_dot_product_attention(q, k, v)),
    Case("conv2d 3x3", "iw", lambda lib, F, x, w: F.conv2d(x, w, padding=1)),
    Case("conv2d 3x3, stride 2", "iw", lambda lib, F, x, w: F.conv2d(x, w, stride=2, padding=1)),
    Case("max_pool2d", "i", lambda lib, F, x: F.max_pool2d(x, 3, 2, 1)),
    Case("interpolate", "i", lambda lib, F, x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    Case("embedding", "lm", lambda lib, F, labels, w: F.embedding(labels, w)),
    Case("a[indices]", "ml", lambda lib, F, a, labels: a[labels]),
    Case("gather", "mL", lambda lib, F, a, indices: a.gather(1, indices)),
    Case("index_add", "mml", lambda lib, F, a, b, labels: a.index_add(0, labels, b)),
    Case("scatter_add", "mLm", lambda lib, F, a, indices, b: a.scatter_add(1, indices, b)),
    Case("one_hot", "l", lambda lib, F, labels: F.one_hot(labels)),
    Case("a.t().contiguous()", "m", lambda lib, F, a: a.t().contiguous()),
    Case("cat", "mm", lambda lib, F, a, b: lib.cat((a, b), 1)),
    Case("sort", "m", lambda lib, F, a: a.sort(1)),
    Case("topk", "m", lambda lib, F, a: a.topk(8, 1)),
    Case("median", "m", lambda lib, F, a: a.median(1)),
    Case("nonzero", "m", lambda lib, F, a: (a > 1).nonzero()),
    Case("cdist", "mm", lambda lib, F, a, b: lib.cdist(a, b)),
    Case("rfft", "m", lambda lib, F, a: lib.fft.rfft(a)),
    Case("solve", "pm", lambda lib, F, a, b: lib.linalg.solve(a, b)),
    Case("cholesky", "p", lambda lib, F, a: lib.linalg.cholesky(a)),
    Case("eigvalsh", "s", lambda lib, F, a: lib.linalg.eigvalsh(a)),
]


def run(settings: Settings) -> list[Result]:
    """One Result for each function and size, then their averages."""
    results = [_one(case, size, settings) for case in CASES for size in EXTENTS]
    return [*results, averaged("single functions, on average", results, AVERAGE)]


def _one(case: Case, size: str, settings: Settings) -> Result:
    arrays = [_operand(kind, number, settings.size(EXTENTS[size], 16)) for number, kind in enumerate(case.operands)]
    build = partial(_call, case, arrays)
    result = compare(f"{case.title}, {size}", {
        "genesis": build(genesis),
        "genesis compiled": build(genesis, genesis.compile),
        "torch eager": eager(partial(build, torch)),
        "torch.compile": compiled(lambda: build(torch, torch.compile)),
    }, settings)
    result.hold_to(WORST)
    return result


def _call(case: Case, arrays: list[np.ndarray], library: Any, whole: Callable[[Any], Any] = lambda function: function) -> Any:
    tensors = [library.tensor(array) for array in arrays]
    function = whole(lambda *tensors: case.call(library, library.nn.functional, *tensors))

    def call() -> Any:
        y = function(*tensors)
        if library is genesis:
            finish()
        return y

    return call


def _operand(kind: str, number: int, extent: int) -> np.ndarray:
    """m: a square matrix; r: a row of it; t: twenty rows; l: a label for each row; L: an index for each element; p: positive
    definite; s: symmetric; b: 8 heads of `extent` rows of 64; q: a row for each of those; i: images; w: a weight for them."""
    random, channels = np.random.default_rng(number), max(extent // 16, 4)
    if kind in "lL":
        return random.integers(0, extent, (extent,) if kind == "l" else (extent, extent))
    shapes = {
        "m": (extent, extent), "r": (extent,), "t": (20, extent), "b": (1, 8, extent, 64), "q": (1, 8, 1, 64),
        "i": (4, channels, 32, 32), "w": (channels, channels, 3, 3),
    }
    array = random.normal(size=shapes.get(kind, (extent, extent))).astype(np.float32)
    if kind == "s":
        return array + array.T
    return array @ array.T / np.float32(extent) + np.eye(extent, dtype=np.float32) if kind == "p" else array
