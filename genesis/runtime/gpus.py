"""The driver of GPUs, which is loaded when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genesis.runtime.deferred import deferred
from genesis.runtime.devices import GpuDriver, register_gpus

if TYPE_CHECKING:
    from genesis.runtime.cuda import gpu_count, memory_of, reason_for_none
else:
    gpu_count = deferred("genesis.runtime.cuda", "gpu_count")
    memory_of = deferred("genesis.runtime.cuda", "memory_of")
    reason_for_none = deferred("genesis.runtime.cuda", "reason_for_none")

register_gpus(GpuDriver(gpu_count, reason_for_none, memory_of))
