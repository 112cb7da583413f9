"""Waiting for recorded work."""

from genesis.execution.flush import flush_all
from genesis.runtime.devices import seen_devices


def synchronize() -> None:
    """Run this thread's pending work on every device, and wait until it is done: for timing.

    >>> import time
    >>> x = genesis.ones(1000, 1000)
    >>> start = time.perf_counter()
    >>> y = x @ x
    >>> genesis.synchronize()
    >>> seconds = time.perf_counter() - start  # of the product, not of its recording alone
    """
    flush_all()
    for device in [*seen_devices] if seen_devices else ():
        if device.type == "cuda" and device.reason is None:
            device.memory.synchronize()


NOT_REPLAYABLE = ("synchronize",)
