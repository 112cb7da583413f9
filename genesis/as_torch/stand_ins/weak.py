"""`torch.utils.weak`: dictionaries whose keys are objects, not what they equal, and that do not keep them alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]

TensorWeakRef = weakref.ref


class WeakIdRef(weakref.ref[Any]):
    """A reference that equals those to the same object."""

    _id: int

    def __new__(cls, key: object, callback: Any = None) -> WeakIdRef:
        """Of the object `key`; `callback(reference)` is called when it is gone."""
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __call__(self) -> Any:
        """The object, or None once it is gone."""
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        own = self()
        return self is other or (own is not None and isinstance(other, WeakIdRef) and other() is own)


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary by the identity of keys, whose entries go with them.

    >>> import genesis
    >>> counts, x = WeakIdKeyDictionary(), genesis.ones(2)
    >>> counts[x] = 3
    >>> counts[x], genesis.ones(2) in counts
    (3, False)
    >>> del x
    >>> len(counts)
    0
    """

    def __init__(self, dict: Mapping[Any, Any] | None = None, ref_type: type[weakref.ref[Any]] = WeakIdRef) -> None:
        self.ref_type = ref_type
        self.data: MutableMapping[weakref.ref[Any], Any] = {}
        self.update(dict or {})

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        data = self.data
        data[self.ref_type(key, lambda gone: data.pop(gone, None))] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter([key for reference in list(self.data) if (key := reference()) is not None])

    def __len__(self) -> int:
        return len(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary
