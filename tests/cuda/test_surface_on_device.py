"""What genesis.cuda says and keeps in order on the GPU that `--device` names: time, graphs, threads, memory, others' turns."""

import threading
import time

import numpy as np
import pytest

import genesis
from genesis.runtime.cuda import SIMULATED
from tests import devices

SIZE = 8 if SIMULATED else 1024
pytestmark = pytest.mark.device


@pytest.fixture(autouse=True)
def _a_gpu():
    if not devices.DEVICE.startswith("cuda"):
        pytest.skip("of GPUs")


def test_events_measure_the_work_between_them():
    x = devices.tensor(np.eye(SIZE, dtype=np.float32))
    start, end = genesis.cuda.Event(enable_timing=True), genesis.cuda.Event(enable_timing=True, blocking=True)
    began = time.perf_counter()
    start.record()
    y = x @ x @ x
    end.record()
    end.synchronize()
    assert start.query() and end.query() and 0 < start.elapsed_time(end) <= (time.perf_counter() - began) * 1e3
    np.testing.assert_array_equal(y.cpu().numpy(), np.eye(SIZE))


def test_programs_become_graphs_and_compute_what_they_computed():
    values = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)
    x = devices.tensor(values)
    before = genesis.debug.stats()
    for number in range(6):
        found = ((x @ x) * number + x.sum(1)).cpu().numpy()
        expected = (values.astype(np.float64) @ values) * number + values.sum(1)
        np.testing.assert_allclose(found, expected, 1e-4, 1e-3)
    after = genesis.debug.stats()
    assert after["graphs_captured"] > before["graphs_captured"] and after["graphs_refused"] == before["graphs_refused"]


def test_threads_share_the_stream_while_graphs_are_made():
    problems = []

    def work(seed):
        random = np.random.default_rng(seed)
        try:
            for _ in range(10):
                values = random.normal(size=(SIZE, SIZE)).astype(np.float32)
                x = devices.tensor(values)
                y = x.to("cpu").to(devices.DEVICE, copy=True)
                np.testing.assert_allclose((y * seed + x).cpu().numpy(), values * seed + values, 1e-5, 1e-5)
                genesis.cuda.synchronize()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]


def test_memory_and_properties_agree():
    found = genesis.cuda.get_device_properties()
    free, total = genesis.cuda.mem_get_info()
    assert 0 < free <= total <= found.total_memory and (found.major, found.minor) == genesis.cuda.get_device_capability()
    with genesis.debug.memory(device=devices.DEVICE) as used:
        start = used.held
        x = devices.tensor(np.zeros((SIZE, SIZE), np.float32))
    assert used.held - start >= x.nbytes and used.peak >= used.held == genesis.cuda.memory_allocated()


def test_torch_and_genesis_take_turns_on_the_same_memory():
    torch = pytest.importorskip("torch")
    if SIMULATED or not torch.cuda.is_available():
        pytest.skip("torch has no GPU here")
    theirs = torch.zeros(SIZE, SIZE, device="cuda")
    ours = genesis.from_dlpack(theirs)
    for _ in range(50):
        theirs.add_(1)
        doubled = ours * 2
        genesis.cuda.current_stream().query()  # asked for, not waited for
        theirs.add_(torch.from_dlpack(doubled)).div_(3)
    assert torch.equal(theirs, torch.full_like(theirs, 50.0)), "each round adds one"
