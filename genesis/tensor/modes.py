"""Modes of a thread: whether calls are recorded for backward, and the dtypes that autocast computes in.

Each is a context manager that is a decorator too, and belongs to the thread that entered it. The flag
`genesis.enable_autocast` belongs to the process: it applies outside of autocast contexts. Rows say how autocast converts an
operation's arguments: see `genesis.ops.autocast`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from genesis.ir.annotations import AnyFunction
from genesis.ir.dtypes import DType, as_dtype, bfloat16, float16
from genesis.runtime.devices import Device, DeviceLike, device_of
from genesis.tracing.state import grad_mode, thread_state


def is_grad_enabled() -> bool:
    """Whether operations are recorded for backward in this thread.

    >>> with genesis.no_grad():
    ...     genesis.is_grad_enabled()
    False
    """
    return bool(thread_state.grad_enabled)


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode.

    >>> with genesis.inference_mode():
    ...     genesis.is_inference_mode_enabled()
    True
    """
    return thread_state.grad_enabled is None


def decorated(function: AnyFunction, run: AnyFunction) -> AnyFunction:
    """`function` wrapped so that each call is `run(function, ..)`; for a generator each step, so that its caller is outside."""

    @functools.wraps(function)
    def called(*args: object, **kwargs: object) -> object:
        return run(function, *args, **kwargs)

    @functools.wraps(function)
    def resumed(*args: object, **kwargs: object) -> Iterator[object]:
        generator = function(*args, **kwargs)
        step = functools.partial(next, generator)
        try:
            while True:
                value = run(step)
                try:
                    step = functools.partial(generator.send, (yield value))
                except BaseException as problem:
                    step = functools.partial(generator.throw, problem)
        except StopIteration as end:
            return end.value

    return resumed if inspect.isgeneratorfunction(function) else called


class _GradMode:
    """Sets the mode on entry and restores it on exit; as a decorator, around every call."""

    _enabled: bool | None = False

    def __init__(self) -> None:
        self._before: list[bool | None] = []

    def _mode_within(self) -> bool | None:
        """The mode on entry; inference mode stays."""
        return None if thread_state.grad_enabled is None else self._enabled

    def __enter__(self) -> None:
        self._before.append(thread_state.grad_enabled)
        thread_state.grad_enabled = self._mode_within()

    def __exit__(self, *problem: object) -> None:
        thread_state.grad_enabled = self._before[-1]
        self._before.pop()

    def __call__(self, function: AnyFunction) -> AnyFunction:
        def switched(step: AnyFunction, /, *args: object, **kwargs: object) -> object:
            with grad_mode(self._mode_within()):
                return step(*args, **kwargs)

        return decorated(function, switched)


def _decorating(cls: type[_GradMode], function: AnyFunction | None) -> Any:
    """`@no_grad` without parentheses decorates at once."""
    mode = object.__new__(cls)
    if function is None:
        return mode
    _GradMode.__init__(mode)
    return mode(function)


def _flag(name: str, mode: object) -> bool:
    if not isinstance(mode, bool):
        raise TypeError(f"{name}: wants True or False, got {type(mode).__name__} {mode!r:.40}")
    return mode


class no_grad(_GradMode):
    """Within it, results do not require gradients.

    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _enabled = False

    def __new__(cls, orig_func: AnyFunction | None = None) -> Any:
        return _decorating(cls, orig_func)


class enable_grad(_GradMode):
    """Within it, results require gradients again, inside `no_grad` too.

    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.no_grad(), genesis.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    _enabled = True

    def __new__(cls, orig_func: AnyFunction | None = None) -> Any:
        return _decorating(cls, orig_func)


class set_grad_enabled(_GradMode):
    """Switch to `mode`, True or False, at once; as a context manager, back on exit. Raises TypeError for another `mode`.

    >>> with genesis.set_grad_enabled(False):
    ...     genesis.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self._enabled = _flag("set_grad_enabled", mode)
        self._at_first = thread_state.grad_enabled
        thread_state.grad_enabled = self._mode_within()

    def __enter__(self) -> None:
        self._before.append(self._at_first)
        thread_state.grad_enabled = self._mode_within()

    def __call__(self, function: AnyFunction) -> AnyFunction:
        thread_state.grad_enabled = self._at_first
        return super().__call__(function)


class inference_mode(_GradMode):
    """As `no_grad`; results have no version, and are written to only in the mode. `inference_mode(False)` records.

    Raises TypeError for a `mode` that is no bool.

    >>> x = genesis.ones(2, requires_grad=True)
    >>> with genesis.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    def __new__(cls, mode: bool | AnyFunction = True) -> Any:
        return _decorating(cls, mode if callable(mode) else None)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._enabled = None if _flag("inference_mode", mode) else True

    def _mode_within(self) -> bool | None:
        return self._enabled


# ---- autocast ----


def device_is_here(device: DeviceLike, name: str, enabled: bool) -> bool:
    """Whether a device for mixed precision exists; warns if it is `enabled` for a GPU where there is none."""
    try:
        device_of(device)
    except ValueError:
        if str(device).partition(":")[0] != "cuda":
            raise
        if enabled:
            warnings.warn(f"{name}: device_type is 'cuda', but CUDA is not available; it is disabled", stacklevel=3)
        return False
    return True


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

    >>> x, w = genesis.ones(2, 3), genesis.ones(3, 2)
    >>> with genesis.autocast():
    ...     y = x @ w
    ...     y.dtype, y.exp().dtype
    (genesis.bfloat16, genesis.float32)
    """

    def __init__(
        self, device_type: DeviceLike | DType | bool = None, dtype: DType | None = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if isinstance(device_type, DType):
            device_type, dtype = None, device_type
        elif isinstance(device_type, bool):
            enabled, device_type = device_type, None
        self._device_is_here = device_is_here(device_type, "autocast", enabled)
        low = bfloat16 if dtype is None else as_dtype("autocast", dtype)
        if low not in (float16, bfloat16):
            raise TypeError(f"autocast: dtype must be genesis.bfloat16 or genesis.float16, got {dtype!r}")
        self._dtype = low if enabled else None

    def __enter__(self) -> None:
        low = type(thread_state).autocast if self._dtype is None else self._dtype
        low = low if self._device_is_here else thread_state.autocast
        thread_state.autocasts += (low,)  # no call until the next line, and so no interrupt
        thread_state.autocast = low

    def __exit__(self, *problem: object) -> None:
        still_open = thread_state.autocasts = thread_state.autocasts[:-1]
        if still_open:
            thread_state.autocast = still_open[-1]
        else:
            del thread_state.autocast

    def __call__(self, function: AnyFunction) -> AnyFunction:
        @functools.wraps(function)
        def within(*args: object, **kwargs: object) -> object:
            before = thread_state.autocasts
            try:
                with self:
                    return function(*args, **kwargs)
            finally:
                if thread_state.autocasts != before:  # an interrupt arrived during the exit
                    self.__exit__()

        return within


def is_autocast_enabled(device_type: DeviceLike = None) -> bool:
    """Whether operations of this thread are cast now; never on a GPU where there is none.

    >>> with genesis.autocast(enabled=False):
    ...     genesis.is_autocast_enabled()
    False
    """
    is_here = device_type is None or Device(device_type).reason is None
    return is_here and thread_state.autocast is not None


class SwitchedModule(ModuleType):
    """The class of the module `genesis`, for its settable property `enable_autocast`."""

    @property
    def enable_autocast(self) -> bool:
        """Whether operations are cast, to bfloat16, wherever no autocast context says otherwise; False at first.

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
