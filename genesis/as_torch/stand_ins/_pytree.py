"""`torch.utils._pytree`: trees are flattened, mapped and rebuilt. An object of an unregistered class is a leaf."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from genesis.as_torch.stand_ins._pytree_nodes import (
    SERIALIZED, SUPPORTED_NODES, Context, DumpableContext, GetAttrKey, PyTree, _get_node_type, class_named, name_of,
    register_pytree_node,
)

IsLeaf = Callable[[Any], bool] | None
KeyPath = tuple[Any, ...]


@dataclass(repr=False)
class TreeSpec:
    """A tree's structure: the class and context of its root, and the structures of its children."""

    type: Any
    context: Context = None
    children_specs: list[TreeSpec] = field(default_factory=list)

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return sum(spec.num_leaves for spec in self.children_specs)

    @property
    def num_children(self) -> int:
        """The number of the root's children."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """The number of containers and leaves."""
        return 1 + sum(spec.num_nodes for spec in self.children_specs)

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return [*self.children_specs]

    def child(self, index: int) -> TreeSpec:
        """The structure of a child."""
        return self.children_specs[index]

    def __repr__(self, indent: int = 0) -> str:
        parts = [part.__repr__(indent + 2) for part in self.children_specs]
        inner = f",\n{' ' * (indent + 2)}".join(parts)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{inner}])"

    def is_leaf(self) -> bool:
        """Whether the tree is a leaf."""
        return False

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree with these leaves. Raises ValueError for another number of them."""
        given = [*leaves]
        if len(given) != self.num_leaves:
            raise ValueError(f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree "
                             f"that holds {self.num_leaves} items")
        return self._unflatten(iter(given))

    def _unflatten(self, leaves: Iterator[Any]) -> PyTree:
        parts = [spec._unflatten(leaves) for spec in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(parts, self.context)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])

    num_leaves = 1  # type: ignore[assignment]

    def is_leaf(self) -> bool:
        return True

    def _unflatten(self, leaves: Iterator[Any]) -> PyTree:
        return next(leaves)

    def __repr__(self, indent: int = 0) -> str:
        return "*"


PyTreeSpec = TreeSpec


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a tree is of no registered class, or `is_leaf` holds for it."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def _flatten(tree: PyTree, is_leaf: IsLeaf, leaves: list[Any]) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return LeafSpec()
    kind = _get_node_type(tree)
    parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(part, is_leaf, leaves) for part in parts])


_is_leaf = tree_is_leaf


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, is_leaf, leaves)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a structure with these leaves."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """An iterator over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def _flatten_up_to(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """The subtrees at the leaves of a structure. Raises ValueError if the tree differs above them."""
    if spec.is_leaf():
        return [tree]
    kind = _get_node_type(tree)
    if kind is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type!r}, but got {kind!r}.")
    parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if isinstance(tree, dict):
        keys = spec.context[1] if kind is defaultdict else spec.context
        if {*keys} != tree.keys():
            raise ValueError(f"Node keys mismatch; expected {keys}, but got {[*tree]}.")
        parts = [tree[key] for key in keys]
    elif len(parts) != spec.num_children or context != spec.context:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(parts)}.")
    return [leaf for child, part in zip(spec.children_specs, parts, strict=True) for leaf in _flatten_up_to(child, part)]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`func` of each leaf and of the leaves at the same path in other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[_flatten_up_to(spec, rest) for rest in rests]))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` for each leaf. Returns the tree."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


# ---- paths of leaves ----
def _paths(tree: PyTree, is_leaf: IsLeaf, path: KeyPath = ()) -> Iterator[KeyPath]:
    if tree_is_leaf(tree, is_leaf):
        yield path
        return
    kind = _get_node_type(tree)
    keyed = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if keyed is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument "
                         "to register_pytree_node.")
    for key, part in keyed(tree)[0]:
        yield from _paths(part, is_leaf, (*path, key))


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """(path, leaf) of all leaves, and the structure. Raises ValueError for a class registered without keys."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return [*zip(_paths(tree, is_leaf), leaves, strict=True)], spec


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) of all leaves."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` of a function that takes the path of the leaf first."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, [*_paths(tree, is_leaf)], leaves, *[_flatten_up_to(spec, rest) for rest in rests]))


def keystr(kp: KeyPath) -> str:
    """A path as text."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The subtree at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _predicate(kind: Any) -> Callable[[Any], bool]:
    """A predicate of leaves, given as such or as a class or several."""
    return kind if callable(kind) and not isinstance(kind, type) else lambda leaf: isinstance(leaf, kind)


def map_only(kind: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function applies to objects of a class; others are returned as they are."""
    chosen = _predicate(kind)
    return lambda func: lambda x: func(x) if chosen(x) else x


def tree_map_only(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`func` of the leaves of a class, or for which a predicate holds; the others as they are."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """Call `func` for those leaves. Returns the tree."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for all leaves of a class."""
    return all(map(pred, filter(_predicate(type_or_types), tree_leaves(tree, is_leaf))))


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds for a leaf of a class."""
    return any(map(pred, filter(_predicate(type_or_types), tree_leaves(tree, is_leaf))))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """Each leaf of a tree, repeated for the leaves of `treespec` below it; None if the structures differ."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    spec = tree_structure(tree, lambda part: part is not tree)
    if treespec.is_leaf() or (spec.type, spec.context, spec.num_children) != (
            treespec.type, treespec.context, treespec.num_children):
        return None
    parts: Sequence[Any] = SUPPORTED_NODES[spec.type].flatten_fn(tree)[0]
    found = [_broadcast_to_and_flatten(part, child, is_leaf)
             for part, child in zip(parts, treespec.children_specs, strict=True)]
    return None if None in found else [leaf for leaves in found for leaf in leaves or ()]


# ---- structures as JSON ----
_LEAF: DumpableContext = {"type": None, "context": None, "children_spec": []}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as JSON. Raises NotImplementedError for a class without a name for it, ValueError for another protocol."""
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((1, _as_json(treespec)))


def _as_json(spec: TreeSpec) -> DumpableContext:
    if spec.is_leaf():
        return _LEAF
    name, dumped = name_of(spec.type), SERIALIZED[spec.type].to_dumpable_context or json.dumps
    return {"type": name, "context": dumped(spec.context), "children_spec": [*map(_as_json, spec.children_specs)]}


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure of `treespec_dumps`. Raises NotImplementedError for a class that is not registered."""
    protocol, said = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _of_json(said)


def _of_json(said: DumpableContext) -> TreeSpec:
    if said == _LEAF:
        return LeafSpec()
    kind = class_named(said["type"])
    context = (SERIALIZED[kind].from_dumpable_context or json.loads)(said["context"])
    return TreeSpec(kind, context, [*map(_of_json, said["children_spec"])])


class _Star:
    """A leaf in a printed structure."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A tree of the structure, as text, with stars for leaves."""
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


# ---- dataclasses ----
def register_dataclass(
    cls: Any, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Register a dataclass as a container of its fields, except fields that are None."""
    if not is_dataclass(cls) and field_names is None:
        raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}")
    known = [f.name for f in fields(cls) if f.init] if is_dataclass(cls) else field_names or []
    names, wanted = known if field_names is None else field_names, {*known} - {*(drop_field_names or ())}
    if field_names is not None and {*names} != wanted:
        raise ValueError(f"field_names does not include all dataclass fields: {sorted(names)}; want {sorted(wanted)}")

    def taken_apart(obj: Any) -> tuple[list[Any], Context]:
        filled = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in filled], [filled, [name for name in names if name not in filled]]

    def made(parts: Iterable[Any], context: Context) -> Any:
        return cls(**dict(zip(context[0], parts, strict=True)), **dict.fromkeys(context[1]))

    def keyed(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        parts, context = taken_apart(obj)
        return [*zip(map(GetAttrKey, context[0]), parts, strict=True)], context

    register_pytree_node(cls, taken_apart, made, serialized_type_name=serialized_type_name, flatten_with_keys_fn=keyed)
