"""Trees of tuples, lists, named tuples and dicts: flattened, mapped and rebuilt."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from genesis.ir.annotations import Tree

__all__ = ["leaves_of", "map_tree", "with_leaves"]
__dir__ = __all__.copy


def leaves_of(tree: Tree) -> list[Tree]:
    """The leaves, from left to right; everything except tuples, lists and dicts is a leaf, including None.

    >>> leaves_of({"a": 1, "b": [2, (3, None)]})
    [1, 2, 3, None]
    """
    found: list[Tree] = []
    map_tree(found.append, tree)
    return found


def with_leaves(tree: Tree, leaves: Iterator[Tree]) -> Tree:
    """A tree like `tree` with other leaves, taken from an iterator.

    >>> with_leaves((0, {"a": 0}), iter("xy"))
    ('x', {'a': 'y'})
    """
    return map_tree(lambda _: next(leaves), tree)


def map_tree(function: Callable[[Tree], Tree], tree: Tree) -> Tree:
    """`function` of every leaf, in a tree of the same structure.

    >>> map_tree(abs, [-1, (-2, 3)])
    [1, (2, 3)]
    """
    if isinstance(tree, dict):
        made = copy.copy(tree)  # keeps the class: ordered, or with a default
        for key, branch in tree.items():
            made[key] = map_tree(function, branch)
        return made
    if not isinstance(tree, tuple | list):
        return function(tree)
    branches = [map_tree(function, branch) for branch in tree]
    if hasattr(tree, "_fields"):
        return type(tree)(*branches)
    return type(tree)(branches) if type(tree).__new__ in (tuple.__new__, list.__new__) else tuple(branches)  # a Size holds ints
