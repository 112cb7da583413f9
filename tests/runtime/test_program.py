"""The native program executor and its team of threads."""

from __future__ import annotations

import ctypes
import os
import signal
import threading

import numpy as np
import pytest

from genesis.runtime.completion import Completion, Fault
from genesis.runtime.counters import stats
from genesis.runtime.native import FAULT, Block, NativeLaunch, NativeProgram, Slot
from genesis.runtime.number_of_threads import get_num_threads, set_num_threads
from genesis.runtime.team import team

from .kernels import bits, kernel, run_python

THREADS = [1, 2, 3, 4]


def address(array: np.ndarray) -> int:
    return array.ctypes.data


def test_an_empty_program_finishes():
    outcome = Completion()
    assert NativeProgram([]).run(completion=outcome) is None
    assert outcome


@pytest.mark.parametrize("workers", THREADS)
@pytest.mark.parametrize("items", [0, 1, 2, 3, 1000])
def test_each_item_is_done_exactly_once(workers, items):
    array = np.zeros(items + 1, np.int64)
    program = NativeProgram([NativeLaunch(kernel("increment"), [Block((Slot(0), Slot(1)), items)], workers)], "Qq")
    for _ in range(50):
        assert program.run((address(array), -3)) is None
    assert array.tolist() == [-150] * items + [0]


@pytest.mark.parametrize("workers", THREADS)
def test_blocks_of_a_launch_are_one_range_of_items(workers):
    extents = [5, 0, 1, 17, 2]
    arrays = [np.zeros(extent + 1, np.int64) for extent in extents]
    blocks = [Block((address(arrays[i]), i + 1), extents[i]) for i in range(5)]
    NativeProgram([NativeLaunch(kernel("increment"), blocks, workers)]).run()
    for i in range(5):
        assert arrays[i].tolist() == [i + 1] * extents[i] + [0]


@pytest.mark.parametrize("workers", THREADS)
def test_numbered_chunks_are_the_same_for_any_number_of_workers(workers):
    items, chunks = 103, 5
    array = np.zeros(items, np.int64)
    bounds = [items * chunk // chunks for chunk in range(chunks + 1)]
    expected = np.repeat(range(chunks), np.diff(bounds)).tolist()
    program = NativeProgram([NativeLaunch(kernel("stamp"), [Block((address(array),), items)], workers, numbered=chunks)])
    for _ in range(200):
        array[:] = -1
        program.run()
        assert array.tolist() == expected


@pytest.mark.parametrize("workers", [w for w in THREADS if w > 1])
def test_elsewhere_shares_go_to_whoever_comes_and_each_is_done_whole(workers):
    items = 1003
    array = np.zeros(items, np.int64)
    program = NativeProgram([NativeLaunch(kernel("stamp"), [Block((address(array),), items)], workers)])
    for _ in range(200):
        array[:] = -1
        program.run()
        assert set(array.tolist()) <= set(range(workers))
        assert np.count_nonzero(np.diff(array)) < 4 * workers


@pytest.mark.parametrize("workers", THREADS)
def test_many_launches_run_in_order(workers):
    array = np.ones(257)
    scale = kernel("scale")
    launches = [NativeLaunch(scale, [Block((Slot(0), Slot(1 + i % 2)), 257)], 1 + i % workers) for i in range(300)]
    program = NativeProgram(launches, "Qdd")
    for _ in range(20):
        program.run((address(array), 2.0, 0.5))
    assert array.tolist() == [1.0] * 257


def test_words_are_literals_slots_with_offsets_and_nested_blocks():
    array = np.zeros(8, np.int64)
    program = NativeProgram([NativeLaunch(kernel("increment"), [Block((Slot(0, 16), 7), 3)])], "Q")
    program.run([address(array)])
    assert array.tolist() == [0, 0, 7, 7, 7, 0, 0, 0]

    seen = []

    @ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64)
    def look(lo, hi, words, worker):
        inner = ctypes.cast(words[1], ctypes.POINTER(ctypes.c_int64))
        innermost = ctypes.cast(inner[0], ctypes.POINTER(ctypes.c_int64))
        seen.append((lo, hi, worker, words[0], inner[1], innermost[0]))

    words = (-1, ((Slot(0, 2),), 2**64 - 5))
    NativeProgram([NativeLaunch(ctypes.cast(look, ctypes.c_void_p).value, [Block(words, 4)])], "q", keep=[look]).run([40])
    assert seen == [(0, 4, 0, -1, -5, 42)]


@pytest.mark.parametrize("workers", THREADS)
def test_a_numbered_chunk_is_run_even_without_items(workers):
    array = np.arange(1, 3)
    calls = []

    @ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    def note(lo, hi, words, number):
        calls.append((number, hi - lo))

    block = Block((address(array),), 2)
    launch = NativeLaunch(ctypes.cast(note, ctypes.c_void_p).value, [block], workers, numbered=5)
    NativeProgram([launch], keep=[note]).run()
    assert sorted(number for number, _ in calls) == list(range(5))
    assert sum(items for _, items in calls) == 2


@pytest.mark.parametrize("workers", THREADS)
def test_partial_results_of_numbered_chunks_add_up(workers):
    array, partials = np.arange(1000), np.zeros(6, np.int64)
    block = Block((address(array), address(partials)), 1000)
    NativeProgram([NativeLaunch(kernel("partial_sums"), [block], workers, numbered=6)]).run()
    assert partials.sum() == 499500


def test_numbered_chunks_need_one_block():
    with pytest.raises(ValueError, match="exactly one block, not 2"):
        NativeProgram([NativeLaunch(1, [Block((), 1), Block((), 1)], 2, numbered=2)])


@pytest.mark.parametrize("word", [Slot(1), Slot(-3), 1.5, None, [1]])
def test_a_word_that_is_none_is_refused(word):
    with pytest.raises(ValueError, match="Program: word 1 is"):
        NativeProgram([NativeLaunch(1, [Block((0, word), 1)])], "q")


def test_a_fault_is_reported_stops_the_program_and_is_forgotten_by_the_next_run():
    array, after = np.arange(10), np.zeros(1, np.int64)
    program = NativeProgram(
        [
            NativeLaunch(kernel("check"), [Block((address(array), Slot(0), FAULT, 77), 10)], 2),
            NativeLaunch(kernel("increment"), [Block((address(after), 1), 1)]),
        ],
        "q",
    )
    assert program.run([10]) is None
    outcome = Completion()
    assert program.run([9], outcome) == Fault(flag=1, site=77, value=9, extent=9)
    assert after[0] == 1, "the launch after a fault must not run"
    assert not outcome
    assert program.run([10], outcome) is None
    assert outcome


def test_a_wrong_number_of_slot_values_raises_and_runs_nothing():
    array = np.zeros(1, np.int64)
    program = NativeProgram([NativeLaunch(kernel("increment"), [Block((Slot(0), 1), 1)])], "Q")
    outcome = Completion()
    with pytest.raises(Exception, match="pack"):
        program.run([address(array), 0], outcome)
    assert array[0] == 0
    assert not outcome


def test_two_threads_run_programs_at_once():
    arrays = [np.zeros(1000, np.int64) for _ in range(4)]
    increment = kernel("increment")
    shared = NativeProgram([NativeLaunch(increment, [Block((Slot(0), Slot(1)), 1000)], 2)] * 10, "Qq")
    outcomes = []

    def work(number: int) -> None:
        for _ in range(200):
            outcomes.append(Completion())
            shared.run((address(arrays[number]), number + 1), outcomes[-1])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [array.tolist() for array in arrays] == [[2000 * (number + 1)] * 1000 for number in range(4)]
    assert len(outcomes) == 800 and all(outcomes)


def test_a_host_callback_may_run_another_program():
    array = np.zeros(64, np.int64)
    inner = NativeProgram([NativeLaunch(kernel("increment"), [Block((address(array), 1), 64)], 2)])

    @ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    def call_back(lo, hi, words, worker):
        inner.run()

    callback = NativeLaunch(ctypes.cast(call_back, ctypes.c_void_p).value, [Block((), 1)])
    increment = NativeLaunch(kernel("increment"), [Block((address(array), 10), 64)], 2)
    NativeProgram([callback, increment, callback], keep=[call_back]).run()
    assert array.tolist() == [12] * 64


def test_the_number_of_threads_is_a_setting():
    before = get_num_threads()
    try:
        set_num_threads(3)
        assert get_num_threads() == 3
        with pytest.raises(ValueError, match="want 1 or more"):
            set_num_threads(0)
    finally:
        set_num_threads(before)
    ask = "from genesis.runtime.number_of_threads import get_num_threads; print(get_num_threads())"
    assert run_python(ask, OMP_NUM_THREADS="5,2", GENESIS_NUM_THREADS="") == "5"
    assert run_python(ask, OMP_NUM_THREADS="5", GENESIS_NUM_THREADS="7") == "7"
    assert int(run_python(ask, OMP_NUM_THREADS="", GENESIS_NUM_THREADS="lots")) >= 1


def test_a_run_is_counted():
    before = stats()["native_calls"]
    NativeProgram([]).run()
    assert stats()["native_calls"] == before + 1


def test_an_interrupted_caller_learns_that_the_run_took_place():
    array = np.zeros(100_000, np.int64)
    program = NativeProgram([NativeLaunch(kernel("increment"), [Block((address(array), 1), 100_000)], 2)] * 2000)
    program.run()
    outcome = Completion()
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        with pytest.raises(KeyboardInterrupt):
            program.run(completion=outcome)
    finally:
        signal.signal(signal.SIGALRM, handler)
    while not outcome:  # it took so long that it was left between two launches
        program.run(completion=outcome)
    assert array.tolist() == [4000] * 100_000


# ---- fork ----


def run_in_fork(check) -> int:
    """The exit status of a forked child that calls `check`, which must not hang."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            check()
            status = 0
        finally:
            os._exit(status)
    watchdog = threading.Timer(60, os.kill, (child, 9))
    watchdog.start()
    status = os.waitpid(child, 0)[1]
    watchdog.cancel()
    return os.waitstatus_to_exitcode(status)


def test_a_forked_child_has_a_team_of_its_own():
    array = np.zeros(1000, np.int64)
    program = NativeProgram([NativeLaunch(kernel("increment"), [Block((address(array), 1), 1000)], 3)] * 10)
    program.run()
    assert team.size >= 3

    def check() -> None:
        assert team.size == 1
        for _ in range(100):
            program.run()
        assert team.size == 3
        assert array.tolist() == [1010] * 1000

    assert run_in_fork(check) == 0
    program.run()
    assert array.tolist() == [20] * 1000


def test_a_fork_while_another_thread_runs_programs_does_not_hang_the_child():
    array, mine = np.zeros(100_000, np.int64), np.zeros(1000, np.int64)
    increment = kernel("increment")
    busy = NativeProgram([NativeLaunch(increment, [Block((address(array), 1), 100_000)], 2)] * 20)
    program = NativeProgram([NativeLaunch(increment, [Block((address(mine), 1), 1000)], 2)] * 10)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            busy.run()

    def check() -> None:
        program.run()
        busy.run()
        assert mine.tolist() == [10] * 1000

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert [run_in_fork(check) for _ in range(10)] == [0] * 10
    finally:
        stop.set()
        thread.join()


def test_a_fork_inside_a_host_callback_leaves_the_child_able_to_finish():
    array = np.zeros(1000, np.int64)
    children = []

    @ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    def fork(lo, hi, words, worker):
        children.append(os.fork())

    increment = NativeLaunch(kernel("increment"), [Block((address(array), 1), 1000)], 2)
    callback = NativeLaunch(ctypes.cast(fork, ctypes.c_void_p).value, [Block((), 1)])
    NativeProgram([increment, callback, increment], keep=[fork]).run()
    if children[0] == 0:
        os._exit(0 if array.tolist() == [2] * 1000 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
    assert array.tolist() == [2] * 1000


def test_the_interpreter_exits_cleanly_with_a_team_parked_or_busy():
    code = """
        import threading
        import numpy as np
        from genesis.runtime.native import Block, NativeLaunch, NativeProgram
        from tests.runtime.kernels import kernel
        array = np.zeros(100_000, np.int64)
        program = NativeProgram([NativeLaunch(kernel("increment"), [Block((array.ctypes.data, 1), 100_000)], 3)] * 50)
        program.run()
        def work():
            while True:
                program.run()
        if {busy}:
            threading.Thread(target=work, daemon=True).start()
        print(array[0])
    """
    assert run_python(code.replace("{busy}", "False")) == "50"
    for _ in range(3):
        assert int(run_python(code.replace("{busy}", "True"))) >= 50


def test_bits_of_scalars_reach_the_kernel():
    array = np.array([1.5, -2.0])
    NativeProgram([NativeLaunch(kernel("scale"), [Block((address(array), bits(-0.5)), 2)])]).run()
    assert array.tolist() == [-0.75, 1.0]
