"""Types that annotations share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

Scalar = bool | int | float  # a Python number
Extents = int | Sequence[int]  # an argument of `*size` or `*dims`: one int, or a sequence of all
Key = Hashable  # what caches and guards compare
AnyFunction = Callable[..., Any]  # a function of any signature
Arguments = tuple[Any, ...]  # `*args`
Options = Mapping[str, Any]  # `**kwargs`
Attributes = dict[str, Any]  # of a node or a call: non-tensors by name
Tree = Any  # leaves in nested tuples, lists and dicts; see `genesis.pytree`
