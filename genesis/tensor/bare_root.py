"""Roots of detached tensors, which must not keep the derivation of what they were detached from."""

from __future__ import annotations

from typing import Any
from weakref import ref

from genesis.ops.registry import OPERATIONS
from genesis.tensor.dispatch import call
from genesis.tensor.handle import Tensor, attributes_of
from genesis.tensor.view_memory import is_whole
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

    _kept: tuple[Array, int]  # its values, once the other is gone, and the version that had these

    def present(self) -> Tensor:
        """The root that it stands for; if that is gone, this one, which becomes an ordinary root."""
        root = self._origin and self._origin()
        if root is not None:
            return root
        own = attributes_of(self)
        if (kept := own.get("_kept")) is not None:  # else another thread has come first
            array, changes = kept
            if array.node.differentiable and array.memory is not None:
                array = _bare(array)
            own.update(_array=array, _changes=changes, _requires_grad=False, _origin=None)
        self.__class__ = Tensor  # type: ignore[assignment]
        own.pop("_kept", None)
        return self

    def stand_for(self, root: Tensor) -> None:
        """Stand for `root`, which has the values of this one."""
        self._origin, root._bare_root = ref(root), ref(self)
        follow(self, root)


def bare_root(root: Tensor, array: Array | None) -> Tensor:
    """The bare root of `root`, which has views; `array` has the same values without a derivation, if any has."""
    known = root._bare_root
    bare: BareRoot | None = known and known()
    if bare is not None:
        return bare
    whole = root._array
    if array is None:
        array = call(OPERATIONS["stop_gradient"], (root,))._array if whole.memory is None else _bare(whole)
    elif whole.memory is not None:
        same_value(array, whole)
    bare = _new(BareRoot)
    bare._kept = array, root._changes
    bare._storage, bare._origin = root._storage, ref(root)
    root._bare_root = ref(bare)
    return bare


_new = object.__new__


def hold_no_derivation(view: Tensor, root: Tensor) -> None:
    """Have a detached view of `root` keep the bare root alive, if that is known."""
    whole = root._array
    if whole.node.differentiable and (whole.memory is not None or is_whole(view, root)):
        view._base = bare_root(root, view._array if whole.memory is None else None)


def update_bare_root(root: Tensor) -> None:
    """After a change of `root`: have its bare root, if there is one, keep its present values."""
    bare = root._bare_root and root._bare_root()
    if bare is not None:
        follow(bare, root)


def follow(bare: BareRoot, root: Tensor) -> None:
    """Have a bare root keep the present values of `root`, or `root` itself once that has no derivation."""
    array, (kept, changes) = root._array, bare._kept
    if not array.node.differentiable:
        bare._origin = lambda: root
    if array.memory is not None:
        if kept.memory is not array.memory:
            kept = _bare(array)
    elif changes != root._changes:
        kept = array
    bare._kept = kept, root._changes


def _bare(array: Array) -> Array:
    """The computed value of `array` without its derivation."""
    assert array.memory is not None
    made = Array.over(array.memory, array.node.dtype)
    same_value(made, array)
    return made
