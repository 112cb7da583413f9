"""Every operation of tensors alone, in the dtypes that the command line names, on rows around the widths of vectors.

What differs from the rows' references is printed, and what compiled kernels call beside the functions of the process. A
program, for a kernel that calls what is not linked ends the process. All operations of one dtype and size are one flush.
In dtypes that are computed in the same registers, operations take turns. For another processor than this one single elements
are compiled in 16 bits alone: they do not depend on the width of vectors, but conversions of these may be a library's.
"""

import os
import re
import sys

import numpy as np

import genesis
from genesis.ir.dtypes import DTYPES, DType
from genesis.ops.registry import OPERATIONS
from genesis.runtime import machine_code
from tests.ops.samples import INTERNAL, samples_of
from tests.tolerances import assert_close

SIZES = (33, 15, 1, None)  # several vectors and a rest, each width once, one, and 0-d
TURNS = ("float16", "bfloat16"), ("uint8", "int8", "int16", "int32")
RUNTIME = re.compile(rb"__(?:trunc|extend|fix|float|gnu)\w+")  # conversions that compilers take from libraries of their own
LOOSE = {"float32": 4.0, "float64": 4.0}  # one sum after another: a norm of differences, a variance


def operations():
    """The name and the number of tensors of each operation that takes nothing else."""
    for name in sorted(name for name in set(OPERATIONS) - INTERNAL if hasattr(genesis, name)):
        for sample in samples_of(name, DTYPES["float64"]):
            tensors = [a for a in sample.arguments if isinstance(a, np.ndarray) and a.dtype == np.float64]
            alike = len({a.shape for a in tensors}) == 1
            if not sample.keywords and len(tensors) == len(sample.arguments) and alike:
                yield name, len(tensors)
                break


def rows(dtype: DType, count: int) -> np.ndarray:
    random = np.random.default_rng(0)
    if dtype.is_floating_point:
        return random.uniform(0.05, 0.95, (count, 33)).astype(dtype.numpy)
    return random.integers(0 if dtype.category == 0 else 1, 2 if dtype.category == 0 else 6, (count, 33)).astype(dtype.numpy)


def results(dtype: DType, size: int | None) -> dict[str, object]:
    """The results of each operation that takes the dtype and the size."""
    operands = [genesis.from_numpy(np.array(row[0] if size is None else row[:size])) for row in rows(dtype, 3)]
    found = {}
    turns = next((names for names in TURNS if dtype.name in names), (dtype.name,))
    for name, count in CALLS[turns.index(dtype.name) :: len(turns)]:
        try:
            result = getattr(genesis, name)(*operands[:count])
        except (TypeError, ValueError, RuntimeError, IndexError):  # not of this dtype, or not of rows
            continue
        found[name] = tuple(result) if isinstance(result, tuple) else result
    found |= {f"to {other}": operands[0].to(DTYPES[other]) for other in DTYPES}
    if size is None:
        return found
    # Truth values, whose lanes are those of the numbers they come from: four share a byte of eight bits.
    hit = operands[0] == operands[0][-1:]
    return found | {"some": hit.any(), "every": (hit | ~hit).all(), "places": genesis.nonzero_static(hit * operands[0], size=3)}


def differences(dtype: DType, size: int | None) -> list[str]:
    compiled = results(dtype, size)
    with genesis.eager():
        expected = results(dtype, size)
    found = [f"{name}: refused in one mode alone" for name in compiled.keys() ^ expected.keys()]
    for name in compiled.keys() & expected.keys():
        try:
            assert_close(compiled[name], expected[name], name, LOOSE.get(dtype.name, 1.0))
        except AssertionError as problem:
            found.append(str(problem))
    return [f"{dtype.name}, {size} elements, {problem}" for problem in found]


def report_calls(object_code: bytes, symbol: str, load=machine_code.load) -> int:
    for name in RUNTIME.findall(object_code):
        print(f"{symbol} calls {name.decode()}")
    return load(object_code, symbol)


CALLS = [*operations()]

if __name__ == "__main__":
    machine_code.load = report_calls
    for name in sys.argv[1:]:
        for size in SIZES if name in TURNS[0] or "GENESIS_TARGET" not in os.environ else SIZES[:2]:
            for line in differences(DTYPES[name], size):
                print(line)
    print(f"{len(CALLS)} operations for {machine_code.target()[1]}")
