"""Versions: the number of in-place writes to a tensor, which backward compares.

A root counts the writes to its storage, for itself and its views. What brings a count of its own to a storage has `Versions`:
`.data`, and a tensor that was rebound to it, together with its earlier views. Their writes are not the root's.
"""

from __future__ import annotations

from genesis.ir.replayable import replayable_module
from genesis.runtime.references import is_sole_owner
from genesis.tensor.handle import Tensor, attribute, hand_over_storage, is_of_inference_mode, root_of
from genesis.tracing.recording_hooks import refuse
from genesis.tracing.tensor_state import EXPOSED, UNTRACKED, Versions


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


replayable_module(__name__)
