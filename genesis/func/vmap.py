"""vmap: a function of one example becomes a function of many."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from genesis.autograd.pullback import batched, lies_as
from genesis.execution.eager import deferring
from genesis.execution.failure import take_back_writes
from genesis.functions.random_draws import is_computed_from, mapped
from genesis.ir.annotations import AnyFunction, Tree
from genesis.ir.errors import ArgumentError, DataError
from genesis.ops.registry import OPERATIONS
from genesis.pytree import leaves_of, map_tree, with_leaves
from genesis.runtime import rng
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tensor.modes import is_grad_enabled
from genesis.tracing.trace import Array


def vmap(
    func: AnyFunction, in_dims: Tree = 0, out_dims: Tree = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> AnyFunction:
    """`func` applied to each example along an axis of its arguments, for all examples at once.

    The function is traced for the first example, and the trace is batched: it may branch on shapes, and on values that all
    examples share, not on others. Writes to an argument that is mapped over are those of each example; writes to other outer
    tensors happen once, for all.

    Args:
        func: takes and returns tensors, or nested tuples, lists and dicts of them.
        in_dims: the axis of the examples: of all arguments, of each one (a tuple), or of their leaves (trees like the
            arguments). None for arguments shared by all examples.
        out_dims: the position of the axis in the results, for all of them or as a tree.
        randomness: random numbers in `func` are an "error", "different" for each example, or the "same" for all.
        chunk_size: the number of examples computed at once; all if None.

    Named arguments are the same for all. Raises RuntimeError for another `randomness`, ValueError for a `chunk_size` below 1
    and, when called, if the extents of the axes differ or there is no such axis; RuntimeError if it reads an example's
    value, draws random numbers with "error", or writes what differs among the examples to a tensor that they share.

    >>> x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> genesis.func.vmap(genesis.func.grad(lambda x: (x**2).sum()))(x)
    tensor([[2., 4.],
            [6., 8.]])
    >>> noise = genesis.func.vmap(lambda x: x + genesis.rand(2), randomness="same")(x) - x
    >>> (noise[0] - noise[1]).abs().max() < 1e-6
    tensor(True)
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"vmap: randomness must be 'error', 'different' or 'same', got {randomness!r}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size is {chunk_size}; want 1 or more, or None")
    if not isinstance(in_dims, int | tuple | None):
        raise DataError(f"vmap: in_dims is {in_dims!r}; want an int or a tuple with one for each argument")

    @functools.wraps(func, updated=())
    def of_all(*args: Tree, **kwargs: Tree) -> Tree:
        leaves, dims = leaves_of(args), _spread(in_dims, args, "in_dims")
        extent = _extent(leaves, dims)
        size = chunk_size or extent
        state, results = rng.get_state(), []
        for first in range(0, extent, size):
            chunk = [x if dim is None else x.narrow(dim, first, min(size, extent - first))
                     for x, dim in zip(leaves, dims, strict=True)] if size < extent else leaves
            with deferring(), rng.drawing_from(state if randomness == "same" and first else None):
                results.append(_mapped(func, with_leaves(args, iter(chunk)), dims, out_dims, randomness, kwargs))
        return results[0] if len(results) == 1 else _joined(results, _spread(out_dims, results[0], "out_dims"))

    return of_all


def _extent(leaves: Sequence[Tree], dims: Sequence[int | None]) -> int:
    """The number of examples."""
    extents = set()
    for x, dim in zip(leaves, dims, strict=True):
        if dim is not None:
            x = _tensor(x, "mapped over")
            if not -x.ndim <= dim < x.ndim:
                raise ArgumentError(f"vmap: in_dims has {dim}, but the tensor has shape {x.shape}")
            extents.add(x.shape[dim])
    if len(extents) != 1 or 0 in extents:
        raise ValueError(f"vmap: the mapped axes have the extents {sorted(extents)}; want a single one, not 0")
    return extents.pop()


def _mapped(
    func: AnyFunction, args: Tree, dims: Sequence[int | None], out_dims: Tree, randomness: str, kwargs: Mapping[str, Tree]
) -> Tree:
    leaves = leaves_of(args)
    stacked = [None if dim is None else call(OPERATIONS["clone"], (x.movedim(dim, 0),))  # in the open trace
               for x, dim in zip(leaves, dims, strict=True)]
    pairs = [(call(OPERATIONS["clone"], (x[0],)), x) for x in stacked if x is not None]
    examples = [(x, dim) for x, dim in zip(leaves, dims, strict=True) if dim is not None]
    firsts = [_example(one, x, dim) for (one, _), (x, dim) in zip(pairs, examples, strict=True)]
    shown = {(id(x), dim): first for (x, dim), first in zip(examples, firsts, strict=True)}  # one for a tensor given twice
    unused = iter([shown[id(x), dim] for x, dim in examples])
    given = with_leaves(args, iter([x if s is None else next(unused) for x, s in zip(leaves, stacked, strict=True)]))
    arrays = [array_of(one) for one, _ in pairs]
    with mapped(randomness, pairs[0][1].shape[0], arrays):
        result = func(*given, **kwargs)
    _refuse_shared_writes(arrays)
    written = [k for k, one in enumerate(firsts) if array_of(one) is not arrays[k]]
    ends = [*leaves_of(result), *[firsts[k] for k in written]]
    outputs = [call(OPERATIONS["clone"], (_tensor(y, "returned"),)) for y in ends]
    found = batched(outputs, pairs, is_grad_enabled(), randomness == "different")
    if found is None:
        raise RuntimeError("vmap: the function looked at a value, but it runs once for all examples; use genesis.where")
    _refuse_shared_memory(written, [x for x, _ in examples])
    for k, new in zip(reversed(written), reversed(found), strict=False):
        x, dim = examples[k]
        x.movedim(dim, 0).copy_(new)
    arguments = {id(first): x.movedim(dim, 0) for first, (x, dim) in zip(firsts, examples, strict=True)}
    results = [arguments.get(id(y), new) for y, new in zip(leaves_of(result), found, strict=False)]  # an argument is itself
    axes = _spread(out_dims, result, "out_dims")
    return with_leaves(result, iter([y.movedim(0, axis) for y, axis in zip(results, axes, strict=True)]))


def _refuse_shared_memory(written: Sequence[int], arguments: Sequence[Tensor]) -> None:
    """Raise RuntimeError if an argument that was written to is a view of another one's memory, which did not see the write."""
    roots = [x if x._base is None else x._base for x in arguments]
    for k in written:
        if any([root is roots[k] and x is not arguments[k] for x, root in zip(arguments, roots, strict=True)]):
            raise RuntimeError("vmap: an argument that is written to shares memory with another one; clone() one of them")


def _refuse_shared_writes(examples: Sequence[Array]) -> None:
    """Raise RuntimeError, with writes undone, if what was computed from examples has been written to an outer tensor."""
    trace, start = examples[0].trace, examples[0].index
    if trace is None:
        return
    for tensor, before, _ in [*trace.written]:
        if isinstance(before, int):
            tensor = tensor() if before < start else None
        if tensor is not None and is_computed_from(tensor._array, examples):
            take_back_writes(trace, range(start, len(trace.nodes)))
            raise RuntimeError("vmap: a batch of values is written to a tensor that all examples share; map over it, too")


def _joined(results: Sequence[Tree], axes: Sequence[int]) -> Tree:
    """Concatenates the results of consecutive chunks of examples."""
    columns = zip(*map(leaves_of, results), strict=True)
    whole = [call(OPERATIONS["cat"], (column, axis)) for column, axis in zip(columns, axes, strict=True)]
    return with_leaves(results[0], iter(whole))


def _example(one: Tensor, x: Tensor, dim: int) -> Tensor:
    """The first example, `one`, with a layout of its own; in `x` examples are interleaved along `dim`."""
    result = tensor_of(array_of(one), one.requires_grad)
    result._lay_as = lies_as(x.select(dim, 0))
    return result


def _tensor(x: Tree, what: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise DataError(f"vmap: a {type(x).__name__} is {what}; want tensors (None in in_dims lets other arguments through)")
    return x


def _spread(dims: Tree, tree: Tree, name: str) -> list[Tree]:
    """The axis of every leaf; an int or None stands for a whole branch, a single axis in a tuple for a single result."""
    if name == "out_dims" and isinstance(tree, Tensor) and isinstance(dims, tuple) and len(dims) == 1:
        [dims] = dims
    if dims is None or isinstance(dims, int):
        return leaves_of(map_tree(lambda _: dims, tree))
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, tuple | list) else []
    if not isinstance(dims, dict | tuple | list) or len(dims) != len(keys) or isinstance(dims, dict) != isinstance(tree, dict):
        raise ValueError(f"vmap: {name} {dims!r} does not have the structure of what it is for")
    return [dim for key in keys for dim in _spread(dims[key], tree[key], name)]
