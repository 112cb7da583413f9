"""A function of one example as a function of many."""

from __future__ import annotations

import functools

from genesis.autograd.pullback import batched, lies_as
from genesis.execution.eager import together
from genesis.ir.annotations import AnyFunction, Tree
from genesis.ir.errors import ArgumentError, DataError
from genesis.ir.replayable import replayable_module
from genesis.ops.registry import OPERATIONS
from genesis.pytree import leaves_of, map_tree, with_leaves
from genesis.tensor.dispatch import array_of, call
from genesis.tensor.handle import Tensor, tensor_of
from genesis.tensor.modes import is_grad_enabled

__all__ = ["vmap"]


def vmap(func: AnyFunction, in_dims: Tree = 0, out_dims: Tree = 0) -> AnyFunction:
    """`func` of each example along an axis of its arguments, computed for all at once.

    The function is traced for the first example, and the trace is batched: it may branch on shapes, not on values. Random
    numbers and writes to outer tensors are those of one example.

    Args:
        func: from tensors, or nested tuples, lists and dicts of them, to such.
        in_dims: the axis of the examples: of all arguments, of each one (a tuple), or of their leaves (trees like the
            arguments). None for what is the same for all.
        out_dims: where the axis goes in the results, for all of them or as a tree.

    Named arguments are the same for all. Raises, when called, ValueError where the extents of the axes differ or there is
    none, and RuntimeError if the function looks at a value.

    >>> x = genesis.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> genesis.func.vmap(genesis.func.grad(lambda x: (x**2).sum()))(x)
    tensor([[2., 4.],
            [6., 8.]])
    """

    @functools.wraps(func, updated=())
    def mapped(*args: Tree, **kwargs: Tree) -> Tree:
        with together():
            return _mapped(func, in_dims, out_dims, args, kwargs)

    return mapped


def _mapped(func: AnyFunction, in_dims: Tree, out_dims: Tree, args: Tree, kwargs: Tree) -> Tree:
    leaves = leaves_of(args)
    dims = _spread(in_dims, args, "in_dims")
    stacked = [None if dim is None else _stacked(x, dim) for x, dim in zip(leaves, dims, strict=True)]
    extents = {x.shape[0] for x in stacked if x is not None}
    if len(extents) != 1 or 0 in extents:
        raise ValueError(f"vmap: the mapped axes have the extents {sorted(extents)}; want a single one, not 0")
    pairs = [(call(OPERATIONS["clone"], (x[0],)), x) for x in stacked if x is not None]
    mapped = [(x, dim) for x, dim in zip(leaves, dims, strict=True) if dim is not None]
    first = iter([_example(one, x, dim) for (one, _), (x, dim) in zip(pairs, mapped, strict=True)])
    result = func(*with_leaves(args, iter([x if s is None else next(first) for x, s in zip(leaves, stacked, strict=True)])),
                  **kwargs)
    outputs = [call(OPERATIONS["clone"], (_tensor(y, "returned"),)) for y in leaves_of(result)]
    found = batched(outputs, pairs, is_grad_enabled())
    if found is None:
        raise RuntimeError("vmap: the function looked at a value, but it runs once for all examples; use genesis.where")
    places = _spread(out_dims, result, "out_dims")
    return with_leaves(result, iter([y.movedim(0, place) for y, place in zip(found, places, strict=True)]))


def _example(one: Tensor, x: Tensor, dim: int) -> Tensor:
    """The first example `one` as the function gets it: lies by itself, where those of `x` lie side by side along `dim`."""
    result = tensor_of(array_of(one), one.requires_grad)
    result._lay_as = lies_as(x.select(dim, 0))
    return result


def _stacked(x: Tree, dim: int) -> Tensor:
    """`x` with the examples first, as a result of the open trace."""
    x = _tensor(x, "mapped over")
    if not -x.ndim <= dim < x.ndim:
        raise ArgumentError(f"vmap: in_dims has {dim}, but the tensor has shape {x.shape}")
    return call(OPERATIONS["clone"], (x.movedim(dim, 0),))


def _tensor(x: Tree, what: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise DataError(f"vmap: a {type(x).__name__} is {what}; want tensors (None in in_dims lets other arguments through)")
    return x


def _spread(dims: Tree, tree: Tree, name: str) -> list[Tree]:
    """The axis of every leaf; an int or None stands for a whole branch."""
    if dims is None or isinstance(dims, int):
        return leaves_of(map_tree(lambda _: dims, tree))
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, tuple | list) else []
    if not isinstance(dims, dict | tuple | list) or len(dims) != len(keys) or isinstance(dims, dict) != isinstance(tree, dict):
        raise ValueError(f"vmap: {name} {dims!r} does not have the structure of what it is for")
    return [dim for key in keys for dim in _spread(dims[key], tree[key], name)]


replayable_module(__name__)
