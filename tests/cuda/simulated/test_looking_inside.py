"""genesis.debug of programs and memory of a GPU."""

import numpy as np
import pytest

import genesis
from genesis.runtime.cuda.simulated import SimulatedGpu

THERE = genesis.device("cuda")
MIB = 1 << 20


def pending():
    x = genesis.tensor(np.ones((8, 8), np.float32), device=THERE)
    return ((x @ x).exp() * 2).sum(0)


def test_a_program_shows_the_functions_that_the_gpu_launches():
    lowered = genesis.debug.program(pending())
    product, *rest = lowered.sources
    assert product.startswith("def genesis_product_") and "cuda.syncthreads()" in product
    assert any("math.exp(" in source and source.startswith(f"def {lowered.kernels[0].name}") for source in rest)
    assert not genesis.debug.program(genesis.ones(2) + 1).sources, "the CPU's go to LLVM at once"


def test_each_stage_shows_its_own_functions():
    first, *others = genesis.debug.kernels(pending()).stages
    assert len(first.sources) == 1 and "genesis_product_" in first.sources[0] and "genesis_product_" not in repr(others)
    assert all(stage.sources for stage in others)


def test_every_run_in_a_block_is_timed_anew():
    with genesis.debug.timing() as times:
        for _ in range(4):
            pending().tolist()
    plan, _, runs = next(iter(times.runs.values()))
    assert len(times.programs[0]) == len(plan.lowered.schedule.stages) and len({tuple(run) for run in runs}) == 4


def test_an_explanation_tells_why_launches_are_begun_one_by_one(monkeypatch):
    def refuse(gpu, commands):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(SimulatedGpu, "captured", refuse)
    x = genesis.ones(3, device=THERE).contiguous()
    found = [genesis.debug.explain(lambda x: x * 3 + 5, x) for _ in range(2)][1]
    assert found.ungraphed == ["operation not permitted when stream is capturing"]
    assert "launch by launch: operation not permitted" in repr(found)


def test_memory_of_the_gpu_is_told_beside_that_of_the_host():
    here, before = genesis.debug.memory(), genesis.debug.memory(device=THERE)
    x = genesis.tensor(np.ones(MIB, np.float32), device=THERE)
    assert genesis.debug.memory(device="cuda").held - before.held == x.nbytes == 4 * MIB
    assert genesis.debug.memory().held - here.held < MIB
    with THERE:
        assert genesis.debug.memory().held == genesis.cuda.memory_allocated()


def test_the_peak_of_a_block_on_the_gpu_is_its_own():
    most = genesis.cuda.max_memory_allocated(), genesis.cuda.max_memory_reserved()
    with genesis.debug.memory(device=THERE) as used:
        start = used.held
        for _ in range(3):
            genesis.tensor(np.ones(MIB, np.float32), device=THERE)
    assert used.held == start and start + 4 * MIB <= used.peak < start + 8 * MIB
    assert genesis.cuda.max_memory_allocated() == max(most[0], used.peak) and genesis.cuda.max_memory_reserved() >= most[1]
    assert used.idle == genesis.cuda.memory_reserved() - genesis.cuda.memory_allocated()
    with pytest.raises(ZeroDivisionError), genesis.debug.memory(device=THERE):
        _ = 1 / 0
