"""Serialized structures, and dataclasses as containers. Part of `torch.utils._pytree`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from genesis.as_torch.stand_ins.tree_nodes import (
    SERIALIZED, Context, DumpableContext, GetAttrKey, class_named, name_of, register_pytree_node,
)
from genesis.as_torch.stand_ins.trees import LeafSpec, TreeSpec

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
