"""`torch.cuda` and `torch.accelerator` where there is no GPU: they answer as PyTorch's there."""

import inspect
import sys
import types
import warnings

import pytest
import torch

import genesis
from genesis.as_torch.finder import look_up
from genesis.ir.errors import OutOfMemoryError
from genesis.runtime.cuda.allocator import Allocator
from genesis.runtime.cuda.simulated import SimulatedGpu

ASKED = {
    "torch.cuda": """
        caching_allocator is_available is_tf32_supported is_bf16_supported device_count get_arch_list get_gencode_flags
        memory_allocated memory_reserved max_memory_allocated max_memory_reserved memory_stats memory_stats_as_nested_dict
        host_memory_stats host_memory_stats_as_nested_dict memory_cached max_memory_cached list_gpu_processes empty_cache
        is_initialized has_half has_magma utilization memory_usage temperature power_draw clock_rate device_memory_used
        current_device get_device_name get_device_capability init ipc_collect mem_get_info synchronize current_stream
        get_per_process_memory_fraction""",
    "torch.accelerator": """
        is_available device_count current_accelerator current_device_index current_device_idx get_device_capability
        current_stream empty_cache empty_host_cache get_memory_info memory_allocated memory_reserved max_memory_allocated
        max_memory_reserved memory_stats reset_peak_memory_stats reset_accumulated_memory_stats synchronize""",
}
pytestmark = pytest.mark.skipif(genesis.cuda.is_available() or torch.cuda.is_available(), reason="there is a GPU")


def answer(module_name, name, found):
    """What it says; for an error, its kind: PyTorch's build without CUDA fails assertions."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return found() if callable(found) else found
    except ModuleNotFoundError:
        return "no module"
    except Exception:
        return "an error"


@pytest.mark.parametrize("space", ASKED)
def test_they_say_what_pytorchs_say(space):
    module = getattr(torch, space.rpartition(".")[2])
    asked = [name for name in ASKED[space].split() if hasattr(module, name)]
    wanted = {name: answer(space, name, getattr(module, name)) for name in asked}
    assert {name: answer(space, name, look_up(space, name)) for name in asked} == wanted


def test_accelerators_take_devices_by_position_alone():
    for name in torch.accelerator.__all__:
        theirs, ours = getattr(torch.accelerator, name), look_up("torch.accelerator", name)
        kinds = {p.kind for p in inspect.signature(theirs).parameters.values()} if inspect.isfunction(theirs) else ()
        if inspect.Parameter.POSITIONAL_ONLY in kinds:
            with pytest.raises((RuntimeError, TypeError)):
                ours(device=None)


def test_types_of_tensors_on_gpus():
    x = genesis.ones(2)
    kind, storage = look_up("torch.cuda", "FloatTensor"), look_up("torch.cuda", "FloatStorage")
    assert not isinstance(x, kind) and not isinstance(x.storage(), storage) and isinstance(x, look_up("torch", "FloatTensor"))
    for made in (kind, storage):
        with pytest.raises(ValueError):
            made(2)


def test_the_driver_is_asked_for_the_gpu_that_cuda_numbers(monkeypatch):
    rates = types.SimpleNamespace(gpu=7, memory=3)
    asked = types.SimpleNamespace(
        nvmlInit=lambda: None, nvmlDeviceGetHandleByIndex=lambda index: index, nvmlDeviceGetHandleByUUID=lambda name: name,
        nvmlDeviceGetUtilizationRates=lambda handle: rates,
        nvmlDeviceGetTemperature=lambda handle, kind: {5: 40, "GPU-a": 41}[handle],
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [types.SimpleNamespace(pid=12, usedGpuMemory=1 << 20)])
    monkeypatch.setitem(sys.modules, "pynvml", asked)
    monkeypatch.setattr("genesis.cuda.gpus.gpu_of", lambda device: types.SimpleNamespace(index=device or 0))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-a")
    assert [genesis.cuda.temperature(0), genesis.cuda.temperature(1), genesis.cuda.utilization()] == [40, 41, 7]
    assert genesis.cuda.list_gpu_processes() == "GPU:0\nprocess         12 uses        1.000 MB GPU memory"


def test_no_more_than_the_limit_is_taken():
    allocator = Allocator(SimulatedGpu(0))
    allocator.limit = 4 << 20
    first = allocator.take(3 << 20)
    with pytest.raises(OutOfMemoryError):
        allocator.take(3 << 20)
    allocator.give(first)
    assert allocator.take(3 << 20) == first and allocator.reserved <= allocator.limit
