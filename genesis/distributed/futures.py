"""Futures: results set by another thread, or already recorded: `torch.futures`."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any


class Future(concurrent.futures.Future[Any]):
    """A result that is available later.

    >>> future = genesis.distributed.futures.Future()
    >>> doubled = future.then(lambda done: done.wait() * 2)
    >>> future.set_result(3)
    >>> doubled.wait(), future.done()
    (6, True)
    """

    def __init__(self, *, devices: object = None) -> None:
        super().__init__()

    def wait(self) -> Any:
        """Wait for the result; raises the exception if one was set."""
        return self.result()

    value = wait

    def set_result(self, result: Any) -> None:
        """Set the result. Raises RuntimeError if there is one already."""
        try:
            super().set_result(result)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError("Future: has a result already; want set_result() once") from None

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of `callback`'s result for this one; if the callback fails, waiting for it raises RuntimeError."""
        made = Future()

        def follow(_: object) -> None:
            try:
                made.set_result(callback(self))
            except Exception as problem:
                made.set_exception(RuntimeError(f"Future: a callback raised {type(problem).__name__}: {problem}"))

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

    def count(_: object) -> None:
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
