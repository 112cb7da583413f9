"""The setting whether results may depend on the number of threads, and whether nondeterministic operations raise."""

from __future__ import annotations

import warnings
from typing import NamedTuple


__all__ = [
    "are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode", "use_deterministic_algorithms",
]

PLANNED = 4  # threads that sums are divided for while the setting is on
_LEVELS = {"default": 0, "warn": 1, "error": 2}


class _Setting(NamedTuple):
    """The arguments of `use_deterministic_algorithms`."""

    enabled: bool = False
    warn_only: bool = False


setting = [_Setting()]


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """With True, results do not depend on the number of threads, and operations without a deterministic algorithm raise.

    On the CPU every operation sums in a fixed order in any case. The setting also fixes how sums are divided, whatever
    `set_num_threads` says, so that any number of threads gives the same bits. On a GPU, float additions to one element
    from several threads raise RuntimeError, or warn with `warn_only`. Raises TypeError for a mode that is no bool.

    >>> genesis.use_deterministic_algorithms(True)
    >>> genesis.are_deterministic_algorithms_enabled()
    True
    >>> genesis.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms: mode wants True or False, got {type(mode).__name__} {mode!r}")
    setting[0] = _Setting(mode, mode and warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was set."""
    return setting[0].enabled


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether `use_deterministic_algorithms` was set with `warn_only`."""
    return setting[0].warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same setting as a level: 0 or "default" for off, 1 or "warn", 2 or "error".

    Raises TypeError for other types, and RuntimeError for other values.

    >>> genesis.set_deterministic_debug_mode("warn")
    >>> genesis.get_deterministic_debug_mode()
    1
    >>> genesis.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"set_deterministic_debug_mode: wants a number or a word, got {type(debug_mode).__name__}")
    level = _LEVELS.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if level not in _LEVELS.values():
        raise RuntimeError(f"set_deterministic_debug_mode: {debug_mode!r}; want 0, 1, 2, 'default', 'warn' or 'error'")
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


def get_deterministic_debug_mode() -> int:
    """0 if `use_deterministic_algorithms` is off, 1 if it warns, 2 if it raises."""
    enabled, warn_only = setting[0]
    return 0 if not enabled else 1 if warn_only else 2


def planned_threads() -> int:
    """The number of threads for which sums are divided; 0 for the present number."""
    return PLANNED if setting[0].enabled else 0


def refuse(operation: str, why: str) -> None:
    """Raise RuntimeError, or warn, if the setting is on: `operation` has no deterministic algorithm."""
    enabled, warn_only = setting[0]
    if not enabled:
        return
    said = f"{operation}: {why}, and use_deterministic_algorithms(True) is set"
    if not warn_only:
        raise RuntimeError(f"{said}; want warn_only=True, or the operation on the CPU")
    warnings.warn(said, stacklevel=2)
