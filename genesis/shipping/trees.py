"""Arguments and results as plain data: a JSON description, and the tensors among the leaves.

    ["tensor", k]  ["value", number, text, truth or None]  ["list", items]  ["tuple", items]  ["dict", [[key, item], ..]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from genesis.ir.annotations import Tree

Spec = list[Any]
_ATOMS = (type(None), bool, int, float, str)
_KINDS = {"list": list, "tuple": tuple}


def described(tree: Tree, take: Callable[[Any], int | None], path: str) -> Spec:
    """The description of a tree; `take` returns the number of a tensor leaf, None for other leaves.

    Raises TypeError, which begins with `path`, for leaves that are neither tensors nor plain data.

    >>> described((1, ["x", None]), lambda leaf: None, "argument 0")
    ['tuple', [['value', 1], ['list', [['value', 'x'], ['value', None]]]]]
    """
    number = take(tree)
    if number is not None:
        return ["tensor", number]
    if type(tree) in _ATOMS:
        return ["value", tree]
    if isinstance(tree, dict) and all(type(key) in _ATOMS for key in tree):
        return ["dict", [[key, described(item, take, f"{path}[{key!r}]")] for key, item in tree.items()]]
    if isinstance(tree, list | tuple):
        kind = "list" if isinstance(tree, list) else "tuple"
        return [kind, [described(item, take, f"{path}[{k}]") for k, item in enumerate(tree)]]
    raise TypeError(
        f"{path} is a {type(tree).__name__}; want tensors, numbers, texts, None, and lists, tuples and dicts of them")


def built(spec: Spec, tensors: Sequence[Any]) -> Tree:
    """The tree of a description, with these tensors."""
    kind, content = spec
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: built(item, tensors) for key, item in content}
    return content if kind == "value" else _KINDS[kind](built(item, tensors) for item in content)


def tensors_of(spec: Spec, tree: Tree, path: str) -> list[tuple[str, Any]]:
    """The leaves where a description has tensors, with their paths. Raises ValueError for a tree that does not match."""
    kind, content = spec
    if kind == "tensor":
        return [(path, tree)]
    if kind == "value":
        if type(tree) is not type(content) or repr(tree) != repr(content):
            raise ValueError(f"{path} is {tree!r:.60}; the program was exported for {content!r:.60}")
        return []
    wanted = dict if kind == "dict" else _KINDS[kind]
    keys = [key for key, _ in content] if kind == "dict" else range(len(content))
    if not isinstance(tree, wanted) or ([*tree] != keys and kind == "dict") or len(tree) != len(content):
        had = f"{kind} of {', '.join(map(repr, keys))}" if kind == "dict" else f"{kind} of length {len(content)}"
        raise ValueError(f"{path} is {tree!r:.60}; the program was exported for a {had}")
    items = [item for _, item in content] if kind == "dict" else content
    return [leaf for key, item in zip(keys, items, strict=True) for leaf in tensors_of(item, tree[key], f"{path}[{key!r}]")]
