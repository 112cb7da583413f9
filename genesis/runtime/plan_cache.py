"""A cache of plans: the least recently used are dropped beyond a total size."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import Any

from genesis.ir.annotations import Key

SIZE_LIMIT = 200_000  # nodes, of about 1 KB each
REPLAY = None  # a key of `Plans` beside those of plans
Plans = dict[Any, Any]  # plans by their keys, as a trace has them; at REPLAY, functions that flush by some of them
_removed = contextlib.suppress(KeyError)


class PlanCache:
    """Plans are in the dictionaries of their traces; this removes the least recently used. One thread at a time may call.
    """

    def __init__(self, size_limit: int = SIZE_LIMIT) -> None:
        self._size_limit = size_limit
        self._size = 0
        self.entries: OrderedDict[tuple[int, Key], tuple[Plans, int]] = OrderedDict()
        self.latest: Any = None  # the plan that was used last

    def note(self, plans: Plans, key: Key, plan: Any) -> None:
        """Note that a plan is used; the latest one need not be noted again."""
        with _removed:  # by a signal handler right now
            self.entries.move_to_end((id(plans), key))
        self.latest = plan

    def put(self, plans: Plans, key: Key, plan: Any, size: int) -> None:
        """Keep a new plan of `size` nodes in `plans`.

        >>> cache, plans = PlanCache(size_limit=5), {}
        >>> for name in "abc":
        ...     cache.put(plans, name, name.upper(), size=2)
        >>> plans
        {'b': 'B', 'c': 'C'}
        """
        _, before = self.entries.pop((id(plans), key), (plans, 0))  # one that a signal handler has put there in the meantime
        self.entries[id(plans), key] = plans, size
        self._size += size - before
        plans[key] = self.latest = plan
        while self._size > self._size_limit and len(self.entries) > 1:
            (_, oldest), (where, freed) = self.entries.popitem(last=False)
            self._size -= freed
            where.pop(oldest, None)
            where.pop(REPLAY, None)


plan_cache = PlanCache()
