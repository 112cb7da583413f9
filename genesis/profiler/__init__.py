"""Profiles: the time of program stages by line and module, and of Python between them.

>>> x = genesis.ones(256, 256)
>>> with genesis.profiler.profile() as p:
...     y = (x @ x).relu().sum().item()
>>> table = p.table(by="line")
"""

from genesis.profiler.memory_map import MemoryMap
from genesis.profiler.session import (
    ProfilerAction, ProfilerActivity, profile, record_function, schedule, supported_activities, tensorboard_trace_handler,
)
from genesis.profiler.tables import Row

__all__ = [
    "MemoryMap", "ProfilerAction", "ProfilerActivity", "Row", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]
__dir__ = __all__.copy
