"""Results that another thread brings, or that are recorded already: `torch.futures`."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Any

from genesis.ir.replayable import replayable_module


class Future:
    """A result that is there later.

    >>> future = genesis.distributed.futures.Future()
    >>> doubled = future.then(lambda done: done.wait() * 2)
    >>> future.set_result(3)
    >>> doubled.wait(), future.done()
    (6, True)
    """

    def __class_getitem__(cls, result: Any) -> type[Future]:
        return cls  # an annotation

    def __init__(self, *, devices: object = None) -> None:
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether it is there."""
        return self._future.done()

    def wait(self) -> Any:
        """The result, once it is there; raises the exception that was set instead."""
        return self._future.result()

    value = wait

    def set_result(self, result: Any) -> None:
        """Bring the result."""
        self._future.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Have those who wait raise this."""
        self._future.set_exception(result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Call `callback` with this once the result is there."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of what `callback` makes of this one."""
        made = Future()

        def follow(done: Future) -> None:
            try:
                made.set_result(callback(done))
            except Exception as problem:
                made.set_exception(problem)

        self.add_done_callback(follow)
        return made


def resolved(result: Any) -> Future:
    """A future that is there already."""
    made = Future()
    made.set_result(result)
    return made


def collect_all(futures: Sequence[Future]) -> Future:
    """The future of the list of all, once the last is there."""
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
    """The results, once all are there."""
    return [future.wait() for future in futures]


replayable_module(__name__)
