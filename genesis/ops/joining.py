"""Concatenation along an axis or a new one, in blocks; tiling and rolling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genesis.ir.graph import Value
from genesis.ir.shapes import Shape, normalize_axis, numel
from genesis.ops.layout import Layout
from genesis.ops.registry import composite, expand, primitive, promoted
from genesis.ops.views import put_value, reshape_value, slice_value


def _cat_grad(g: Value, y: Value, *inputs: Value) -> tuple[Value | None, ...]:
    dim, start, grads = y.node.attrs["dim"], 0, []
    for x in inputs:
        end = start + x.shape[dim]
        grads.append(slice_value(g, dim, start, end))
        start = end
    return tuple(grads)


primitive("cat", "cat", grad=_cat_grad, reference=lambda node, *arrays: np.concatenate(arrays, axis=node.attrs["dim"]))


@composite(
    "cat", 1, ref=np.concatenate, variadic=True, method=False, autocast="widest", aliases=("concat", "concatenate"),
    takes_complex=True)
def cat(tensors: Sequence[Value], dim: int = 0) -> Value:
    """The tensors one after the other along `dim`.

    They promote to one dtype and have equal extents along other axes; tensors of shape (0,) fit to any. Raises ValueError for
    other shapes and for an empty sequence.

    >>> genesis.cat([genesis.zeros(2), genesis.ones(1)])
    tensor([0., 0., 1.])
    """
    if not tensors:
        raise ValueError("cat: wants one tensor at least")
    given = promoted(*tensors)
    first = next((v for v in given if v.shape != (0,)), given[0])
    if first.ndim == 0:
        raise ValueError("cat: 0-d tensors cannot be joined; use stack")
    axis = normalize_axis("cat", dim, first.ndim) if first.shape != (0,) else 0  # as in PyTorch, which skips these first
    empty = (*first.shape[:axis], 0, *first.shape[axis + 1 :])
    values = [v if v.shape != (0,) else reshape_value(v, empty)
              for v in given if v.shape != (0,) or v is first or v.node.differentiable]
    for v in values:
        if v.ndim != first.ndim or any(
            a != axis and e != f for a, (e, f) in enumerate(zip(v.shape, first.shape, strict=False))
        ):
            raise ValueError(f"cat: shapes {first.shape} and {v.shape} differ outside dim {dim}")
    if len(values) == 1:
        return first
    total = sum(v.shape[axis] for v in values)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return first.graph.add("cat", values, shape, first.dtype, {"dim": axis})


@composite("stack", 1, ref=np.stack, variadic=True, method=False, autocast="widest", takes_complex=True)
def stack(tensors: Sequence[Value], dim: int = 0) -> Value:
    """The tensors of one shape along a new axis `dim`.

    Raises ValueError if the shapes differ or the sequence is empty.

    >>> genesis.stack([genesis.tensor([1, 2]), genesis.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if not tensors:
        raise ValueError("stack: wants one tensor at least")
    shape = tensors[0].shape
    if any(v.shape != shape for v in tensors):
        raise ValueError(f"stack: shapes differ: {', '.join(str(v.shape) for v in tensors)}; want them equal")
    axis = normalize_axis("stack", dim, len(shape) + 1)
    return cat([reshape_value(v, (*shape[:axis], 1, *shape[axis:])) for v in tensors], axis)


@composite("roll", takes_complex=True)
def roll(input: Value, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Value:
    """The elements shifted by `shifts` along `dims`; those that leave at one end enter at the other.

    Without `dims`, along the flattened tensor. Raises ValueError unless there is one shift per axis, IndexError for an
    axis out of range.

    >>> genesis.roll(genesis.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """
    moves = [*shifts] if isinstance(shifts, Sequence) else [shifts]
    if not moves:
        raise ValueError("roll: shifts is empty; want one at least")
    if dims is None:
        flat = roll(reshape_value(input, (numel(input.shape),)), moves, [0] * len(moves))
        return reshape_value(flat, input.shape)
    axes = [dims] if isinstance(dims, int) else [*dims]
    if len(moves) != len(axes):
        raise ValueError(f"roll: {len(moves)} shifts for {len(axes)} dims; want one each")
    if not input.ndim:
        raise IndexError(f"roll: dims are {axes}, of a tensor without axes; want none")
    x = input
    for move, dim in zip(moves, axes, strict=True):
        axis = normalize_axis("roll", dim, x.ndim)
        extent = x.shape[axis]
        if extent and move % extent:
            cut = extent - move % extent
            x = cat([slice_value(x, axis, cut, extent), slice_value(x, axis, 0, cut)], axis)
    return x


# ---- side by side ----
def ranked(shape: Shape, rank: int) -> Shape:
    """`shape` with at least `rank` axes, added as NumPy does: in front of a vector, behind a matrix.

    >>> ranked((2,), 2), ranked((2,), 3), ranked((2, 3), 3)
    ((1, 2), (1, 2, 1), (2, 3, 1))
    """
    if rank == 3 and len(shape) in (1, 2):
        return (1,) * (2 - len(shape)) + shape + (1,)
    return (1,) * (rank - len(shape)) + shape


def _ranked(x: Value, rank: int) -> Value:
    return reshape_value(x, ranked(x.shape, rank))


@composite("hstack", 1, ref=np.hstack, variadic=True, method=False, takes_complex=True)
def hstack(tensors: Sequence[Value]) -> Value:
    """The tensors side by side: vectors one after the other, others along axis 1.

    >>> genesis.hstack([genesis.ones(2, 1), genesis.zeros(2, 2)])
    tensor([[1., 0., 0.],
            [1., 0., 0.]])
    """
    values = [_ranked(x, 1) for x in tensors]
    return cat(values, 1 if values and values[0].ndim > 1 else 0)


@composite("vstack", 1, ref=np.vstack, variadic=True, method=False, aliases=("row_stack",), takes_complex=True)
def vstack(tensors: Sequence[Value]) -> Value:
    """The tensors one below the other; a vector is a row.

    >>> genesis.vstack([genesis.arange(2), genesis.ones(1, 2, dtype=genesis.int64)])
    tensor([[0, 1],
            [1, 1]])
    """
    return cat([_ranked(x, 2) for x in tensors], 0)


@composite("dstack", 1, ref=np.dstack, variadic=True, method=False, takes_complex=True)
def dstack(tensors: Sequence[Value]) -> Value:
    """The tensors one behind the other, along axis 2."""
    return cat([_ranked(x, 3) for x in tensors], 2)


@composite("column_stack", 1, ref=np.column_stack, variadic=True, method=False, takes_complex=True)
def column_stack(tensors: Sequence[Value]) -> Value:
    """The tensors side by side; a vector is a column."""
    return cat([reshape_value(x, (numel(x.shape), 1)) if x.ndim < 2 else x for x in tensors], 1)


@composite("block_diag", (), method=False, takes_complex=True)
def block_diag(*tensors: Value) -> Value:
    """A matrix with the given ones along its diagonal, and zeros elsewhere; a vector is a row.

    >>> genesis.block_diag(genesis.ones(1, 2), genesis.tensor(3.0))
    tensor([[1., 1., 0.],
            [0., 0., 3.]])
    """
    blocks = promoted(*[_ranked(x, 2) for x in tensors])
    if any(x.ndim > 2 for x in blocks):
        raise ValueError(f"block_diag: wants matrices, vectors or numbers, got shapes {[x.shape for x in tensors]}")
    width = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        shape = (x.shape[0], width)
        rows.append(put_value(None, x, Layout(x.shape, (width, 1), before), shape) if numel(shape) else reshape_value(x, shape))
        before += x.shape[1]
    return cat(rows, 0)


@composite("cartesian_prod", (), method=False, takes_complex=True, shares=lambda *tensors: (
    (tensors[0], []) if len(tensors) == 1 and getattr(tensors[0], "ndim", 0) == 1 else None))
def cartesian_prod(*tensors: Value) -> Value:
    """All rows with an element of each vector; of one vector, itself.

    >>> genesis.cartesian_prod(genesis.tensor([1, 2]), genesis.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    if any(x.ndim != 1 for x in tensors):
        raise ValueError(f"cartesian_prod: wants vectors, got shapes {[x.shape for x in tensors]}")
    extents = tuple(x.shape[0] for x in tensors)
    if len(tensors) == 1:
        return tensors[0]
    spread = [reshape_value(x, (x.shape[0],) + (1,) * (len(tensors) - 1 - position)) for position, x in enumerate(tensors)]
    return stack([reshape_value(expand(x, extents), (numel(extents),)) for x in spread], 1)


# ---- repeated ----
def tiled(x: Value, counts: Sequence[int]) -> Value:
    """Copies of `x` end to end, `counts` along each axis; further leading counts add axes."""
    extents = (1,) * (len(counts) - x.ndim) + x.shape
    split = reshape_value(x, tuple(e for extent in extents for e in (1, extent)))
    spread = expand(split, tuple(e for pair in zip(counts, extents, strict=True) for e in pair))
    return reshape_value(spread, tuple(c * e for c, e in zip(counts, extents, strict=True)))


@composite("tile", 1, takes_complex=True)
def tile(input: Value, *dims: int) -> Value:
    """Copies of `input` end to end, `dims` along each axis; fewer `dims` apply to the last axes.

    >>> genesis.tile(genesis.tensor([[1], [2]]), (2,))
    tensor([[1, 1],
            [2, 2]])
    """
    counts: tuple[int, ...] = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    if any(count < 0 for count in counts):
        raise ValueError(f"tile: dims are {counts}; want 0 or more")
    return tiled(input, (1,) * (input.ndim - len(counts)) + tuple(counts))
