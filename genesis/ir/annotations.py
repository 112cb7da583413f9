"""Types that annotations share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

Scalar = bool | int | float  # a Python number
Extents = int | Sequence[int]  # the one argument of `*size`, `*dims`: an int each, or all in one sequence
Key = Hashable  # what a cache or a guard compares
AnyFunction = Callable[..., Any]  # a function whose signature is its caller's business
Arguments = tuple[Any, ...]  # what `*args` holds
Options = Mapping[str, Any]  # what `**kwargs` holds
Attributes = dict[str, Any]  # of a node or a call: what is no tensor, by name
Tree = Any  # leaves in nested tuples, lists and dicts; see `genesis.pytree`
