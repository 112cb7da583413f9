"""Copy elision: a result that is only copied elsewhere is computed there.

Before: stages in order. After: the same without such copies. That is safe where the copy reads the whole result, is its only
reader, and nothing else writes to its target (but for other parts of a `cat`). The result then needs no memory. Copies of
products are elided before loops are formed, so that their tiles see the final layout; those of kernels after, outside loops.
A result that others read, too, is where it is joined if that is one stretch of memory: the steps of a recurrent layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from genesis.ir.dtypes import DType
from genesis.ir.graph import Node
from genesis.ir.shapes import numel
from genesis.lower.build import KernelCall
from genesis.lower.group import WRITES
from genesis.lower.kernel import KernelArg
from genesis.lower.rewriting import base_of
from genesis.lower.stages import Call, Matrix, Product, Stage
from genesis.ops.layout import Layout


def elide_copies(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> list[Stage]:
    """The stages without copies of products that have no other reader."""
    moved: dict[int, Product] = {}
    copies: set[int] = set()
    for call, copy in _copied(nodes, stages, outputs):
        if isinstance(call, Product) and not call.summed and (there := _computed_there(call, copy)) is not None:
            moved[call.node] = there
            copies.add(id(copy))
    result = [[moved.get(call.node, call) if isinstance(call, Product) else call for call in stage if id(call) not in copies]
              for stage in stages]
    return [stage for stage in result if stage]


def elide_copies_of_kernels(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> list[Stage]:
    """The stages without copies of kernels' results that have no other reader."""
    moved: dict[int, KernelCall] = {}
    copies: set[int] = set()
    # The gradients of an LSTM's four gates are parts of one matrix, which is what products read.
    for call, copy in _copied(nodes, stages, outputs):
        if isinstance(call, KernelCall) and id(call) not in copies:
            there = _stored_there(nodes, moved.get(id(call), call), copy)
            if there is not None:
                moved[id(call)] = there
                copies.add(id(copy))
    result = [[moved.get(id(call), call) for call in stage if id(call) not in copies] for stage in stages]
    return [stage for stage in result if stage]


def elide_parts(nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]) -> list[Stage]:
    """The stages without copies of whole values to stretches of concatenations, where all who read the values find them."""
    stage_of = [number for number, stage in enumerate(stages) for _ in stage]
    calls = [call for stage in stages for call in stage]
    ends = [*accumulate(map(len, stages), initial=0)]
    users: dict[int, set[int]] = {}
    for number, call in enumerate(calls):
        for value in (*call.reads, *call.writes):
            users.setdefault(value, set()).add(number)
    copied_into = {base_of(nodes, node.inputs[0]) for node in nodes if node.op in WRITES}
    gone: set[int] = set()
    for number, copy in enumerate(calls):
        found = _stretch(nodes, copy)
        if found is None or found.source in outputs or found.source in copied_into:
            continue
        source, target = found.source, found.target.value
        own, others = users[source] - {number}, users[target] - {number}
        beside = any(  # where the source lies there, one of two calls would write near what the other touches
            n != m and m in others and (source in calls[n].writes or target in calls[m].writes)
            for n in own for m in range(*ends[stage_of[n] : stage_of[n] + 2]))
        if not beside and all(_may_move(calls[n], source) for n in own):
            for n in own:
                calls[n] = _moved(calls[n], source, found.target, nodes[source].dtype.itemsize)
            users[target] |= users.pop(source)
            gone.add(number)
    result = [[calls[n] for n in range(first, end) if n not in gone] for first, end in pairwise(ends)]
    return [stage for stage in result if stage]


class _Stretch(NamedTuple):
    """A copy of all of `source`, in its own order, to the address `target`."""

    source: int
    target: KernelArg


def _stretch(nodes: Sequence[Node], copy: Call) -> _Stretch | None:
    """What a call copies as it lies to adjacent elements of a concatenation; None if it does anything else."""
    steps = _steps(copy) if isinstance(copy, KernelCall) else None
    if steps is None:
        return None
    (source,), (step, target, _) = copy.reads, steps
    axes = [(stride, extent, there) for (extent, stride), there in step.items() if extent > 1]
    adjacent = 1
    for stride, extent, there in sorted(axes):
        if not stride == there == adjacent:
            return None
        adjacent *= extent
    computed = nodes[source].op not in (*WRITES, "input") and nodes[target.value].op == "cat"
    return _Stretch(source, target) if computed and adjacent == nodes[source].numel else None


def _may_move(call: Call, value: int) -> bool:
    """Whether a call's access to a value is known, and counted from where the value begins: not so with tiles."""
    if isinstance(call, KernelCall):
        return not any(i.name in ("load_at", "scatter") and i.access is not None
                       and call.kernel.words[i.access.pointer].value == value for i in call.kernel.instructions)
    return isinstance(call, Product) and not call.summed


def _moved(call: Call, value: int, target: KernelArg, itemsize: int) -> KernelCall | Product:
    """The call with `value` at the address `target`."""
    if isinstance(call, Product):
        return call._replace(**{name: x._replace(value=target.value, layout=x.layout._replace(
            offset=x.layout.offset + target.extra // itemsize)) for name in "abc" if (x := getattr(call, name)).value == value})
    assert isinstance(call, KernelCall)
    words = [w if w.value != value or w.kind not in ("pointer", "stream") else
             w._replace(value=target.value, extra=w.extra + target.extra if w.kind == "pointer" else w.extra)
             for w in call.kernel.words]
    reads, writes = (
        tuple(dict.fromkeys(target.value if v == value else v for v in values)) for values in (call.reads, call.writes))
    return call._replace(kernel=call.kernel.filled(words), reads=reads, writes=writes)


def _copied(
    nodes: Sequence[Node], stages: Sequence[Stage], outputs: Collection[int]
) -> Iterator[tuple[Call, KernelCall]]:
    """Pairs of a call and the copy that is its only reader, where nothing else writes to the copy's target."""
    calls = [call for stage in stages for call in stage]
    writers = Counter(value for call in calls for value in call.writes)
    readers: dict[int, list[Call]] = {}
    for call in calls:
        for value in call.reads:
            readers.setdefault(value, []).append(call)
    for call in calls:
        for value in call.writes:
            found = readers.get(value, ())
            if len(found) == 1 and isinstance(copy := found[0], KernelCall) and writers[value] == 1 and value not in outputs:
                target = copy.writes[0]
                if writers[target] == 1 or nodes[target].op == "cat":
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


def _stored_there(nodes: Sequence[Node], call: KernelCall, copy: KernelCall) -> KernelCall | None:
    """The call with its stores at the target of `copy`; None if its code does not allow that."""
    kernel, steps = call.kernel, _steps(copy)
    if steps is None:
        return None
    (value,), (step, target, dtype) = copy.reads, steps
    touching = [i for i in kernel.instructions if i.access is not None and kernel.words[i.access.pointer].value == value
                and kernel.words[i.access.pointer].kind == "pointer"]
    if [i.name for i in touching] != ["store"] or any(name == "tile" for name, _ in touching[0].attrs) or dtype.is_complex:
        return None
    access = touching[0].access
    assert access is not None
    words = [w._replace(value=target.value) if w.kind in ("pointer", "stream") and w.value == value else w
             for w in kernel.words]
    words[access.pointer] = words[access.pointer]._replace(extra=target.extra)
    count = 1
    for extent, stride, name in zip(call.extents, kernel.strides(access), access.strides, strict=True):
        there = _step(step, extent, stride) if stride else 0
        if there is None or (there != stride and not isinstance(name, str)):  # a stride that is compiled in
            return None
        if isinstance(name, str):
            words[int(name[1:])] = KernelArg("stride", there)
        count *= extent if stride else 1
    if kernel.words[access.pointer].extra or count != nodes[value].numel or numel(copy.extents) != count:
        return None
    writes = tuple(dict.fromkeys(target.value if w == value else w for w in call.writes))
    return call._replace(kernel=kernel.filled(words), writes=writes)


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
