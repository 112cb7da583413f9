"""Runs under `GENESIS_VERIFY=1`: a program that would write where something else lies, or is held, does not run."""

import os
import subprocess
import sys

import numpy as np
import pytest

import genesis
from genesis.execution import result_pool, reused_inputs, verified_program
from genesis.execution.plan import plan_for
from genesis.execution.realize import realize
from genesis.execution.verified_program import MemoryPlanError, holders
from genesis.ir.graph import Node
from genesis.runtime.memory import Buffer
from genesis.tensor.dispatch import array_of
from genesis.tracing.state import current_trace

LARGE = result_pool.SMALL // 4 + 1  # elements of a result that may be written over an input


@pytest.fixture(autouse=True)
def _all_holders_are_searched_for(monkeypatch):
    """Among what came after the tests before, which the collector does not see: they leave millions of objects."""
    monkeypatch.setattr(verified_program, "SEARCHES", [1000])


def ones(elements=LARGE):
    tensor = genesis.ones(elements)
    tensor.tolist()
    return tensor


def give_all(monkeypatch):
    """The pool's mistake: whatever is asked for may be written over."""
    monkeypatch.setattr(reused_inputs, "reusable", lambda arrays, owners, sizes: [True] * len(sizes))


def test_an_input_that_dies_is_written_over_and_one_that_lives_is_not():
    x = ones()
    address = x._array.memory.buffer.ptr
    y = x * 2.5
    assert y.tolist()[0] == 2.5 and x.tolist()[0] == 1 and y._array.memory.buffer.ptr != address
    del x
    x = ones()
    address = x._array.memory.buffer.ptr
    y = x * 3.5
    del x
    assert y.tolist()[0] == 3.5 and y._array.memory.buffer.ptr == address


def test_memory_that_a_tensor_holds_is_not_written_over(monkeypatch):
    x = ones()
    y = x * 4.5
    give_all(monkeypatch)
    with pytest.raises(MemoryPlanError, match=r"where others hold a value: .*Tensor"):
        y.tolist()
    monkeypatch.undo()
    assert x.tolist()[0] == 1 and y.tolist()[0] == 4.5


def test_memory_that_an_array_outside_sees_is_not_written_over():
    x, result = ones(16), Buffer(64)
    y = x * 5.5
    program = plan_for(current_trace()).segments[-1].program
    seen = result.numpy(np.float32, (16,))
    seen[:] = 1
    with pytest.raises(MemoryPlanError, match="which arrays outside see"):
        program.run([x._array.memory.pointer, result.ptr, 0, 5.5])
    assert seen[0] == 1 and y.tolist()[0] == 5.5


def test_memory_that_a_backward_is_to_read_is_not_written_over(monkeypatch):
    x, w = ones(), genesis.ones(LARGE, requires_grad=True)
    product = (x * w).sum()
    product.item()
    y = x * 6.5
    del x
    give_all(monkeypatch)
    with pytest.raises(MemoryPlanError, match=r"where others hold a value: .*dict"):
        y.tolist()
    monkeypatch.undo()
    product.backward()
    assert w.grad.tolist()[0] == 1 and y.tolist()[0] == 6.5


def test_results_lie_apart_from_one_another_and_from_what_is_read():
    x = ones(16)
    y, z = x * 7.5, (x + 1).flip(0).sum() + x
    plan = plan_for(current_trace())
    program = plan.segments[-1].program
    inputs, (a, b) = [x._array.memory.pointer], [np.zeros(64, np.uint8) for _ in range(2)]
    with pytest.raises(MemoryPlanError, match=r"lies in what else the program reads or writes: .*output 0.*output 1"):
        program.run([*inputs, a.ctypes.data, a.ctypes.data + 32, b.ctypes.data, 7.5])
    with pytest.raises(MemoryPlanError, match="lies in what else"):
        program.run([*inputs, inputs[0] + 16, b.ctypes.data, a.ctypes.data, 7.5])
    with pytest.raises(MemoryPlanError, match="nobody's memory of that size"):
        program.run([*inputs, a.ctypes.data, b.ctypes.data, 0, 7.5])
    assert y.tolist()[0] == 7.5 and z.tolist()[0] == 33


def test_a_replay_holds_its_results_and_what_they_replace_and_nobody_else_does():
    weight = genesis.ones(LARGE)
    held = []

    @genesis.compile
    def step(x):
        weight.mul_(2).add_(x)
        return weight.sum()

    x = ones()
    for number in range(6):
        total = step(x)
        held.append(weight.detach().clone() if number == 3 else total)
    assert weight.tolist()[0] == 127 and held[3].tolist()[0] == 31
    assert step.entries[0].replays


def test_a_tensor_that_is_gone_holds_nothing():
    x = ones()  # no small one, which an earlier file's result may serve again for: the collector sees nothing of that
    assert [kind for _, kind in holders([x._array.memory.buffer])] == ["Tensor"]
    buffer = x._array.memory.buffer
    del x
    assert holders([buffer]) == []


def test_the_environment_asks_for_it():
    script = "from genesis.execution.verified_program import VERIFY; print(*VERIFY)"
    environment = {**os.environ, "GENESIS_VERIFY": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_an_input_that_lies_otherwise_than_its_program_takes_it_is_found():
    x = genesis.arange(6.0).reshape(2, 3)
    turned = x.t().contiguous().t()
    realize(array_of(turned))
    node = Node("input", (), {}, (2, 3), genesis.float32, False)
    verified_program.verify_inputs([node], [array_of(x)])
    with pytest.raises(MemoryPlanError, match="an input is"):
        verified_program.verify_inputs([node], [array_of(turned)])
