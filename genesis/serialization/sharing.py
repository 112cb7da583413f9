"""Finds tensors that share memory: only one of them is saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from genesis.ir.shapes import numel
from genesis.tensor.handle import Tensor, root_of


def sharing(tensors: Mapping[str, Tensor]) -> list[list[str]]:
    """Groups of sorted names of tensors that share memory."""
    by_root: dict[int, list[tuple[int, int, str]]] = {}
    for name, tensor in tensors.items():
        root = root_of(tensor)
        at = tensor.layout
        if 0 not in at.shape:
            last = at.offset + sum((extent - 1) * stride for extent, stride in zip(at.shape, at.strides, strict=True))
            by_root.setdefault(id(root), []).append((at.offset, last, name))
    groups = []
    for spans in by_root.values():
        reached = -1
        for first, last, name in sorted(spans):
            if first > reached:
                groups.append([name])
            else:
                groups[-1].append(name)
            reached = max(reached, last)
    return [sorted(names) for names in groups]


def _is_whole(tensor: Tensor) -> bool:
    return tensor._base is None or numel(tensor.shape) == numel(tensor._base.shape)


def dropped_names(tensors: Mapping[str, Tensor], preferred: Sequence[str] = ()) -> dict[str, str]:
    """The name of each tensor contained in another -> the name of that one, to keep."""
    dropped: dict[str, str] = {}
    for names in (names for names in sharing(tensors) if len(names) > 1):
        whole = [name for name in names if _is_whole(tensors[name])]
        if not whole:
            raise RuntimeError(f"save_model: {' and '.join(names)} share memory, and none takes all of it; clone() them")
        kept = next((name for name in whole if name in preferred), whole[0])
        dropped |= {name: kept for name in names if name != kept}
    return dropped


def storage_ptr(tensor: Tensor) -> int:
    """The address of the tensor's storage."""
    root = root_of(tensor)
    return root.data_ptr()


def storage_size(tensor: Tensor) -> int:
    """The bytes of the tensor's storage."""
    root = root_of(tensor)
    return root.numel() * root.dtype.itemsize
