"""genesis.cuda under PyTorch's names: events, the stream, properties, the GPU that "cuda" is; several GPUs."""

import threading
import time

import pytest

import genesis
from genesis.runtime import cuda, devices
from genesis.runtime.cuda.simulated import SimulatedGpu
from genesis.tracing.state import thread_state

THERE = genesis.device("cuda")
ONE = "cuda:1"


@pytest.fixture
def two(monkeypatch):
    """A second GPU."""
    monkeypatch.setattr(cuda, "_gpus", lambda: (SimulatedGpu, 2, ""))
    yield genesis.device(ONE)
    place = devices._DEVICES.pop(ONE)
    devices.seen_devices.discard(place)
    thread_state.traces.pop(place, None)
    cuda._opened.pop(1)


# ---- events ----


def test_events_measure_what_is_written_between_them(monkeypatch):
    asked = []
    monkeypatch.setattr(SimulatedGpu, "submit", lambda gpu, commands, after=int: asked.append(len(commands)) or after())
    before = genesis.ones(3, device=THERE) + 1
    start, end = genesis.cuda.Event(enable_timing=True), genesis.cuda.Event(enable_timing=True)
    start.record()
    assert asked, "what was recorded before is not measured"
    asked.clear()
    after = before * 2
    assert not asked
    end.record()
    assert asked, "what is recorded between is"
    genesis.cuda.synchronize()
    assert start.query() and end.query() and after._array.memory is not None


def test_elapsed_time_is_in_milliseconds():
    start, end = genesis.cuda.Event(enable_timing=True), genesis.cuda.Event(enable_timing=True)
    began = time.perf_counter()
    start.record()
    time.sleep(0.02)
    end.record()
    end.synchronize()
    assert 20 <= start.elapsed_time(end) <= (time.perf_counter() - began) * 1e3
    assert end.elapsed_time(start) == -start.elapsed_time(end)


def test_events_without_a_time_say_so():
    start, end, plain = genesis.cuda.Event(enable_timing=True), genesis.cuda.Event(enable_timing=True), genesis.cuda.Event()
    assert plain.query() and plain.device is None
    plain.synchronize()
    with pytest.raises(RuntimeError, match="must be recorded"):
        start.elapsed_time(end)
    for event in (start, end, plain):
        event.record()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        start.elapsed_time(plain)
    with pytest.raises(NotImplementedError, match="other processes"):
        genesis.cuda.Event(interprocess=True)


def test_an_event_that_is_not_passed_is_not_timed(monkeypatch):
    start, end = genesis.cuda.Event(enable_timing=True), genesis.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    monkeypatch.setattr(SimulatedGpu, "has_passed", lambda gpu, mark: False)
    assert not end.query() and not genesis.cuda.current_stream().query()
    with pytest.raises(RuntimeError, match="not done; synchronize"):
        start.elapsed_time(end)


def test_functions_that_look_at_the_gpu_are_compiled_to_what_they_are():
    event = genesis.cuda.Event(enable_timing=True)

    @genesis.compile
    def step(x):
        y = x + 1
        event.record()
        return y * 2, genesis.cuda.memory_allocated()

    marks = []
    for _ in range(2):
        assert step(genesis.ones(2, device=THERE))[0].tolist() == [4, 4]
        marks.append(event._mark)
    assert len(set(marks)) == 2
    assert any("genesis.cuda.streams" in refusal.reason for refusal in step.refusals), step.refusals


# ---- streams ----


def test_a_script_of_several_streams_runs_in_its_order():
    main, side = genesis.cuda.current_stream(), genesis.cuda.Stream()
    assert main == side == genesis.cuda.default_stream() and hash(main) == hash(side) and side.cuda_stream == 0
    x = genesis.ones(3, device=THERE)
    side.wait_stream(main)
    with genesis.cuda.stream(side):
        y = x * 2
        ready = side.record_event()
    main.wait_event(ready)
    with genesis.cuda.stream(None):
        assert (y + x).tolist() == [3, 3, 3]
    genesis.cuda.set_stream(side)
    side.synchronize()
    assert side.query() and ready.query() and ready.device is THERE and side.device is THERE


# ---- what it is ----


def test_properties_are_told():
    found = genesis.cuda.get_device_properties("cuda:0")
    assert (found.name, (found.major, found.minor)) == (genesis.cuda.get_device_name(0), genesis.cuda.get_device_capability())
    assert found.total_memory == genesis.cuda.mem_get_info()[1] and found.multi_processor_count == 2
    assert genesis.cuda.is_bf16_supported() and genesis.cuda.is_bf16_supported(including_emulation=False)
    with pytest.raises(ValueError, match="cpu is no CUDA device"):
        genesis.cuda.get_device_properties("cpu")


def test_memory_is_counted_under_pytorchs_names():
    before = genesis.cuda.memory_stats()
    x = genesis.ones(1 << 12, device=THERE).contiguous() + 0
    genesis.cuda.synchronize()
    found = genesis.cuda.memory_stats()
    assert found["allocated_bytes.all.current"] - before["allocated_bytes.all.current"] >= x.nbytes
    assert found["allocation.all.current"] > before["allocation.all.current"] and found["segment.all.current"] >= 1
    assert found["allocated_bytes.all.peak"] == genesis.cuda.max_memory_allocated()
    assert found["reserved_bytes.all.current"] == genesis.cuda.memory_reserved()
    summary = genesis.cuda.memory_summary()
    assert summary.startswith("cuda:0: ") and f"in {found['allocation.all.current']} blocks" in summary


def test_the_gpu_is_in_use_once_it_was_asked_for():
    genesis.cuda.init()
    assert genesis.cuda.is_initialized()


def test_mixed_precision_has_the_names_of_torch_cuda_amp():
    scaler, x = genesis.cuda.amp.GradScaler(enabled=False), genesis.ones(2, 3, device=THERE)
    with genesis.cuda.amp.autocast():
        y = x @ x.T
        assert y.dtype is genesis.float16
    assert scaler.scale(y).tolist() == [[3, 3], [3, 3]]
    with genesis.cuda.amp.autocast(dtype=genesis.bfloat16):
        assert (x @ x.T).dtype is genesis.bfloat16


def test_the_stream_of_random_numbers_is_put_back():
    states, state = genesis.cuda.get_rng_state_all(), genesis.cuda.get_rng_state("cuda")
    found = [genesis.rand(3, device=THERE).tolist()]
    genesis.cuda.set_rng_state_all(states)
    found.append(genesis.rand(3, device=THERE).tolist())
    genesis.cuda.set_rng_state(state, 0)
    assert found[0] == found[1] == genesis.rand(3, device=THERE).tolist()
    genesis.cuda.manual_seed_all(5)
    assert genesis.cuda.initial_seed() == 5 and genesis.cuda.seed_all() != 5


# ---- several ----


def test_cuda_is_the_gpu_that_the_thread_chose(two):
    assert genesis.cuda.device_count() == 2 and genesis.cuda.current_device() == 0
    found = []
    try:
        genesis.cuda.set_device(1)
        assert genesis.zeros(1, device="cuda").device is two and genesis.zeros(1).cuda().device is two
        assert two == "cuda" != THERE and genesis.cuda.current_stream().device is two
        thread = threading.Thread(target=lambda: found.append(genesis.cuda.current_device()))
        thread.start()
        thread.join()
        genesis.cuda.set_device(-1)
        assert found == [0] and genesis.cuda.current_device() == 1
    finally:
        genesis.cuda.set_device(0)
    assert genesis.device("cuda") is THERE == "cuda"


def test_a_context_chooses_a_gpu_for_its_block(two):
    inner = genesis.cuda.device(0)
    with genesis.cuda.device(two), genesis.cuda.device(None), genesis.cuda.device(-1):
        assert genesis.device("cuda") is two
        with inner, inner, genesis.cuda.stream(genesis.cuda.Stream(1)):
            assert genesis.device("cuda") is two
        assert genesis.device("cuda") is two
    assert genesis.device("cuda") is THERE
    with pytest.raises(ValueError, match="the last one here is 'cuda:1'"):
        genesis.cuda.device(2)


def test_compiled_functions_make_tensors_on_the_gpu_of_the_call(two):
    make = genesis.compile(lambda: genesis.zeros(2, device="cuda") + 1)
    assert [str(make().device) for _ in range(2)] == ["cuda:0"] * 2
    with genesis.cuda.device(1):
        assert [str(make().device) for _ in range(2)] == ["cuda:1"] * 2
    assert make().device is THERE


def test_memory_of_others_that_name_no_gpu_is_taken_where_it_lies(two, monkeypatch):
    class Array:
        kept = genesis.tensor([1.0, 2.0], device=two)
        where = __cuda_array_interface__ = kept.__cuda_array_interface__

    monkeypatch.setattr(SimulatedGpu, "owner_of", lambda gpu, address: int(address == Array.where["data"][0]))
    taken = genesis.as_tensor(Array())
    assert taken.device is two and taken.tolist() == [1, 2]


def test_values_go_from_gpu_to_gpu_and_events_are_of_one(two):
    x = genesis.tensor([1.0, 2.0], device=THERE)
    y = x.to(two) * 3
    assert y.device is two and y.tolist() == [3, 6] and y.cuda(0).tolist() == [3, 6]
    start, end = genesis.cuda.Event(enable_timing=True), genesis.cuda.Event(enable_timing=True)
    start.record()
    genesis.cuda.Stream(1).record_event(end)
    end.wait()
    with pytest.raises(RuntimeError, match="of two GPUs, cuda:0 and cuda:1"):
        start.elapsed_time(end)
    genesis.cuda.empty_cache()
