"""What pending tensors are computed from, lowered for CUDA; and its kernels run one by one on the simulated device."""

import struct

import numpy as np

from genesis.codegen.cuda.emit import emit_finish, emit_kernel
from genesis.codegen.cuda.geometry import finishing, launch, team_of
from genesis.codegen.cuda.program import target_of
from genesis.codegen.cuda.signature import words_of
from genesis.codegen.cuda.simulate import run
from genesis.ir.dtypes import float64, int64
from genesis.lower import lower
from genesis.lower.build import KernelCall
from genesis.ops.reference import evaluate_all
from genesis.tensor.dispatch import array_of
from tests.tolerances import TOLERANCES

MULTIPROCESSORS = 2
GARBAGE = 0x7FF8DEAD7FF8DEAD  # what memory holds before anything is written to it: NaNs


def lowered(trace, arrays):
    """The program that computes pending arrays of a trace."""
    outputs = tuple(dict.fromkeys(array.index for array in arrays))
    kinds = [float64 if isinstance(value, float) else int64 for value in trace.scalars]
    return lower(trace.nodes, outputs, target_of((9, 0)), kinds)


def program_of(*tensors):
    """The trace that pending tensors are values of, and the program that computes them."""
    arrays = [array for array in map(array_of, tensors) if array.memory is None]
    return arrays[0].trace, lowered(arrays[0].trace, arrays)


def calls_of(program):
    """The kernel calls of a program, in order."""
    return [call for stage in program.schedule.stages for call in stage if isinstance(call, KernelCall)]


def check(*tensors, teams=None, scale=4.0, multiprocessors=MULTIPROCESSORS):
    """Every value that a kernel writes for pending tensors is that of the NumPy reference, within `scale` times the tolerance.

    Kernels run by the `teams` that are called for, or, if it is given, by those. Returns their texts.
    """
    trace, program = program_of(*tensors)
    sources = []
    for value, ours, theirs, source in results(trace, program, teams, multiprocessors):
        sources.append(source)
        dtype = program.nodes[value].dtype
        relative, absolute = TOLERANCES.get(dtype.name, (0, 0))
        if relative:
            ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        np.testing.assert_allclose(ours, theirs, scale * relative, scale * absolute, equal_nan=True, err_msg=source)
    return sources


def results(trace, program, teams=None, multiprocessors=MULTIPROCESSORS):
    """Each value that a kernel writes, what it is on the device and what by the reference, and the kernel's text."""
    nodes, scalars = program.nodes, trace.scalars
    written = {value for stage in program.schedule.stages for call in stage for value in call.writes}
    numbers = [index for index, node in enumerate(trace.nodes) if node.op == "input"]
    inputs = {i: trace.inputs[numbers.index(program.origins[i])].memory for i in program.inputs}
    given = {i: memory.numpy(nodes[i].dtype) for i, memory in inputs.items()}
    expected = evaluate_all(nodes, written, given, scalars)
    device = Device(nodes, {i: memory.pointer for i, memory in inputs.items()}, scalars, multiprocessors)
    sources = {}
    for stage in program.schedule.stages:
        for call in stage:
            if isinstance(call, KernelCall):
                sources |= dict.fromkeys(call.writes, device.launch(call, teams))
            else:  # a matrix product, or what the host computes
                for value in call.writes:
                    device.array(value)[:] = np.ravel(expected[value])
    for value, source in sources.items():
        yield value, device.array(value), np.ravel(expected[value]), source


class Device:
    """Memory for each value, and launches by the book."""

    def __init__(self, nodes, addresses, scalars, multiprocessors=MULTIPROCESSORS):
        self.multiprocessors = multiprocessors
        self.nodes, self.addresses, self.arrays = nodes, addresses, {}
        self.scalars = np.array([*map(_bits, scalars), 0], np.int64)
        self.fault = np.zeros(4, np.int64)

    def array(self, value):
        """The memory of a value, flat."""
        node = self.nodes[value]
        if value not in self.arrays:
            self.arrays[value] = np.full(node.numel + 1, GARBAGE, np.int64).view(node.dtype.numpy)[: node.numel]
        return self.arrays[value]

    def launch(self, call, teams=None):
        """Run a call; returns its kernel's text."""
        kernel = call.kernel
        team = teams or team_of(kernel, call.extents, self.multiprocessors)
        grid = launch(kernel, call.extents, team, self.multiprocessors)
        partials = np.full(grid.partial_bytes // 8 + 1, GARBAGE, np.int64)
        special = {"partials": partials.ctypes.data, "shares": grid.shares}
        main = emit_kernel(kernel, team)
        run(main, grid.blocks, grid.threads, [self.word(words_of(kernel)[w], special) for w in main.words])
        if grid.partial_bytes:
            end, join = emit_finish(kernel, team), finishing(kernel, call.extents, team, self.multiprocessors)
            run(end, join.blocks, join.threads, [self.word(words_of(kernel)[w], special) for w in end.words])
        return main.source

    def word(self, word, special):
        """What fills a word."""
        if word.kind == "pointer":
            home = self.addresses[word.value] if word.value in self.addresses else self.array(word.value).ctypes.data
            return home + word.extra
        if word.kind == "scalar":
            return self.scalars.ctypes.data + 8 * word.value
        return self.fault.ctypes.data if word.kind == "fault" else special.get(word.kind, word.value)


def _bits(number):
    return struct.unpack("q", struct.pack("d" if isinstance(number, float) else "q", number))[0]
