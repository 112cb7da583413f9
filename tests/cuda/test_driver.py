"""The way to the real driver, as far as it can be walked without one: every call reaches it with arguments that it takes."""

import collections
import ctypes
import gc
import itertools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import genesis
from genesis.runtime import cuda
from genesis.runtime.cuda.gpu import LaunchError
from genesis.runtime.cuda.memory import GpuMemory
from genesis.runtime.cuda.nccl import SIGNATURES, Communicator
from genesis.runtime.cuda.program import raw_words
from genesis.runtime.groups import Collective

bindings = pytest.importorskip("cuda.bindings.driver")
real = pytest.importorskip("genesis.runtime.cuda.real")
context = pytest.importorskip("genesis.runtime.cuda.context")

HERE = cuda.gpu_count() > 0
pytestmark = pytest.mark.skipif(HERE, reason="there is a driver: what runs on it is tested instead")
addresses = itertools.count(1 << 40, 1 << 30)
pinned = []


def host_memory(nbytes, flags):
    pinned.append(ctypes.create_string_buffer(nbytes))
    return (ctypes.addressof(pinned[-1]),)


GIVEN = {
    "cuInit": (), "cuDeviceGetCount": (1,), "cuDeviceGet": lambda index: (bindings.CUdevice(index),),
    "cuDeviceGetName": (b"Stand-in\0\0",),
    "cuDeviceGetAttribute": lambda attribute, device: (0 if "MINOR" in str(attribute) else 9,),
    "cuDevicePrimaryCtxRetain": lambda device: (bindings.CUcontext(100 + int(device)),), "cuCtxPushCurrent": (),
    "cuCtxPopCurrent": (bindings.CUcontext(),), "cuStreamCreate": (bindings.CUstream(),), "cuDriverGetVersion": (13000,),
    "cuDeviceTotalMem": (1 << 30,), "cuPointerGetAttribute": (3,), "cuEventQuery": (),
    "cuMemGetInfo": (1 << 20, 1 << 30), "cuMemAlloc": lambda nbytes: (bindings.CUdeviceptr(next(addresses)),), "cuMemFree": (),
    "cuMemHostAlloc": host_memory, "cuMemcpyHtoDAsync": (), "cuMemcpyDtoHAsync": (), "cuMemcpyDtoDAsync": (),
    "cuMemsetD8Async": (), "cuEventCreate": (bindings.CUevent(),), "cuEventRecord": (), "cuEventSynchronize": (),
    "cuEventDestroy": (), "cuEventElapsedTime": (2.0,), "cuStreamSynchronize": (), "cuModuleLoadData": (bindings.CUmodule(),),
    "cuModuleGetFunction": (bindings.CUfunction(),), "cuFuncLoad": (), "cuLaunchKernel": (), "cuStreamBeginCapture": (),
    "cuStreamEndCapture": (bindings.CUgraph(),), "cuGraphInstantiate": (bindings.CUgraphExec(),), "cuGraphDestroy": (),
    "cuGraphLaunch": (), "cuGraphExecDestroy": (), "cuGetErrorName": (b"CUDA_ERROR_UNKNOWN",),
    "cuGetErrorString": (b"unknown error",),
}
ANYWHERE = ("cuInit", "cuDevice", "cuDriver", "cuGetError", "cuCtx")  # calls that need no context
CAPTURE = ["cuStreamBeginCapture", "cuLaunchKernel", "cuStreamEndCapture"]


def collect_until(ready):
    """Collect garbage until the thread that made a graph has ended, and let go of what it had."""
    for _ in range(1000):
        gc.collect()
        if ready():
            break
        time.sleep(0.001)


class StandIn:
    """The bindings, which check their arguments as ever; where they would go on to the driver, success is returned.

    `contexts` are those that were pushed and not popped; `within` is the one that each call was made in, where one matters.
    """

    def __init__(self):
        self.calls = []
        self.failing = {}
        self.contexts = []
        self.within = []

    def __getattr__(self, name):
        function = getattr(bindings, name)
        if not name.startswith("cu"):
            return function

        def called(*arguments):
            with pytest.raises(Exception, match="driver library"):
                function(*arguments)
            if name == "cuCtxPushCurrent":
                self.contexts.append(int(arguments[0]))
            elif name == "cuCtxPopCurrent":
                self.contexts.pop()
            else:
                self.calls.append(name)
            if not name.startswith(ANYWHERE):
                self.within.append(self.contexts[-1] if self.contexts else None)
            given = GIVEN[name]
            return self.failing.get(name, bindings.CUresult.CUDA_SUCCESS), *(given(*arguments) if callable(given) else given)

        called.__name__ = name
        return called


@pytest.fixture
def driver(monkeypatch):
    made = StandIn()
    for module in (real, context):
        monkeypatch.setattr(module, "driver", made)
    monkeypatch.setattr(context, "_processes", [os.getpid()])
    return made


def test_every_call_reaches_the_driver_with_arguments_that_it_takes(driver):
    assert real.RealGpu.count() == 1
    gpu = real.RealGpu(0)
    assert (gpu.name, gpu.capability, gpu.processors) == ("Stand-in", (9, 0), 9)
    assert gpu.free_and_total() == (1 << 20, 1 << 30) and gpu.allocate(512) >= 1 << 40 and gpu.stream == 0
    values = gpu.pinned(64)
    gpu.copy_in(4096, values)
    gpu.copy_out(values, 4096)
    gpu.copy(4096, 8192, 512)
    gpu.clear(4096, 512)
    gpu.wait(gpu.mark())
    first, second = gpu.mark(timed=True), gpu.mark(timed=True, sleeping=True)
    assert gpu.has_passed(second) and gpu.seconds_between(first, second) == 0.002
    found = gpu.properties()
    assert (found.name, found.major, found.minor, found.total_memory, found.warp_size) == ("Stand-in", 9, 0, 1 << 30, 9)
    gpu.release(4096)
    function = gpu.load(b"machine code", "genesis_0123")
    types, arguments = ("float32*", "int64", "float64", "float32[]"), (4096, -3, 0.5, 8192)
    commands = [gpu.command(function, (2, 3), (32, 8), types, arguments) for _ in range(2)]
    ends = []
    timed, seconds = gpu.timed(commands)
    gpu.submit(timed, lambda: ends.append(len(driver.calls)))
    assert driver.calls[-5:] == ["cuEventRecord", "cuLaunchKernel"] * 2 + ["cuEventRecord"] and ends == [len(driver.calls)]
    assert seconds() == [0.002, 0.002]
    graph = gpu.captured(commands)
    gpu.submit([graph])
    del graph
    assert driver.calls[-3:] == ["cuGraphDestroy", "cuGraphLaunch", "cuGraphExecDestroy"]
    gpu.synchronize()
    gpu.wait_for(1)


def test_errors_are_told_in_the_drivers_words(driver):
    gpu = real.RealGpu(0)
    driver.failing["cuStreamSynchronize"] = bindings.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(RuntimeError, match="CUDA: cuStreamSynchronize failed: CUDA_ERROR_UNKNOWN: unknown error"):
        gpu.synchronize()
    mark = gpu.mark()
    driver.failing["cuEventQuery"] = bindings.CUresult.CUDA_ERROR_NOT_READY
    assert not gpu.has_passed(mark)
    driver.failing["cuEventQuery"] = bindings.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(RuntimeError, match="CUDA: cuEventQuery failed"):
        gpu.has_passed(mark)
    driver.failing["cuMemAlloc"] = bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    assert gpu.allocate(512) == 0
    driver.failing["cuLaunchKernel"] = bindings.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    with pytest.raises(RuntimeError, match="CUDA: a launch failed"):
        gpu.submit([gpu.command(gpu.load(b"", "f"), (1,), (1,), (), ())])


@pytest.mark.parametrize("failing", ["cuLaunchKernel", "cuStreamEndCapture", "cuGraphInstantiate"])
def test_a_capture_that_fails_is_ended_and_leaves_no_graph(driver, failing):
    gpu = real.RealGpu(0)
    command = gpu.command(gpu.load(b"", "f"), (1,), (1,), (), ())
    driver.calls.clear()
    driver.failing[failing] = bindings.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    with pytest.raises(RuntimeError, match=r"CUDA: .* failed"):
        gpu.captured([command])
    collect_until(lambda: "cuGraphDestroy" in driver.calls)
    instantiated = ["cuGraphInstantiate"] * (failing == "cuGraphInstantiate")
    told = [name for name in driver.calls if not name.startswith("cuGetError")]
    assert told == [*CAPTURE, *instantiated, "cuGraphDestroy"]


def test_a_library_that_fails_while_a_graph_is_made_ends_it_too(driver, monkeypatch):
    class LibraryError(Exception):
        pass

    def fail():
        raise LibraryError("allocation failed")

    gpu = real.RealGpu(0)
    monkeypatch.setattr(real, "cublas_error", lambda: LibraryError)
    with pytest.raises(RuntimeError, match="CUDA: cuBLAS failed: allocation failed"):
        gpu.captured([fail])
    collect_until(lambda: "cuGraphDestroy" in driver.calls)
    assert driver.calls[-3:] == [CAPTURE[0], CAPTURE[2], "cuGraphDestroy"]


def test_an_interrupt_does_not_leave_the_stream_in_capture(driver):
    gpu = real.RealGpu(0)
    command = gpu.command(gpu.load(b"", "f"), (1,), (1,), (), ())
    with pytest.raises(KeyboardInterrupt):
        gpu.captured([lambda: signal.raise_signal(signal.SIGINT), command])
    collect_until(lambda: "cuGraphExecDestroy" in driver.calls)
    assert [name for name in driver.calls if name in CAPTURE] == CAPTURE and driver.calls[-1] == "cuGraphExecDestroy"


def test_every_call_is_in_its_gpus_context_and_leaves_the_callers(driver):
    first, second = real.RealGpu(0), real.RealGpu(1)
    function = first.load(b"", "f")
    driver.contexts.append(7)  # which another library has made the current one
    for gpu, ours in ((first, 100), (second, 101), (first, 100)):
        driver.within.clear()
        values = gpu.pinned(64)
        gpu.copy_in(gpu.allocate(64), values)
        gpu.copy_out(values, 4096)
        gpu.copy(4096, 8192, 512)
        gpu.clear(4096, 512)
        gpu.release(4096)
        mark = gpu.mark(timed=True)
        gpu.wait(mark)
        gpu.has_passed(mark)
        gpu.seconds_between(mark, mark)
        gpu.synchronize()
        gpu.wait_for(1)
        gpu.free_and_total()
        gpu.owner_of(4096)
        commands, seconds = gpu.timed([gpu.command(function, (1,), (1,), (), ())])
        gpu.submit(commands)
        graph = gpu.captured(commands[1:2])
        gpu.submit([graph])
        del mark, commands, seconds, graph
        gc.collect()
        assert set(driver.within) == {ours} and len(driver.within) > 25
        assert driver.contexts == [7], "another library goes on where it was"


def test_a_call_that_fails_leaves_the_callers_context_too(driver):
    gpu = real.RealGpu(0)
    commands = [gpu.command(bindings.CUfunction(), (1,), (1,), (), ())]
    for name, use in (
        ("cuStreamSynchronize", gpu.synchronize), ("cuLaunchKernel", lambda: gpu.submit(commands)),
        ("cuModuleLoadData", lambda: gpu.load(b"", "f")), ("cuStreamBeginCapture", lambda: gpu.captured(commands)),
    ):
        driver.failing = {name: bindings.CUresult.CUDA_ERROR_UNKNOWN}
        with pytest.raises(RuntimeError, match="failed"):
            use()
        driver.failing = {}
        assert driver.contexts == []


@pytest.mark.parametrize("version", [13000, 12030])
def test_a_function_that_cannot_be_loaded_fails_when_it_is_loaded(driver, monkeypatch, version):
    monkeypatch.setitem(GIVEN, "cuDriverGetVersion", (version,))
    gpu = real.RealGpu(0)
    driver.failing["cuFuncLoad"] = bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    if version >= 12040:
        with pytest.raises(RuntimeError, match="CUDA: cuFuncLoad failed"):
            gpu.load(b"", "f")
    else:
        gpu.load(b"", "f")
        assert "cuFuncLoad" not in driver.calls, "the driver has no such call"


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_nothing_is_begun_after_a_launch_that_fails(driver, failed):
    gpu = real.RealGpu(0)
    begun = []

    def launch(number):
        begun.append(number)
        return (bindings.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES if number == failed else bindings.CUresult.CUDA_SUCCESS,)

    with pytest.raises(LaunchError, match="CUDA: a launch failed") as caught:
        gpu.submit([lambda n=n: launch(n) for n in range(3)], lambda: begun.append("after"))
    assert begun == [*range(failed + 1)] and (caught.value.failed, caught.value.in_part) == (failed, False)


def test_the_owner_of_memory_is_asked_for(driver):
    gpu = real.RealGpu(0)
    assert gpu.owner_of(4096) == 3
    driver.failing["cuPointerGetAttribute"] = bindings.CUresult.CUDA_ERROR_INVALID_VALUE
    assert gpu.owner_of(0) == 0


@pytest.mark.parametrize("use", [lambda gpu: gpu.synchronize(), lambda gpu: real.RealGpu(0)], ids=["in use", "new"])
def test_a_forked_process_is_told_that_the_gpu_is_not_its_own(driver, use):
    gpu = real.RealGpu(0)
    read, write = os.pipe()
    if not (child := os.fork()):
        try:
            use(gpu)
        except RuntimeError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert b"started by 'spawn'" in os.read(read, 1000)
    os.close(read)


def test_arguments_are_words_of_eight_bytes_and_arrays_seven():
    words = raw_words(("int64", "float64", "float32*", "float64[]"), (-2, 1.5, 4096, 8192))
    assert len(words) == 10 and words[0] == (1 << 64) - 2 and words[2] == 4096
    assert np.frombuffer(words.tobytes(), np.float64)[1] == 1.5
    assert words[3:].tolist() == [0, 0, words[5], 8, 8192, words[5], 8]


def test_without_a_driver_it_is_said_that_there_is_none():
    assert not genesis.cuda.is_available() and genesis.cuda.device_count() == 0
    with pytest.raises(ValueError, match="device: 'cuda' is not available: there is no NVIDIA driver"):
        genesis.zeros(2).cuda()
    with pytest.raises(ValueError, match="'cuda' is not available"):
        genesis.cuda.synchronize()
    genesis.cuda.empty_cache()


def a_training_step():
    """Print what the driver is asked for by each of some steps; for a process of its own."""
    stand_in = real.driver = context.driver = StandIn()
    real.RealGpu.has_blas = False
    cuda._gpus.cache_clear()
    model = genesis.nn.Sequential(genesis.nn.Linear(3, 4), genesis.nn.GELU(), genesis.nn.Linear(4, 2)).cuda()
    optimizer = genesis.optim.Adam(model.parameters())
    x, y = genesis.ones(5, 3, device="cuda"), genesis.zeros(5, 2, device="cuda")
    genesis.cuda.synchronize()
    for _ in range(4):
        stand_in.calls.clear()
        optimizer.zero_grad()
        genesis.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        print(*[f"{name} {count}" for name, count in sorted(collections.Counter(stand_in.calls).items())], sep=", ")


def test_a_training_step_becomes_one_upload_of_its_numbers_and_one_graph():
    command = [sys.executable, "-c", "from tests.cuda.test_driver import a_training_step; a_training_step()"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    steps = done.stdout.splitlines()
    assert len(steps) == 4, done.stderr
    assert "cuModuleLoadData" in steps[0] and "cuLaunchKernel" in steps[0], "machine code for sm_90, launched one by one"
    assert "cuGraphInstantiate 1" in "".join(steps[1:3])
    assert steps[3] == "cuGraphLaunch 1, cuMemcpyHtoDAsync 1"


def test_nccl_is_called_in_the_gpus_context_on_a_stream_of_its_own(driver, monkeypatch):
    told, waits, numbers = [], [], itertools.count(5)
    monkeypatch.setitem(GIVEN, "cuStreamCreate", lambda flags: (bindings.CUstream(next(numbers)),))
    monkeypatch.setitem(GIVEN, "cuEventRecord", lambda event, stream: waits.append(("record", int(stream))) or ())
    monkeypatch.setitem(GIVEN, "cuStreamWaitEvent", lambda stream, event, flags: waits.append(("wait", int(stream))) or ())

    def said(name):
        def played(*arguments):
            told.append((name, driver.contexts[-1], arguments[-1]))
            if name == "CommInitRankConfig":
                arguments[0]._obj.value = 4096
            if name == "CommGetAsyncError":
                arguments[1]._obj.value = 0
            return 7 if name == "CommInitRankConfig" else 0
        return played

    memory = GpuMemory(real.RealGpu(0))
    engine = Communicator(memory, {name: said(name) for name in SIGNATURES}, b"\0" * 128, 2, 0)
    what = Collective("all_reduce", "sum", -1, (4,), (4,), "sum of float32[4]")
    assert engine.submit(engine.commands(what, "float32", 4, 4096, 8192))
    engine.close(is_broken=True)
    names = ["CommInitRankConfig", "CommGetAsyncError", "AllReduce", "CommAbort"]
    assert [(name, context) for name, context, _ in told] == [(name, 100) for name in names]
    assert told[2][2] == memory.gpu.communication_stream == 6 and memory.gpu.stream == 5

    def fork_and_join():
        memory.gpu.hold(memory.gpu.mark(), communicates=True)
        memory.gpu.hold(memory.gpu.mark(communicates=True))
    fork_and_join()
    assert waits == [("record", 5), ("wait", 6), ("record", 6), ("wait", 5)]
    monkeypatch.setitem(GIVEN, "cuStreamBeginCapture", lambda stream, mode: waits.append(("begin", int(stream))) or ())
    monkeypatch.setitem(GIVEN, "cuStreamEndCapture", lambda stream: waits.append(("end", int(stream))) or (bindings.CUgraph(),))
    monkeypatch.setitem(GIVEN, "cuGraphLaunch", lambda graph, stream: waits.append(("launch", int(stream))) or ())
    waits.clear()
    graph = memory.gpu.captured([fork_and_join])  # in the stream of programs; that of what communicates is forked and joined
    memory.gpu.submit([graph])
    assert waits == [("begin", 5), ("record", 5), ("wait", 6), ("record", 6), ("wait", 5), ("end", 5), ("launch", 5)]
