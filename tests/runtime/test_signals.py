"""Signal handlers run between two launches of a long program; one that raises leaves it there."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from types import FrameType

import numpy as np
import pytest

from genesis.runtime import executor_ir, native
from genesis.runtime.completion import Completion
from genesis.runtime.native import Block, NativeLaunch, NativeProgram, Slot

from .kernels import kernel

THREADS = [1, 2]
LAUNCHES = 10


@pytest.fixture(params=THREADS)
def workers(request) -> int:
    return request.param


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> Iterator[None]:
    """Every moment between two launches is one for signals."""
    monkeypatch.setattr(executor_ir, "PATIENCE", 0)
    monkeypatch.setattr(executor_ir, "SHARE", 0)
    native._native_run.cache_clear()
    yield
    native._native_run.cache_clear()


@pytest.fixture
def handled() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Has a function called by the handler of a signal."""
    before = signal.getsignal(signal.SIGUSR1)

    def start(work: Callable[[], object]) -> None:
        def handle(number: int, frame: FrameType | None) -> None:
            work()

        signal.signal(signal.SIGUSR1, handle)

    yield start
    signal.signal(signal.SIGUSR1, before)


def counting(signals: list[int], workers: int) -> NativeProgram:
    """Launches that each add 1 to the elements of an array; before these, there is a signal."""
    launches = []
    for number in range(LAUNCHES):
        if number in signals:
            launches.append(NativeLaunch(kernel("signal"), [Block((Slot(0), int(signal.SIGUSR1)), 1)]))
        launches.append(NativeLaunch(kernel("increment"), [Block((Slot(0), Slot(1)), 1000)], workers))
    return NativeProgram(launches, "Qq")


def raising() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("moment", range(LAUNCHES))
def test_an_interrupted_run_stops_at_the_next_launch_and_can_go_on(handled, workers, moment):
    array, program, outcome = np.zeros(1000, np.int64), counting([moment], workers), Completion()
    handled(raising)
    slots = array.ctypes.data, 1
    with pytest.raises(KeyboardInterrupt):
        program.run(slots, outcome)
    assert not outcome and outcome.launches == moment + 1
    assert array.tolist() == [moment] * 1000
    other = np.zeros(1000, np.int64)
    handled(list)
    program.run((other.ctypes.data, 3), Completion())  # in between it runs on something else
    assert other.tolist() == [3 * LAUNCHES] * 1000 and array.tolist() == [moment] * 1000
    assert program.run(slots, outcome) is None
    assert outcome and not outcome.launches
    assert array.tolist() == [LAUNCHES] * 1000


def test_handlers_run_between_launches_and_change_nothing(handled, workers):
    array, program, outcome = np.zeros(1000, np.int64), counting([2, 5, 9], workers), Completion()
    seen: list[int] = []

    def look() -> None:
        assert not outcome
        seen.append(array[7])
        other, inner = np.zeros(1000, np.int64), Completion()
        if len(seen) == 1:
            handled(list)
            program.run((other.ctypes.data, 2), inner)  # the same program, which is under way
            assert inner and other.tolist() == [2 * LAUNCHES] * 1000
            handled(look)

    handled(look)
    assert program.run((array.ctypes.data, 1), outcome) is None
    assert seen == [2, 5, 9]
    assert outcome and array.tolist() == [LAUNCHES] * 1000


def test_a_handler_may_run_the_rest(handled, workers):
    array, program, outcome = np.zeros(1000, np.int64), counting([3, 6], workers), Completion()
    seen: list[int] = []

    def finish() -> None:
        seen.append(array[7])
        if len(seen) == 1:
            program.run((array.ctypes.data, 1), outcome)
            assert outcome

    handled(finish)
    assert program.run((array.ctypes.data, 1), outcome) is None
    assert seen == [3, 6] and outcome
    assert array.tolist() == [LAUNCHES] * 1000


def test_what_a_handler_ran_before_it_was_interrupted_itself_is_not_run_again(handled, workers):
    array, program, outcome = np.zeros(1000, np.int64), counting([3, 6], workers), Completion()
    seen: list[int] = []

    def go_on() -> None:
        seen.append(array[7])
        if len(seen) == 2:
            raise KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            program.run((array.ctypes.data, 1), outcome)

    handled(go_on)
    assert program.run((array.ctypes.data, 1), outcome) is None
    assert seen == [3, 6] and outcome
    assert array.tolist() == [LAUNCHES] * 1000
