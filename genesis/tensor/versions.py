"""Versions: the number of in-place writes to a tensor, which backward compares; a tensor that is given other storage keeps it.

A root counts the writes to its storage, for itself and its views. What brings a count of its own to a storage has `Versions`:
`.data`, and a tensor that was rebound to it, together with its earlier views. Their writes are not the root's.
"""

from __future__ import annotations

from weakref import ref

from genesis.ops.layout import Layout
from genesis.runtime.references import is_sole_owner
from genesis.tensor.handle import Storage, Tensor, attribute, is_of_inference_mode, root_of, tensor_of
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.tensor_state import EXPOSED, UNTRACKED, Versions
from genesis.tracing.trace import Array


def versions_of(tensor: Tensor) -> Versions | None:
    """The count of writes to `tensor`, unless its root has it."""
    return root_of(tensor)._versions if tensor._versions is None else tensor._versions


def own_versions(tensor: Tensor) -> Versions:
    """The count of writes to `tensor` so far, apart from those to its storage."""
    versions = versions_of(tensor)
    if versions is None:
        versions = Versions()
        versions.count, versions.are_ignored = root_of(tensor)._changes % UNTRACKED, False
    return versions


@attribute
def _version(self: Tensor) -> int:
    """The number of in-place writes to the storage, as PyTorch counts them: not through `.data`, nor from outside."""
    refuse("the version of a tensor is read")
    if is_of_inference_mode(self):
        raise RuntimeError("Inference tensors do not track version counter.")
    return own_versions(self).count


def count_write(tensor: Tensor) -> None:
    """Count a write through `tensor`; all views of its storage re-read it."""
    root, versions = root_of(tensor), versions_of(tensor)
    if versions is None:
        root._changes += 1
    else:
        root._changes += UNTRACKED
        versions.count += 1


def retain_at(tensor: Tensor, array: Array) -> None:
    """Have `retain_grad`, which was called on `tensor`, refer to the array that a write gives it."""
    if array.trace is not None and array.node.differentiable and array.node.op != "with_value":
        before = tensor._array.trace.backward.retained if tensor._array.trace is not None else {}
        for index in [index for index, retaining in before.items() if retaining() is tensor]:
            del before[index]
        array.trace.backward_state().retained[array.index] = ref(tensor)


def hand_over_storage(tensor: Tensor, array: Array, layout: Layout | None = None) -> Tensor:
    """A new root, with this array, that takes over the views and the count of writes of the root `tensor`, which is rebound, or
    becomes a view with this `layout` itself. It stands for a leaf, so that gradients of the views are that leaf's.
    """
    is_leaf = tensor._requires_grad and not array.node.differentiable
    storage, bare = tensor._storage, tensor._bare_root and tensor._bare_root()
    root = tensor_of(array, tensor._requires_grad)
    if is_leaf and storage is not None:
        root._stands_for = tensor, _as_it_is
    root._changes, root._versions = tensor._changes, tensor._versions
    root._is_inference, root._keeps_derivation = tensor._is_inference, tensor._keeps_derivation
    root._storage = None if layout is None else Storage()
    if layout is not None:  # from here on nothing is called, and so no signal handler finds the tensor apart from its views
        tensor._base, tensor._layout, tensor._seen, tensor._detached = root, layout, root._changes, is_leaf
    tensor._storage = root._storage
    tensor._changes += EXPOSED  # so that views look their new root up
    if storage is not None:
        storage.root = root
    if bare is not None:
        tensor._bare_root = None
        bare.stand_for(root)
    return root


def _as_it_is(gradient: Tensor) -> Tensor:
    return gradient


def leave_storage(tensor: Tensor) -> None:
    """Before `tensor` is rebound to another storage: its views keep the old one, and all of them the count of their writes."""
    if tensor._base is not None and tensor._versions is None:
        tensor._versions = root_of(tensor)._versions = own_versions(tensor)
    elif tensor._base is None and tensor._storage is not None and not is_sole_owner([tensor._storage], 1):
        tensor._versions = own_versions(tensor)
        hand_over_storage(tensor, tensor._array)
    tensor._base = tensor._layout = tensor._element_map = tensor._storage = tensor._detached_root = None
    tensor._detached = False
    tensor._changes += EXPOSED
