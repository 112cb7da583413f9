"""`torch.utils._pytree`: trees of containers taken apart and put together. What is of no registered class is a leaf."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from genesis.as_torch.stand_ins.named_tuples import is_namedtuple_class
from genesis.ir.replayable import replayable_module

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
IsLeaf = Callable[[Any], bool] | None
KeyPath = tuple[Any, ...]


class NodeDef(NamedTuple):
    """How containers of a class are taken apart, into parts and what else they are, and made."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Iterable[Any], Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None


class SerializedDef(NamedTuple):
    """The name of a class in texts of structures, and how what else its containers are becomes JSON, and back."""

    type: Any
    name: str | None
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SERIALIZED: dict[Any, SerializedDef] = {}


def register_pytree_node(
    cls: Any, flatten_fn: Callable[[Any], tuple[list[Any], Context]], unflatten_fn: Callable[[Iterable[Any], Context], Any], *,
    serialized_type_name: str | None = None, to_dumpable_context: Any = None, from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Have objects of a class be containers. Raises ValueError for one that is known."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _register_pytree_node(
        cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name, to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context, flatten_with_keys_fn=flatten_with_keys_fn)


def _register_pytree_node(
    cls: Any, flatten_fn: Any, unflatten_fn: Any, *ignored: Any, serialized_type_name: str | None = None,
    to_dumpable_context: Any = None, from_dumpable_context: Any = None, flatten_with_keys_fn: Any = None,
) -> None:
    """`register_pytree_node`, which may come again. Raises ValueError for half of a pair of functions for JSON."""
    if (to_dumpable_context is None) is not (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SERIALIZED[cls] = SerializedDef(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Give a class of named tuples its name in texts of structures."""
    SERIALIZED[cls] = SerializedDef(cls, serialized_type_name, None, None)


def _get_node_type(tree: Any) -> Any:
    """The class that a tree's root is registered by: `namedtuple` for named tuples."""
    return namedtuple if is_namedtuple_class(type(tree)) else type(tree)


# ---- the containers of Python ----
@dataclass(frozen=True)
class SequenceKey:
    """An index into a list, a tuple or a deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What is there."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """What is there."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple, or of an object of a registered class."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """What is there."""
        return getattr(obj, self.name)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    """The values; the keys."""
    return [*d.values()], [*d]


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    """The dict of these keys."""
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    """The values with their keys; the keys."""
    return [(MappingKey(key), value) for key, value in d.items()], [*d]


def _list_flatten(d: list[Any]) -> tuple[list[Any], Context]:
    """The items."""
    return d, None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    """A list."""
    return [*values]


def _list_flatten_with_keys(d: Iterable[Any]) -> tuple[list[tuple[Any, Any]], Context]:
    """The items with their indices."""
    return [(SequenceKey(i), item) for i, item in enumerate(d)], None


def _register_container(
    kind: Any, flatten: Any, unflatten: Any, keyed: Any, to_text: ToDumpableContextFn | None = None,
    of_text: FromDumpableContextFn | None = None,
) -> None:
    _register_pytree_node(
        kind, flatten, unflatten, serialized_type_name=f"{kind.__module__}.{kind.__qualname__}", to_dumpable_context=to_text,
        from_dumpable_context=of_text, flatten_with_keys_fn=lambda tree: (keyed(tree)[0], flatten(tree)[1]))


def class_named(name: str) -> Any:
    found = [cls for cls, known in SERIALIZED.items() if known.name == name]
    if not found:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    return found[0]


def name_of(cls: Any) -> str:
    known = SERIALIZED.get(cls)
    if known is None or known.name is None:
        raise NotImplementedError(f"No registered serialization name for {cls} found: want register_pytree_node(.., "
                                  "serialized_type_name=), or _register_namedtuple")
    return known.name


def _factory_as_json(context: Context) -> DumpableContext:
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": keys}


def _factory_of_json(said: DumpableContext) -> Context:
    factory = getattr(sys.modules[said["default_factory_module"]], said["default_factory_name"])
    return [factory, said["dict_context"]]


_register_container(tuple, lambda x: ([*x], None), lambda items, _: tuple(items), _list_flatten_with_keys)
_register_container(list, _list_flatten, _list_unflatten, _list_flatten_with_keys)
_register_container(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys)
_register_container(namedtuple, lambda x: ([*x], type(x)), lambda items, kind: kind(*items),
                    lambda x: ([*zip(map(GetAttrKey, x._fields), x, strict=True)], None), name_of, class_named)
_register_container(OrderedDict, _dict_flatten, lambda items, keys: OrderedDict(_dict_unflatten(items, keys)),
                    _dict_flatten_with_keys)
_register_container(defaultdict, lambda x: ([*x.values()], [x.default_factory, [*x]]),
                    lambda items, how: defaultdict(how[0], _dict_unflatten(items, how[1])), _dict_flatten_with_keys,
                    _factory_as_json, _factory_of_json)
_register_container(deque, lambda x: ([*x], x.maxlen), lambda items, length: deque(items, length), _list_flatten_with_keys)


@dataclass(repr=False)
class TreeSpec:
    """A tree's structure: the class of its root, what else that is, and the structures of its parts."""

    type: Any
    context: Context = None
    children_specs: list[TreeSpec] = field(default_factory=list)

    @property
    def num_leaves(self) -> int:
        """How many leaves there are."""
        return sum(spec.num_leaves for spec in self.children_specs)

    @property
    def num_children(self) -> int:
        """How many parts the root has."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are."""
        return 1 + sum(spec.num_nodes for spec in self.children_specs)

    def children(self) -> list[TreeSpec]:
        """The structures of the parts."""
        return [*self.children_specs]

    def child(self, index: int) -> TreeSpec:
        """The structure of a part."""
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
        return self._made(iter(given))

    def _made(self, leaves: Iterator[Any]) -> PyTree:
        parts = [spec._made(leaves) for spec in self.children_specs]
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

    def _made(self, leaves: Iterator[Any]) -> PyTree:
        return next(leaves)

    def __repr__(self, indent: int = 0) -> str:
        return "*"


PyTreeSpec = TreeSpec


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether a tree is of no registered class, or a leaf by what was given."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


def _collected(tree: PyTree, is_leaf: IsLeaf, leaves: list[Any]) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return LeafSpec()
    kind = _get_node_type(tree)
    parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_collected(part, is_leaf, leaves) for part in parts])


_is_leaf = tree_is_leaf


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the structure."""
    leaves: list[Any] = []
    return leaves, _collected(tree, is_leaf, leaves)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of a structure with these leaves."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def _parts_like(spec: TreeSpec, tree: PyTree) -> list[Any]:
    """What lies in a tree where a structure has its leaves. Raises ValueError where the tree has another structure above."""
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
    return [leaf for child, part in zip(spec.children_specs, parts, strict=True) for leaf in _parts_like(child, part)]


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`func` of each leaf and of the leaves at the same path in other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[_parts_like(spec, rest) for rest in rests]))


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree itself, once `func` has seen each leaf."""
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
    """(path, leaf) of all leaves, and the structure. Raises ValueError at a class that was registered without keys."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return [*zip(_paths(tree, is_leaf), leaves, strict=True)], spec


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) of all leaves."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`tree_map` of a function that takes the path of the leaf first."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, [*_paths(tree, is_leaf)], leaves, *[_parts_like(spec, rest) for rest in rests]))


def keystr(kp: KeyPath) -> str:
    """A path as one would write it."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What lies at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _chosen(kind: Any) -> Callable[[Any], bool]:
    """Whether a leaf is of a class or of several, or is chosen by a function."""
    return kind if callable(kind) and not isinstance(kind, type) else lambda leaf: isinstance(leaf, kind)


def map_only(kind: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function of what is of a class, other things as they are."""
    chosen = _chosen(kind)
    return lambda func: lambda x: func(x) if chosen(x) else x


def tree_map_only(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """`func` of the leaves of a class (or that a function chooses); the others as they are."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf = None) -> PyTree:
    """The tree itself, once `func` has seen those leaves."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds for all leaves of a class."""
    return all(map(pred, filter(_chosen(type_or_types), tree_leaves(tree, is_leaf))))


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether it holds for a leaf of a class."""
    return any(map(pred, filter(_chosen(type_or_types), tree_leaves(tree, is_leaf))))


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of a tree, each as often as a structure below it has leaves; None where they do not fit."""
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


replayable_module(__name__)
