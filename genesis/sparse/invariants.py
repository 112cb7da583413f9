"""Optional checks of sparse tensors' parts."""

from __future__ import annotations

import threading
from types import TracebackType

from genesis.functions.methods.conversion import values_of
from genesis.ir.errors import ArgumentError
from genesis.ir.replayable import replayable_module
from genesis.sparse.sparse_tensor import SparseTensor


class _Setting(threading.local):
    is_on = False


_setting = _Setting()


class check_sparse_tensor_invariants:
    """A context (or `enable` and `disable`) in which new sparse tensors' indices are checked.

    Without it, indices out of range are detected when used: operations check what they read and write.

    >>> with genesis.sparse.check_sparse_tensor_invariants():
    ...     genesis.sparse_coo_tensor([[5]], [1.0], (3,))
    Traceback (most recent call last):
    ...
    genesis.ir.errors.ArgumentError: sparse_coo_tensor: index 5 along axis 0 of extent 3; want 0 to 2
    """

    def __init__(self, enable: bool = True) -> None:
        self._wanted = enable
        self._before: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked."""
        return _setting.is_on

    @staticmethod
    def enable() -> None:
        """Start checking indices."""
        _setting.is_on = True

    @staticmethod
    def disable() -> None:
        """Stop checking indices."""
        _setting.is_on = False

    def __enter__(self) -> check_sparse_tensor_invariants:
        self._before.append(_setting.is_on)
        _setting.is_on = self._wanted
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _setting.is_on = self._before.pop()


def checked(x: SparseTensor, wanted: bool | None) -> SparseTensor:
    """The tensor, after checking its indices if `wanted` (None: the setting). Raises ValueError."""
    if not (_setting.is_on if wanted is None else wanted):
        return x
    name = f"{x._kind.name}_tensor"
    if x._pointers is not None:
        starts, count = values_of(x._pointers), x._positions.shape[1]
        if starts[0] != 0 or starts[-1] != count or (starts[1:] < starts[:-1]).any():
            met = f"go from {starts[0]} to {starts[-1]}"
            raise ArgumentError(f"{name}: {x._kind.pointers} of {count} elements {met}; want them to rise from 0 to {count}")
    for axis, (indices, extent) in enumerate(zip(values_of(x._positions), x.extents, strict=True)):
        wrong = indices[(indices < 0) | (indices >= extent)]
        if len(wrong):
            raise ArgumentError(f"{name}: index {wrong[0]} along axis {axis} of extent {extent}; want 0 to {extent - 1}")
    if x._kind.axis is not None:
        lines, indices = (values_of(x._positions[axis]) for axis in (x._kind.axis, 1 - x._kind.axis))
        if ((lines[1:] == lines[:-1]) & (indices[1:] <= indices[:-1])).any():
            raise ArgumentError(f"{name}: {x._kind.others} of one {'column' if x._kind.axis else 'row'} must rise, and do not")
    return x


replayable_module(__name__, but=("enable", "disable", "__enter__", "__exit__"))
