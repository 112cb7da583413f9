"""Which plans to remember: those that ran last, as long as all of them together are not too large."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

SIZE_LIMIT = 200_000  # nodes, of about 1 KB each


class PlanCache:
    """Plans lie in dictionaries where they were made; this takes the longest unused out of theirs.

    The caller sees to it that one thread at a time asks.
    """

    def __init__(self, size_limit: int = SIZE_LIMIT) -> None:
        self._size_limit = size_limit
        self._size = 0
        self._entries: OrderedDict[tuple[int, Any], tuple[dict[Any, Any], int]] = OrderedDict()
        self._latest: Any = None  # the plan that was used last

    def get(self, home: dict[Any, Any], key: Any) -> Any:
        """The plan that `home` holds under `key`, or None."""
        plan = home.get(key)
        if plan is not None and plan is not self._latest:
            self._entries.move_to_end((id(home), key))
            self._latest = plan
        return plan

    def put(self, home: dict[Any, Any], key: Any, plan: Any, size: int) -> None:
        """Keep a new plan of `size` nodes in `home`.

        >>> cache, home = PlanCache(size_limit=5), {}
        >>> for name in "abc":
        ...     cache.put(home, name, name.upper(), size=2)
        >>> home
        {'b': 'B', 'c': 'C'}
        """
        self._entries[id(home), key] = home, size
        self._size += size
        home[key] = self._latest = plan
        while self._size > self._size_limit and len(self._entries) > 1:
            (_, oldest), (where, freed) = self._entries.popitem(last=False)
            self._size -= freed
            where.pop(oldest, None)


plan_cache = PlanCache()
