"""The calls of a schedule: kernels, matrix products, host calls and loops over tiles; and the cost model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.group import FULL
from genesis.lower.index_map import PLAIN, AxisGroups
from genesis.lower.kernel import Kernel, of_code
from genesis.lower.target import Target
from genesis.ops.layout import Layout
from genesis.ops.loop_body import multiplications
from genesis.ops.registry import PRIMITIVES


class Matrix(NamedTuple):
    """A matrix or a batch of them: its value, its layout there, the strides of the batch's axes, and how many of the layout's
    last axes make up rows and columns (see `index_map.py`)."""

    value: int
    layout: Layout
    steps: tuple[int, ...]
    axis_groups: AxisGroups = PLAIN


class Product(NamedTuple):
    """A matrix product c = a @ b of m x k by k x n matrices, for each of a batch.

    `only` restricts the product to a triangle; the rest is known to be zero (see `ops/contraction.py`). The kernels of the
    `epilogue` run on each block of the result's rows once it is computed (see `fuse_epilogues.py`).
    """

    a: Matrix
    b: Matrix
    c: Matrix
    batch: tuple[int, ...]
    extents: tuple[int, int, int]  # m, n, k
    only: str = ""
    epilogue: tuple[KernelCall, ...] = ()
    pairs: bool = False  # of bfloat16 operands, multiplied two terms at a time

    @property
    def node(self) -> int:
        return self.c.value

    @property
    def is_plain(self) -> bool:
        """Whether rows, columns and terms are each one axis of memory."""
        return self.a.axis_groups == self.b.axis_groups == PLAIN

    @property
    def flops(self) -> int:
        """Two for each multiplication within `only`."""
        extents = dict(zip("mnk", self.extents, strict=True))
        counted = 1
        if self.only:
            low, high = (extents.pop(axis) for axis in self.only.split("<="))
            below = min(low, high)
            counted = below * (below + 1) // 2 + (high - below) * low
        return 2 * numel(self.batch) * counted * numel(extents.values())

    @property
    def summed(self) -> bool:
        """Whether matrices along an axis of the batch accumulate into one result."""
        return any(extent > 1 and not step for extent, step in zip(self.batch, self.c.steps, strict=True))

    @property
    def results(self) -> int:
        """The number of result matrices of the batch, which accumulates into them."""
        return numel(extent for extent, step in zip(self.batch, self.c.steps, strict=True) if step)

    def resized(self, axis: str, extent: int) -> Product:
        """The product with another number of rows, columns or terms ("m", "n", "k"), of plain matrices."""
        m, n, k = (dict(zip("mnk", self.extents, strict=True)) | {axis: extent}).values()
        a, b, c = [x._replace(layout=x.layout._replace(shape=(*x.layout.shape[:-2], *shape)))
                   for x, shape in ((self.a, (m, k)), (self.b, (k, n)), (self.c, (m, n)))]
        return self._replace(a=a, b=b, c=c, extents=(m, n, k))

    @property
    def reads(self) -> tuple[int, ...]:
        if not self.epilogue:
            return self.a.value, self.b.value
        here = self.writes
        return (self.a.value, self.b.value, *(v for call in self.epilogue for v in call.reads if v not in here))

    @property
    def writes(self) -> tuple[int, ...]:
        return (self.node, *(v for call in self.epilogue for v in call.writes))


class HostCall(NamedTuple):
    """An operation outside the kernel IR, computed by a native function or by its NumPy reference.

    A collective may be two calls: phase "start", after which calls that touch other memory may run, and phase "wait" (see
    `overlap_collectives.py`). A call without Python does not fail.
    """

    node: int
    operands: tuple[tuple[int, Layout], ...]
    phase: str = ""
    fails: bool = True

    @property
    def reads(self) -> tuple[int, ...]:
        return tuple(base for base, _ in self.operands)

    @property
    def writes(self) -> tuple[int, ...]:
        return (self.node,)


class Loop(NamedTuple):
    """Calls that run in order on each tile of their leading axes; workers take tiles in parallel.

    `points` is the product of the leading axes; a tile has `tile` of them, or the rest of a stretch of `stretch`. Values in
    `private` are used within the loop alone, and have one tile per worker. Sums over the tiles have `partials` partial sums,
    each over consecutive tiles; then private values have one tile per partial sum.
    """

    calls: tuple[KernelCall | Product, ...]
    points: int
    tile: int
    private: tuple[int, ...]
    stretch: int
    partials: int = 0

    @property
    def sums(self) -> tuple[int, ...]:
        """The values that accumulate over the tiles: in partial sums, which are then combined."""
        return tuple(call.node for call in self.calls if isinstance(call, Product) and call.summed)

    @property
    def tiles(self) -> int:
        return self.points // self.stretch * -(-self.stretch // self.tile)

    def spans(self) -> Iterator[tuple[int, int]]:
        """The first point of each tile, and the end."""
        for start in range(0, self.points, self.stretch):
            end = start + self.stretch
            yield from ((first, min(first + self.tile, end)) for first in range(start, end, self.tile))

    def tile_bytes(self, nbytes: int) -> int:
        """The bytes of a tile of a value."""
        return nbytes // self.points * self.tile

    @property
    def reads(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(v for call in self.calls for v in call.reads if v not in self.private))

    @property
    def writes(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(v for call in self.calls for v in call.writes if v not in self.private))

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(n for call in self.calls if isinstance(call, KernelCall) for n in call.nodes)


Call = KernelCall | Product | HostCall | Loop
Stage = list[Call]  # of one kind, which may run in parallel


class Use(NamedTuple):
    """A use of a value: the call, its number among all calls, and its stage."""

    stage: int
    number: int
    call: Call


def uses_of(stages: Sequence[Stage]) -> tuple[dict[int, list[Use]], dict[int, list[Use]]]:
    """Value -> the calls that read it, and value -> those that write it, in order."""
    found: tuple[dict[int, list[Use]], dict[int, list[Use]]] = {}, {}
    calls = ((number, call) for number, stage in enumerate(stages) for call in stage)
    for number, (stage, call) in enumerate(calls):
        for uses, values in zip(found, (call.reads, call.writes), strict=True):
            for value in values:
                uses.setdefault(value, []).append(Use(stage, number, call))
    return found


def parts(call: Call) -> tuple[KernelCall | Product | HostCall, ...]:
    """The calls of a loop, a product and its epilogue, or the call itself."""
    if isinstance(call, Product) and call.epilogue:
        return (call._replace(epilogue=()), *call.epilogue)
    return call.calls if isinstance(call, Loop) else (call,)


def may_fail(call: Call) -> bool:
    """Whether a call may fail, because an index is out of range or Python raises."""
    return any(
        part.fails if isinstance(part, HostCall) else isinstance(part, KernelCall) and _has_fault(part.kernel)
        for part in parts(call))


@of_code
def _has_fault(kernel: Kernel) -> bool:
    return any(word.kind == "fault" for word in kernel.words)


# ---- the cost model ----
PARALLEL_COST = 100_000  # units of work, about a simple operation on an element each: waking the team takes 2 us


class Estimate(NamedTuple):
    """Bytes to and from memory, floating-point operations (an exponential counts as several), and seconds."""

    nbytes: int
    flops: int
    seconds: float


def estimate(nodes: Sequence[Node], stage: Stage, target: Target) -> Estimate:
    """The cost of a stage on a machine. Only the bytes of a call into Python are known."""
    nbytes = flops = multiplied = 0
    for call in stage:
        private = call.private if isinstance(call, Loop) else ()
        for part in parts(call):
            if isinstance(part, KernelCall):
                nbytes += _bytes_of(part, private)
                flops += _operations_of(part)
                continue
            nbytes += sum(nodes[value].nbytes for value in (*part.reads, *part.writes) if value not in private)
            multiplied += part.flops if isinstance(part, Product) else 2 * multiplications(nodes, nodes[part.node])
    workers = target.threads if flops + multiplied / 3 > PARALLEL_COST else 1
    machine = target.at_work(workers)
    moving = nbytes / (machine.cache if nbytes <= machine.cached else machine.memory)
    computing = multiplied / machine.products + flops / machine.operations
    seconds = machine.launch + machine.team * (workers > 1) + max(moving, computing)
    return Estimate(nbytes, flops + multiplied, seconds)


def _bytes_of(call: KernelCall, private: Sequence[int]) -> int:
    """The bytes that a kernel moves: each element counts once, as caches serve further accesses."""
    accesses = [(call.kernel.words[i.access.pointer], i.access) for i in call.kernel.instructions if i.access is not None]
    sizes = {(word, access.strides): access.dtype.itemsize for word, access in accesses
             if word.kind == "pointer" and word.value not in private}
    return sum(size * numel(call.extents[axis] for axis, stride in enumerate(strides) if stride)
               for (_, strides), size in sizes.items())


def _operations_of(call: KernelCall) -> int:
    """Simple operations: each instruction's cost at every point of its level."""
    points = numel(call.extents)
    rows = numel(extent for extent, (_, reduced) in zip(call.extents, call.kernel.axes, strict=True) if not reduced)
    return sum(
        PRIMITIVES[i.name].cost * (points if i.level == FULL or "over" in dict(i.attrs) else rows)
        for i in call.kernel.instructions if i.name in PRIMITIVES
    )
