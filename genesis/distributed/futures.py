"""Futures: results set by another thread, or already recorded: `torch.futures`."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any


class Future:
    """A result that is available later.

    >>> future = genesis.distributed.futures.Future()
    >>> doubled = future.then(lambda done: done.wait() * 2)
    >>> future.set_result(3)
    >>> doubled.wait(), future.done()
    (6, True)
    """

    def __class_getitem__(cls, result: Any) -> type[Future]:
        return cls  # `Future[T]` in annotations

    def __init__(self, *, devices: object = None) -> None:
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether the result is set."""
        return self._future.done()

    def wait(self) -> Any:
        """Wait for the result; raises the exception if one was set."""
        return self._future.result()

    value = wait

    def set_result(self, result: Any) -> None:
        """Set the result."""
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Set an exception, which `wait` raises."""
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback` with this future once it is done."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of `callback`'s result for this one."""
        made = Future()

        def follow(done: Future) -> None:
            try:
                made.set_result(callback(done))
            except Exception as problem:
                made.set_exception(problem)

        self.add_done_callback(follow)
        return made


def resolved(result: Any) -> Future:
    """A future that is done."""
    made = Future()
    made.set_result(result)
    return made


def collect_all(futures: Sequence[Future]) -> Future:
    """The future of the list of all, done when all are."""
    whole, left = Future(), [len(futures)]

    def count(_: Future) -> None:
        left[0] -= 1
        if not left[0]:
            whole.set_result([*futures])

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        whole.set_result([])
    return whole


def wait_all(futures: Sequence[Future]) -> list[Any]:
    """The results, once all are done."""
    return [future.wait() for future in futures]
