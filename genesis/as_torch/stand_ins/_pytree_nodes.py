"""A registry of container classes: how each is flattened and rebuilt. Part of `torch.utils._pytree`."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from genesis.tensor.return_types import ReturnType

PyTree = Any
Context = Any
DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]


class NodeDef(NamedTuple):
    """How a container is flattened into (children, context), and rebuilt from them."""

    type: Any
    flatten_fn: Callable[[Any], tuple[list[Any], Context]]
    unflatten_fn: Callable[[Iterable[Any], Context], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Context]] | None


class SerializedDef(NamedTuple):
    """The name of a class in serialized structures, and its contexts' conversion to JSON and back."""

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
    """Register a container class. Raises ValueError if it is registered already."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _register_pytree_node(
        cls, flatten_fn, unflatten_fn, serialized_type_name=serialized_type_name, to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context, flatten_with_keys_fn=flatten_with_keys_fn)


def _register_pytree_node(
    cls: Any, flatten_fn: Any, unflatten_fn: Any, *ignored: Any, serialized_type_name: str | None = None,
    to_dumpable_context: Any = None, from_dumpable_context: Any = None, flatten_with_keys_fn: Any = None,
) -> None:
    """Register a container class, or replace it. Raises ValueError if only one function for JSON is given."""
    if (to_dumpable_context is None) is not (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SERIALIZED[cls] = SerializedDef(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Set the name of a class of named tuples in serialized structures."""
    SERIALIZED[cls] = SerializedDef(cls, serialized_type_name, None, None)


def _get_node_type(tree: Any) -> Any:
    """The class under which a tree's root is registered: `namedtuple` for named tuples."""
    return namedtuple if is_namedtuple_class(type(tree)) or isinstance(tree, ReturnType) else type(tree)


# ---- Python's containers ----
@dataclass(frozen=True)
class SequenceKey:
    """An index into a list, a tuple or a deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """The item."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A key of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """The value of `mapping` at this key."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A field of a named tuple, or of an object of a registered class."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The field's value."""
        return getattr(obj, self.name)


def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], Context]:
    """The values; the keys."""
    return [*d.values()], [*d]


def _dict_unflatten(values: Iterable[Any], context: Context) -> dict[Any, Any]:
    """The dict with these keys."""
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[Any, Any]], Context]:
    """The values with their keys; the keys."""
    return [(MappingKey(key), value) for key, value in d.items()], [*d]


def _list_flatten(d: list[Any]) -> tuple[list[Any], Context]:
    """The children of a list, and no context."""
    return d, None


def _list_unflatten(values: Iterable[Any], context: Context) -> list[Any]:
    """The list of these children."""
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


# ---- named tuples ----


def is_namedtuple_class(cls: type) -> bool:
    """Whether it is a class of named tuples."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple) and all(
        callable(getattr(cls, name, None)) for name in ("_make", "_asdict"))


def is_structseq_class(cls: type) -> bool:
    """Whether it is a class of C's named tuples, such as `time.struct_time`."""
    counts = "n_fields", "n_sequence_fields", "n_unnamed_fields"
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and all(isinstance(getattr(cls, n, None), int) for n in counts)


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(_class_of(obj))


def is_structseq(obj: Any) -> bool:
    """Whether it is one of C's named tuples, or a class of them."""
    return is_structseq_class(_class_of(obj))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_structseq_instance(obj: object) -> bool:
    """Whether it is one of C's named tuples."""
    return is_structseq_class(type(obj))


def _class_of(obj: Any) -> type:
    return obj if isinstance(obj, type) else type(obj)


_is_namedtuple_instance = is_namedtuple_instance
