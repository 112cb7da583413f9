"""Copy elision: a product that is only copied elsewhere is computed there.

Before: stages in order. After: the same without such copies. That is safe where the copy reads the whole result, is its only
reader, and nothing else writes to its target (but for other parts of a `cat`). The result then needs no memory. Loops are
formed later, so that their tiles see the final layout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.kernel import KernelArg
from genesis.lower.stages import Matrix, Product, Stage, uses_of
from genesis.ops.layout import Layout


def elide_copies(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> list[Stage]:
    """The stages without copies of products that have no other reader."""
    moved: dict[int, Product] = {}
    copies: set[int] = set()
    for product, copy in _copied(nodes, stages, outputs):
        if (there := _computed_there(product, copy)) is not None:
            moved[product.node] = there
            copies.add(id(copy))
    result = [[moved.get(call.node, call) if isinstance(call, Product) else call for call in stage if id(call) not in copies]
              for stage in stages]
    return [stage for stage in result if stage]


def _copied(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> Iterator[tuple[Product, KernelCall]]:
    """Pairs of a product and the copy that is its only reader, where nothing else writes to the copy's target."""
    reads, writes = uses_of(stages)
    for call in [call for stage in stages for call in stage]:
        if isinstance(call, Product) and not call.summed and len(writes[call.node]) == 1 and call.node not in outputs:
            found = reads.get(call.node, ())
            if len(found) == 1 and isinstance(copy := found[0].call, KernelCall):
                target = copy.writes[0]
                if len(writes[target]) == 1 or nodes[target].op == "cat":
                    yield call, copy


def _computed_there(product: Product, copy: KernelCall) -> Product | None:
    """The product with its result at the target of `copy`; None if `copy` does more, or products cannot write that layout."""
    steps = _steps(copy)
    if steps is None:
        return None
    step, target, dtype = steps
    batch, a, b, c = _as_copied(product, step)
    m, n, _ = product.extents
    wanted = [*zip(batch, c.steps, strict=True), (m, c.layout.strides[-2]), (n, 1)]
    moved = [stride for one in wanted if (stride := _step(step, *one)) is not None]
    if numel(copy.extents) != numel(batch) * m * n or len(moved) < len(wanted):
        return None
    *outer, row, column = moved
    if column != 1 or row < n:  # products write whole rows
        return None
    there = Layout((m, n), (row, 1), target.extra // dtype.itemsize)
    return product._replace(a=a, b=b, c=Matrix(target.value, there, tuple(outer)), batch=batch)


def _steps(copy: KernelCall) -> tuple[dict[tuple[int, int], int], KernelArg, DType] | None:
    """(extent, stride) in a copy's source -> its stride in the target; the word of the target's start, and the dtype. None for
    a call that is no plain copy."""
    kernel = copy.kernel
    moves = [i for i in kernel.instructions if i.name != "clone"]
    if [i.name for i in moves] != ["load", "store"]:
        return None
    (read, to_read), (write, to_write) = ((i.access, i.dtype) for i in moves)
    assert read is not None and write is not None
    if to_read is not to_write or kernel.words[read.pointer].extra:
        return None
    step = dict(zip(zip(copy.extents, kernel.strides(read), strict=True), kernel.strides(write), strict=True))
    return step, kernel.words[write.pointer], to_read


def _step(steps: Mapping[tuple[int, int], int], extent: int, stride: int) -> int | None:
    """The target stride of (extent, stride) in a copy with these axes: that of one of them, or of a part of one."""
    return next((there * (stride // here) for (count, here), there in steps.items()
                 if here and stride % here == 0 and extent * stride <= count * here), None)


def _as_copied(product: Product, steps: Collection[tuple[int, int]]) -> tuple[tuple[int, ...], Matrix, Matrix, Matrix]:
    """The batch and the matrices of a product, with its batch axis split in two where the copy's axes split it."""
    batch, matrices = product.batch, (product.a, product.b, product.c)
    if len(batch) == 1:
        inner = next((extent for extent, stride in steps if stride == product.c.steps[0] and extent < batch[0]), None)
        if inner is not None:
            batch = (batch[0] // inner, inner)
            matrices = tuple(x._replace(steps=(x.steps[0] * inner, x.steps[0])) for x in matrices)  # type: ignore[assignment]
    return batch, *matrices
