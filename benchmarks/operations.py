"""Single functions at three sizes each, beside torch's: a program is as slow as its slowest line.

Sizes are those of a layer's bias, of a small layer, and of a large one. Turns last long enough that neither library is measured
beside the other's waiting threads: see `compare`. They are a third of the rounds asked for, as there are many functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

import genesis
from benchmarks.measure import Limits, Result, Settings, averaged, compare
from benchmarks.operation_cases import CASES, Case, operand
from benchmarks.peers import compiled, eager, finish, torch

__all__ = ["CASES", "run"]

AVERAGE, WORST = Limits(compiled=0.5, eager=1.0), Limits(compiled=1.0, eager=1.5)
EXTENTS = {"small": 32, "middle": 256, "large": 1024}


def run(settings: Settings) -> list[Result]:
    """One Result for each function and size, then their averages by size."""
    few = replace(settings, rounds=-(-settings.rounds // 3))
    by_size = {size: [_one(case, size, few) for case in CASES] for size in EXTENTS}
    averages = [averaged(f"single functions, {size}, on average", found, AVERAGE) for size, found in by_size.items()]
    return [*chain(*by_size.values()), *averages]


def _one(case: Case, size: str, settings: Settings) -> Result:
    arrays = [operand(kind, number, settings.size(EXTENTS[size], 16)) for number, kind in enumerate(case.operands)]
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
