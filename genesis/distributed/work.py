"""Work: handles of collectives and messages that have begun."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from genesis.distributed import mpi
from genesis.distributed.futures import Future, resolved
from genesis.distributed.process_group import check_departures, departed, seconds_of
from genesis.execution.realize import realize
from genesis.runtime.groups import CollectiveError
from genesis.tensor.dispatch import array_of
from genesis.tensor.handle import Tensor

_PAUSE = 50e-6  # seconds to sleep: there are often more ranks than processors


class Work:
    """A collective's handle, for `async_op=True`. It is recorded like any operation; reading its result waits for it."""

    def __init__(self, results: Sequence[Tensor] = ()) -> None:
        self._results = list(results)

    def wait(self, timeout: Any = None) -> bool:
        """Returns True: later operations see the result."""
        return True

    def is_completed(self) -> bool:
        """Compute the result if necessary; returns True."""
        for tensor in self._results:
            realize(array_of(tensor))
        return True

    def is_success(self) -> bool:
        """Returns True: failures raise."""
        return True

    def get_future(self) -> Future:
        """The future of the tensors that hold the result."""
        return resolved(self._results)

    def result(self) -> list[Tensor]:
        """The tensors that hold the result."""
        return self._results


class Message(Work):
    """A message's handle: the result of `isend` and `irecv`."""

    def __init__(self, request: Any, finish: Callable[[Any], None], said: str, timeout: float, others: Sequence[int]) -> None:
        super().__init__()
        self._others = others  # possible peers, by global rank
        self.status = mpi.library().Status()
        self.source = -1  # the rank of the sender of a received message
        self._request, self._finish, self._said, self._timeout = request, finish, said, timeout
        self._done = False

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the buffer may be reused; a receiving tensor then has the message. Raises CollectiveError on timeout."""
        end = time.monotonic() + (self._timeout if timeout is None else seconds_of(timeout))
        while not self.is_completed():
            if time.monotonic() > end:
                raise CollectiveError(f"{self._said}: the other rank did not answer in time")
            if len(departed(self._others)) == len(self._others):
                check_departures(self._said, self._others)
            time.sleep(_PAUSE)
        return True

    def is_completed(self) -> bool:
        """Whether `wait` would return at once."""
        if not self._done:
            try:
                self._done = self._request.Test(self.status)
            except mpi.library().Exception as problem:  # the message is longer than the buffer
                raise CollectiveError(f"{self._said}: MPI says: {problem.Get_error_string()}") from None
            if self._done:
                self._finish(self)
        return self._done


NOT_REPLAYABLE = ("Message",)
