"""Switching autocast on: a context manager that is a decorator too, and the flag `genesis.enable_autocast`.

What becomes of an operation's arguments is in its row: see `genesis.ops.autocast`. A context belongs to the thread that
entered it. The flag belongs to the process, and says what holds where a thread is in no context.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from genesis.ir.dtypes import DType, bfloat16, float16
from genesis.runtime.devices import device_of
from genesis.tracing.state import thread_state

__all__ = ["SwitchedModule", "autocast", "is_autocast_enabled"]


class autocast:
    """Within it, products compute from 16-bit operands, and what needs the range or digits of float32 has them.

    Args:
        device_type: "cpu" or a `genesis.device`; may be left out, so that `autocast(genesis.float16)` is fine.
        dtype: genesis.bfloat16, which has the range of float32 and needs no loss scaling, or genesis.float16, which has
            more digits but overflows at 65504: train with it under a `genesis.amp.GradScaler`.
        enabled: False makes it a region where nothing is cast, unless the flag `genesis.enable_autocast` is set.
        cache_enabled: accepted as PyTorch's; equal casts of one program are always computed once.

    Parameters and their gradients keep their dtype, and so does what an in-place operation writes to. Enter it for the
    forward pass and the loss: backward follows the casts that forward made. Raises TypeError for another dtype.

    >>> import genesis
    >>> x, w = genesis.ones(2, 3), genesis.ones(3, 2)
    >>> with genesis.autocast():
    ...     y = x @ w
    ...     y.dtype, y.exp().dtype
    (genesis.bfloat16, genesis.float32)
    """

    def __init__(
        self, device_type: Any = None, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if isinstance(device_type, DType):
            device_type, dtype = None, device_type
        elif isinstance(device_type, bool):
            device_type, enabled = None, device_type
        device_of(device_type)
        if dtype not in (None, float16, bfloat16):
            raise TypeError(f"autocast: dtype must be genesis.bfloat16 or genesis.float16, got {dtype!r}")
        self._dtype = (dtype or bfloat16) if enabled else None

    def __enter__(self) -> None:
        low = type(thread_state).autocast if self._dtype is None else self._dtype
        thread_state.autocasts += (low,)  # no call, and so no interrupt, comes between this and the next line
        thread_state.autocast = low

    def __exit__(self, *problem: object) -> None:
        still_open = thread_state.autocasts = thread_state.autocasts[:-1]
        if still_open:
            thread_state.autocast = still_open[-1]
        else:
            del thread_state.autocast

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def within(*args: Any, **kwargs: Any) -> Any:
            before = thread_state.autocasts
            try:
                with self:
                    return function(*args, **kwargs)
            finally:
                if thread_state.autocasts != before:  # an interrupt came as the context was left
                    self.__exit__()

        return within


def is_autocast_enabled(device_type: Any = None) -> bool:
    """Whether operations of this thread are cast now.

    >>> import genesis
    >>> with genesis.autocast(enabled=False):
    ...     genesis.is_autocast_enabled()
    False
    """
    device_of(device_type)
    return thread_state.autocast is not None


class SwitchedModule(ModuleType):
    """The class of the module `genesis`, which makes `enable_autocast` an attribute that acts when it is assigned to."""

    @property
    def enable_autocast(self) -> bool:
        """Whether operations are cast, to bfloat16, wherever no autocast context says otherwise; False at first.

        >>> import genesis
        >>> genesis.enable_autocast = True
        >>> (genesis.ones(2, 3) @ genesis.ones(3, 2)).dtype
        genesis.bfloat16
        >>> genesis.enable_autocast = False
        """
        return type(thread_state).autocast is not None

    @enable_autocast.setter
    def enable_autocast(self, enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise TypeError(f"enable_autocast: wants True or False, got {enabled!r}")
        type(thread_state).autocast = bfloat16 if enabled else None
