"""Products whose result is only copied to another place are computed there: no copy, and no memory for the result."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.stages import Call, Product, Stage

__all__ = ["elide_copies"]


def elide_copies(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> list[Stage]:
    """Before: stages in order. After: the same, without copies of products that nobody else reads."""
    readers: dict[int, list[KernelCall | None]] = {}
    writers: dict[int, int] = {}
    for stage in stages:
        for call in list[Call](stage):
            for value in call.reads:
                readers.setdefault(value, []).append(call if isinstance(call, KernelCall) else None)
            for value in call.writes:
                writers[value] = writers.get(value, 0) + 1
    moved: dict[int, Product] = {}
    copies: set[int] = set()
    for stage in stages:
        for call in list[Call](stage):
            if not isinstance(call, Product) or call.summed or call.node in outputs:
                continue
            [copy, *others] = readers.get(call.node) or [None]
            if copy is None or others or (writers[copy.writes[0]] > 1 and nodes[copy.writes[0]].op != "cat"):
                continue
            there = _computed_there(call, copy)
            if there is not None:
                moved[call.node] = there
                copies.add(id(copy))
    result = [[moved.get(call.node, call) if isinstance(call, Product) else call for call in list[Call](stage)
               if id(call) not in copies] for stage in stages]
    return [stage for stage in result if stage]  # type: ignore[misc]


def _computed_there(product: Product, copy: KernelCall) -> Product | None:
    """The product with its result where `copy`, which does nothing else, would bring it; None if it cannot lie there."""
    kernel = copy.kernel
    moves = [i for i in kernel.instructions if i.name != "clone"]
    if [i.name for i in moves] != ["load", "store"]:
        return None
    read, write = moves
    assert read.access is not None and write.access is not None
    if read.dtype is not write.dtype:
        return None
    (m, n, _), size = product.extents, read.dtype.itemsize
    step = {}  # from neighbour to neighbour in the result -> in the copy
    for extent, here, there in zip(copy.extents, kernel.strides(read.access), kernel.strides(write.access), strict=True):
        step[extent, here] = there
    batch, strides = product.batch, product.strides
    inner = next((extent for extent, here in step if len(batch) == 1 and here == strides[2][0] and extent < batch[0]), None)
    if inner is not None:  # matrices that the copy takes apart
        batch, strides = (batch[0] // inner, inner), tuple((s * inner, s) for (s,) in strides)  # type: ignore[assignment]
    wanted = [*zip(batch, strides[2], strict=True), (m, product.ldc), (n, 1)]
    if kernel.words[read.access.pointer].extra or numel(copy.extents) != numel(batch) * m * n or not all(
        w in step for w in wanted
    ):
        return None
    *outer, ldc, column = (step[w] for w in wanted)
    if column != 1 or ldc < n:
        return None
    target = kernel.words[write.access.pointer]
    return product._replace(
        node=target.value, batch=batch, strides=(*strides[:2], tuple(outer)), ldc=ldc, first=target.extra // size)
