"""Elementwise rows and reductions over operands of every layout: 0-d, empty, transposed, stepped, expanded, broadcast."""

import numpy as np
import pytest
import torch

import genesis
from genesis.ops.registry import OPERATIONS
from tests.devices import tensor
from tests.ops.checks import Sample, run
from tests.ops.samples import INTERNAL, is_elementwise, values
from tests.tolerances import assert_close, to_torch

pytestmark = pytest.mark.device
LAYOUTS = {
    "0-d": lambda x: x[0, 1],
    "empty": lambda x: x[:0],
    "transposed": lambda x: x.T,
    "stepped": lambda x: x[1::2, ::3],
    "offset": lambda x: x[1:, 2:],
    "expanded": lambda x: x[:1].expand(5, 7),
    "expanded 0-d": lambda x: x[0, 0].expand(2, 3),
    "one column": lambda x: x[:, 2:3],
    "three axes": lambda x: x[:4, :6].reshape(2, 2, 6).permute(2, 0, 1),
}
PAIRS = {
    "column and row": (lambda x: x[:, :1], lambda x: x[:1]),
    "matrix and row": (lambda x: x, lambda x: x[1]),
    "0-d and matrix": (lambda x: x[0, 0], lambda x: x.T),
    "transposed and stepped": (lambda x: x[:3, :3].T, lambda x: x[::2, :3]),
    "empty and row": (lambda x: x[:0], lambda x: x[0]),
    "three axes": (lambda x: x[:2].unsqueeze(1), lambda x: x.unsqueeze(0)),
}
# For every row, elements beside others and one for all; what is left does not depend on the row.
FEW = "0-d", "empty", "transposed", "column and row", "0-d and matrix"
THOROUGH = {"exp", "neg", "isnan", "relu", "sub", "pow", "lt"}
REDUCED = ("sum", "mean", "amax", "argmin", "all", "var", "logsumexp", "softmax")


def operand(name, seed):
    array = values(5, 7, seed=seed).astype(np.float32)
    return (array * 3).astype(np.int64) if name.startswith("bitwise") else array


def arrange(name, layout, library, seed=0):
    make = tensor if library is genesis else to_torch
    return layout(make(operand(name, seed)))


@pytest.mark.parametrize("name", sorted(n for n in set(OPERATIONS) - INTERNAL if is_elementwise(n)))
def test_elementwise_rows_take_any_layout(name):
    unary = len(OPERATIONS[name].operands) == 1
    cases = {note: (layout,) for note, layout in LAYOUTS.items()} if unary else PAIRS
    cases = cases if name in THOROUGH else {note: cases[note] for note in FEW if note in cases}
    if name.startswith("bitwise") and name.endswith("shift"):
        pytest.skip("shifts by negative counts are undefined")
    results = {}
    for note, layouts in cases.items():
        results[note] = [
            run(name, Sample(tuple(arrange(name, a, library, seed) for seed, a in enumerate(layouts))), None, library)
            for library in (genesis, torch)
        ]
    for note, (ours, theirs) in results.items():
        assert_close(ours, theirs, f"{name} {note}")


@pytest.mark.filterwarnings("ignore:var")
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_take_any_layout(name):
    results = {}
    for note in ("transposed", "stepped", "offset", "expanded", "one column", "three axes"):
        results[note] = [
            run(name, Sample((arrange(name, LAYOUTS[note], library),), {"dim": dim}), None, library)
            for dim in (0, -1) for library in (genesis, torch)
        ]
    for note, found in results.items():
        for ours, theirs in zip(found[::2], found[1::2], strict=True):
            assert_close(ours, theirs, f"{name} {note}")
