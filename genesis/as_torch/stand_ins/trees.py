"""`torch.utils._pytree`: trees of lists, tuples and dicts taken apart and put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from genesis.ir.replayable import replayable_module
from genesis.pytree import leaves_of, map_tree, with_leaves

PyTree = Any
Context = Any


class TreeSpec:
    """A tree's structure: a tree with None for each leaf."""

    def __init__(self, tree: PyTree) -> None:
        self._shape = map_tree(lambda _: None, tree)
        self.num_leaves = len(leaves_of(self._shape))

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves."""
        return with_leaves(self._shape, iter(leaves))

    def is_leaf(self) -> bool:
        """Whether the tree is a leaf."""
        return self._shape is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and type(self._shape) is type(other._shape) and self._shape == other._shape

    def __hash__(self) -> int:
        return hash(self.num_leaves)

    def __repr__(self) -> str:
        return f"TreeSpec({self._shape!r})"


LeafSpec = TreeSpec


def tree_flatten(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the structure."""
    return leaves_of(tree), TreeSpec(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a structure with these leaves."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves."""
    return leaves_of(tree)


def tree_iter(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """The leaves, one after the other."""
    return iter(leaves_of(tree))


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure."""
    return TreeSpec(tree)


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """`func` of each leaf, with those at its place in other trees of the same structure."""
    others = [iter(leaves_of(rest)) for rest in rests]
    return map_tree(lambda leaf: func(leaf, *map(next, others)), tree)


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree) -> PyTree:
    """The tree itself, once `func` has seen each leaf."""
    tree_map(func, tree, *rests)
    return tree


def tree_map_only(kind: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> PyTree:
    """`func` of the leaves of a class (or that a function chooses); the others as they are."""
    chosen = (lambda leaf: isinstance(leaf, kind)) if isinstance(kind, type | tuple) else kind
    return map_tree(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree)


def register_pytree_node(cls: type, *functions: Any, **keywords: Any) -> None:
    """Does nothing: what is no list, tuple or dict is a leaf."""


_register_pytree_node = register_pytree_node


def tree_all(pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Whether it holds for all leaves."""
    return all(map(pred, leaves_of(tree)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Whether it holds for a leaf."""
    return any(map(pred, leaves_of(tree)))


replayable_module(__name__)
