"""Copy elision: a product whose result is only copied to another place is computed there.

Before: stages in order. After: the same without such copies, which nobody else notices: the copy reads the whole result, is
its only reader, and nothing else writes where it writes (but for other parts of a `cat`). The result needs no memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Call, Matrix, Product, Stage
from genesis.ops.layout import Layout


def elide_copies(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> list[Stage]:
    """The stages without copies of products that nobody else reads."""
    calls = [call for stage in stages for call in stage]
    writers = Counter(value for call in calls for value in call.writes)
    readers: dict[int, list[Call]] = {}
    for call in calls:
        for value in call.reads:
            readers.setdefault(value, []).append(call)
    moved: dict[int, Product] = {}
    copies: set[int] = set()
    for call in calls:
        copy, *others = readers.get(call.node, [None]) if isinstance(call, Product) else [None]
        if not isinstance(call, Product) or not isinstance(copy, KernelCall) or others or call.summed or call.node in outputs:
            continue
        (target, *_) = copy.writes
        there = _computed_there(call, copy) if writers[target] == 1 or nodes[target].op == "cat" else None
        if there is not None:
            moved[call.node] = there
            copies.add(id(copy))
    result = [[moved.get(call.node, call) if isinstance(call, Product) else call for call in stage if id(call) not in copies]
              for stage in stages]
    return [stage for stage in result if stage]


def _computed_there(product: Product, copy: KernelCall) -> Product | None:
    """The product with its result where `copy`, which does nothing else, would bring it; None if it cannot lie there."""
    kernel = copy.kernel
    moves = [i for i in kernel.instructions if i.name != "clone"]
    if [i.name for i in moves] != ["load", "store"]:
        return None
    (read, to_read), (write, to_write) = ((i.access, i.dtype) for i in moves)
    assert read is not None and write is not None
    if to_read is not to_write or kernel.words[read.pointer].extra:
        return None
    # What a step from one element to the next, so many times, in the result is in the copy.
    step = dict(zip(zip(copy.extents, kernel.strides(read), strict=True), kernel.strides(write), strict=True))
    batch, a, b, c = _as_copied(product, step)
    m, n, _ = product.extents
    wanted = [*zip(batch, c.steps, strict=True), (m, c.layout.strides[-2]), (n, 1)]
    moved = [stride for one in wanted if (stride := _step(step, *one)) is not None]
    if numel(copy.extents) != numel(batch) * m * n or len(moved) < len(wanted):
        return None
    *outer, row, column = moved
    if column != 1 or row < n:  # products write whole rows
        return None
    target = kernel.words[write.pointer]
    there = Layout((m, n), (row, 1), target.extra // to_read.itemsize)
    return product._replace(a=a, b=b, c=Matrix(target.value, there, tuple(outer)), batch=batch)


def _step(steps: Mapping[tuple[int, int], int], extent: int, stride: int) -> int | None:
    """What a step of `stride`, taken so often, is in a copy with these axes: of one of them, or of a part of one."""
    return next((there * (stride // here) for (count, here), there in steps.items()
                 if here and stride % here == 0 and extent * stride <= count * here), None)


def _as_copied(product: Product, steps: Collection[tuple[int, int]]) -> tuple[tuple[int, ...], Matrix, Matrix, Matrix]:
    """The batch and the matrices of a product, with its one axis as two where a copy, of such (extent, stride), splits it."""
    batch, matrices = product.batch, (product.a, product.b, product.c)
    if len(batch) == 1:
        inner = next((extent for extent, stride in steps if stride == product.c.steps[0] and extent < batch[0]), None)
        if inner is not None:
            batch = (batch[0] // inner, inner)
            matrices = tuple(x._replace(steps=(x.steps[0] * inner, x.steps[0])) for x in matrices)  # type: ignore[assignment]
    return batch, *matrices
