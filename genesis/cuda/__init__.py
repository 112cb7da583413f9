"""CUDA GPUs: availability, properties, memory, streams and events.

As in PyTorch: `genesis.zeros(2, device="cuda")`, `x.to("cuda:1")`, `x.cuda()`, `model.cuda()`. A GPU has one stream and
runs its work in order.
"""

from __future__ import annotations

from genesis.cuda import amp
from genesis.cuda.gpus import (
    current_device, device, device_count, get_device_capability, get_device_name, get_device_properties, init, is_available,
    is_bf16_supported, is_initialized, set_device,
)
from genesis.cuda.memory import (
    empty_cache, max_memory_allocated, max_memory_reserved, mem_get_info, memory_allocated, memory_reserved, memory_stats,
    memory_summary, reset_peak_memory_stats,
)
from genesis.cuda.random import (
    get_rng_state, get_rng_state_all, initial_seed, manual_seed, manual_seed_all, seed, seed_all, set_rng_state,
    set_rng_state_all,
)
from genesis.cuda.streams import Event, Stream, current_stream, default_stream, set_stream, stream, synchronize
from genesis.runtime.cuda.gpu import OutOfMemoryError

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "amp", "current_device", "current_stream", "default_stream", "device",
    "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "init", "initial_seed", "is_available", "is_bf16_supported", "is_initialized", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_summary", "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state",
    "set_rng_state_all", "set_stream", "stream", "synchronize",
]
__dir__ = __all__.copy
