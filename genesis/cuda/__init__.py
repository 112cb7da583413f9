"""CUDA GPUs: availability, properties, memory, streams and events.

As in PyTorch: `genesis.zeros(2, device="cuda")`, `x.to("cuda:1")`, `x.cuda()`, `model.cuda()`. A GPU has one stream and
runs its work in order.
"""

from __future__ import annotations

from genesis.cuda import amp
from genesis.cuda.gpus import (
    clock_rate, current_device, device, device_count, device_memory_used, device_of, get_arch_list, get_device_capability,
    get_device_name, get_device_properties, init, is_available, is_bf16_supported, is_initialized, is_tf32_supported,
    list_gpu_processes, memory_usage, power_draw, set_device, temperature, utilization,
)
from genesis.cuda.memory import (
    empty_cache, get_per_process_memory_fraction, max_memory_allocated, max_memory_reserved, mem_get_info, memory_allocated,
    memory_reserved, memory_stats, memory_stats_as_nested_dict, memory_summary, reset_accumulated_memory_stats,
    reset_peak_memory_stats, set_per_process_memory_fraction,
)
from genesis.cuda.random import (
    get_rng_state, get_rng_state_all, initial_seed, manual_seed, manual_seed_all, seed, seed_all, set_rng_state,
    set_rng_state_all,
)
from genesis.cuda.streams import Event, Stream, current_stream, default_stream, set_stream, stream, synchronize
from genesis.ir.errors import OutOfMemoryError

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "amp", "clock_rate", "current_device", "current_stream", "default_stream", "device",
    "device_count", "device_memory_used", "device_of", "empty_cache", "get_arch_list", "get_device_capability",
    "get_device_name", "get_device_properties", "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all", "init",
    "initial_seed", "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "list_gpu_processes",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_stats_as_nested_dict", "memory_summary", "memory_usage", "power_draw",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
    "temperature", "utilization",
]
__dir__ = __all__.copy
