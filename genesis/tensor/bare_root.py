"""Roots of detached tensors, which must not keep the derivation of what they were detached from."""

from __future__ import annotations

import weakref
from typing import Any

from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, attributes_of
from genesis.tracing.recording_hooks import same_value
from genesis.tracing.trace import Array


def _shared(name: str) -> Any:
    """An attribute of the root that a bare root stands for."""

    def read(self: BareRoot) -> Any:
        root = self.present()
        if root is not self:
            follow(self, root)
        return getattr(root, name)

    def write(self: BareRoot, value: Any) -> None:
        root = self.present()
        setattr(root, name, value)
        if root is not self:
            follow(self, root)

    return property(read, write)


class BareRoot(Tensor):
    """A root that stands for another one, which has a derivation, as long as that is alive.

    Afterwards it is an ordinary root with the last values of the other.
    """

    _array, _changes = _shared("_array"), _shared("_changes")
    _requires_grad, _keeps_derivation = _shared("_requires_grad"), _shared("_keeps_derivation")

    def present(self) -> Tensor:
        """The root that it stands for; if that is gone, this one, which becomes an ordinary root."""
        root = self._origin and self._origin()
        if root is not None:
            return root
        own = attributes_of(self)
        if own.pop("_origin", None) is not None and own["_array"].node.differentiable and own["_array"].memory is not None:
            own["_array"] = _bare(own["_array"])
        self.__class__ = Tensor  # type: ignore[assignment]
        return self

    def stand_for(self, root: Tensor) -> None:
        """Stand for `root`, which has the values of this one."""
        self._origin, root._bare_root = weakref.ref(root), weakref.ref(self)
        follow(self, root)


def bare_root(root: Tensor, array: Array | None) -> Tensor:
    """The bare root of `root`, which has views; `array` has the same values without a derivation, if any has."""
    known = root._bare_root and root._bare_root()
    if known is not None:
        return known  # type: ignore[no-any-return]
    if array is None:
        whole = root._array
        array = call(OPERATIONS["stop_gradient"], (root,))._array if whole.memory is None else _bare(whole)
    bare = object.__new__(BareRoot)
    attributes_of(bare).update(_array=array, _changes=root._changes, _requires_grad=False, _keeps_derivation=False,
                               _storage=root._storage, _origin=weakref.ref(root))
    root._bare_root = weakref.ref(bare)
    return bare


def followed(root: Tensor) -> None:
    """After a change of `root`: have its bare root, if there is one, keep its present values."""
    bare = root._bare_root and root._bare_root()
    if bare is not None:
        follow(bare, root)


def follow(bare: Tensor, root: Tensor) -> None:
    """Have a bare root keep the present values of `root`, or `root` itself once that has no derivation."""
    own, array = attributes_of(bare), root._array
    if not array.node.differentiable:
        bare._origin = lambda: root
    if array.memory is not None:
        if own["_array"].memory is not array.memory:
            own["_array"] = _bare(array)
    elif own["_changes"] != root._changes:
        own["_array"] = array
    own["_changes"] = root._changes


def _bare(array: Array) -> Array:
    """The computed value of `array` without its derivation."""
    assert array.memory is not None
    made = Array.over(array.memory, array.node.dtype)
    same_value(made, array)
    return made
