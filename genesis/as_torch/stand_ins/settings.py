"""Settings for parts of PyTorch that genesis lacks: stored, without effect."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar


T = TypeVar("T")


class Settings:
    """Attributes with the values that were set; others are False.

    >>> config = Settings(cache_size_limit=8)
    >>> config.verbose = True
    >>> config.cache_size_limit, config.verbose, config.suppress_errors
    (8, True, False)
    """

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return False

    @contextlib.contextmanager
    def patch(self, *changes: Any, **named: Any) -> Iterator[None]:
        """Set values within a context, given as a dict, as a name and a value, or by keywords."""
        new = {**(changes[0] if len(changes) == 1 else dict([changes]) if changes else {}), **named}
        before = dict(vars(self))
        vars(self).update(new)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)


@contextlib.contextmanager
def no_effect(*args: Any, **kwargs: Any) -> Iterator[None]:
    """A context without effect."""
    yield


def always(value: T) -> Callable[..., T]:
    """A function that returns `value`, which nobody changes, for any arguments."""
    return lambda *args, **kwargs: value


def stored(value: Any) -> tuple[Callable[[Any], None], Callable[[], Any]]:
    """(sets, returns) of a setting that is `value` at first."""
    kept = [value]

    def set_to(enabled: Any) -> None:
        kept[0] = enabled

    return set_to, lambda: kept[0]


def no(*args: Any, **kwargs: Any) -> bool:
    """Returns False."""
    return False


def yes(*args: Any, **kwargs: Any) -> bool:
    """Returns True."""
    return True


def nothing(*args: Any, **kwargs: Any) -> None:
    """Does nothing."""


def itself(*args: Any, **kwargs: Any) -> Any:
    """The first argument, for what PyTorch makes something else of."""
    return next(iter((*args, *kwargs.values())))


NOT_REPLAYABLE = ("patch", "stored")
