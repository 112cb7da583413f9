"""Programs of a GPU: when launches become a graph, what a run is bound to, and what is left after a failure."""

import numpy as np
import pytest

from genesis.runtime.completion import Completion, UnfinishedError
from genesis.runtime.counters import stats
from genesis.runtime.cuda.gpu import LaunchError
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.program import BOUND_LIMIT, FAULT, CudaLaunch, CudaProgram, Scalar
from genesis.runtime.cuda.simulated import SimulatedGpu
from genesis.runtime.native import Slot


class Noted(SimulatedGpu):
    """A GPU whose functions note what they are called with."""

    def __init__(self):
        super().__init__(0)
        self.launches, self.graphs, self.refuses = [], 0, False

    def captured(self, commands):
        if self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.graphs += 1
        return super().captured(commands)


@pytest.fixture
def gpu():
    return Noted()


def program(gpu, *steps, scalars="d"):
    return CudaProgram(GpuMemory(gpu), steps, 2, scalars)


def step(gpu, *words, table=(), run=None):
    def function(blocks, threads, arguments):
        gpu.launches.append((blocks, arguments))
        if run is not None:
            run(arguments)

    return CudaLaunch(function, (1,), (8,), ("int64",) * (1 if table else len(words)), words, table)


def test_the_second_run_at_the_same_addresses_is_a_graph(gpu):
    made = program(gpu, step(gpu, Slot(0, 16), Slot(1), 7))
    for _ in range(3):
        assert made.run((1024, 2048, 0.5)) is None
    assert gpu.graphs == 1 and [a for _, a in gpu.launches] == [[1040, 2048, 7]] * 3
    made.run((4096, 2048, 0.5))
    made.run((1024, 2048, 0.5))
    assert gpu.graphs == 1 and gpu.launches[3][1][0] == 4112 and gpu.launches[4][1][0] == 1040
    assert len(made.seconds()) == 1


def test_few_sets_of_addresses_are_remembered(gpu):
    made = program(gpu, step(gpu, Slot(0)))
    for address in range(BOUND_LIMIT + 1):
        made.run((512 * address, 0, 1.0))
    assert len(made._bound) == BOUND_LIMIT


def test_what_no_graph_can_hold_is_launched_one_by_one(gpu):
    gpu.refuses = True
    made = program(gpu, step(gpu, Slot(0)), step(gpu, Slot(1)))
    before = stats()
    for _ in range(3):
        made.run((1024, 2048, 0.5))
    assert [a for _, a in gpu.launches] == [[1024], [2048]] * 3
    assert made.refused == "operation not permitted when stream is capturing"
    assert stats()["graphs_refused"] > before["graphs_refused"] and stats()["graphs_captured"] == before["graphs_captured"]
    gpu.refuses = False
    made.run((4096, 2048, 0.5))
    made.run((4096, 2048, 0.5))
    assert stats()["graphs_captured"] == before["graphs_captured"] + 1


def test_only_what_a_capture_raises_is_taken_for_a_refusal(gpu):
    made = program(gpu, step(gpu, Slot(0)))
    made.run((1024, 2048, 0.5))
    gpu.captured = lambda commands: {}[commands[0]]
    with pytest.raises(KeyError):
        made.run((1024, 2048, 0.5))


def test_who_asks_for_seconds_gets_those_of_the_next_run_too(gpu):
    made = program(gpu, step(gpu, Slot(0)), step(gpu, Slot(1)))
    for _ in range(3):
        made.run((1024, 2048, 0.5))
    first = made.seconds()
    made.run((1024, 2048, 0.5))
    again = made.seconds()
    assert len(first) == len(again) == 2 and first != again and gpu.graphs == 1
    assert [a for _, a in gpu.launches] == [[1024], [2048]] * 4


def test_scalars_are_read_from_the_gpus_memory(gpu):
    found = []
    made = program(gpu, step(gpu, Scalar(1), run=lambda a: found.append(gpu._bytes(a[0], 8).view(np.float64)[0])), scalars="qd")
    for value in (0.5, 0.25, 0.125):
        made.run((1024, 2048, -3, value))
    assert found == [0.5, 0.25, 0.125] and gpu.graphs == 1


def test_many_calls_have_their_words_in_a_table(gpu):
    found = []
    rows = [(Slot(0), 3, 0.5), (Slot(1, 8), -1, 2.0)]
    made = program(gpu, step(gpu, table=rows, run=lambda a: found.append(gpu._bytes(a[0], 48).view(np.int64).tolist())))
    made.run((1024, 2048, 0.5))
    numbers = np.array(found[0]).reshape(2, 3)
    assert numbers[:, 0].tolist() == [1024, 2056] and numbers[:, 1].tolist() == [3, -1]
    assert numbers[:, 2].view(np.float64).tolist() == [0.5, 2.0]


def test_a_fault_stops_the_program_before_anything_is_written_over(gpu):
    broken = [True]

    def fail(arguments):
        if broken[0]:
            gpu._bytes(arguments[0], 32).view(np.int64)[:] = 1, 5, 9, 4

    made, outcome = program(gpu, step(gpu, Slot(0)), step(gpu, FAULT, run=fail), step(gpu, Slot(1))), Completion()
    assert made.run((1024, 2048, 0.5), outcome) == (1, 5, 9, 4)
    assert len(gpu.launches) == 2 and not outcome
    broken[0] = False
    assert made.run((1024, 2048, 0.5), outcome) is None, "the record is empty again"
    assert outcome and gpu.launches[-1][1] == [2048]
    assert gpu.graphs == 0, "what follows the fault had not run yet"
    made.run((1024, 2048, 0.5), outcome)
    assert gpu.graphs == 2


def test_a_launch_that_fails_has_not_taken_place(gpu):
    def fail(arguments):
        raise RuntimeError("CUDA: a launch failed")

    made, outcome = program(gpu, step(gpu, Slot(0), run=fail)), Completion()
    with pytest.raises(RuntimeError, match="a launch failed"):
        made.run((1024, 2048, 0.5), outcome)
    assert not outcome


@pytest.mark.parametrize("runs_before", [0, 1, 2])
def test_it_is_told_which_launch_failed_if_it_was_not_the_first_that_may_write_over_inputs(gpu, runs_before):
    refused = []

    def perhaps_fail(arguments):
        if arguments[0] in refused:
            raise RuntimeError("CUDA: a launch failed")

    steps = [step(gpu, FAULT, run=lambda a: None), *[step(gpu, n, run=perhaps_fail) for n in (1, 2)]]
    made = program(gpu, *steps)
    gpu.refuses = True  # a graph would be taken as a whole
    for _ in range(runs_before):
        made.run((1024, 2048, 0.5))
    refused.append(2)
    with pytest.raises(UnfinishedError, match="a launch failed") as caught:
        made.run((1024, 2048, 0.5), outcome := Completion())
    assert caught.value.launch == 2 and not outcome
    refused[:] = [1]
    with pytest.raises(LaunchError, match="a launch failed"):
        made.run((1024, 2048, 0.5), outcome)
    refused.clear()
    assert made.run((1024, 2048, 0.5), outcome) is None and outcome
