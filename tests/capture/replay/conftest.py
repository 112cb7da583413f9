"""Tests of replays begin as in a process that has used no device but the CPU: with others Python does what instructions do."""

import pytest

from genesis.execution.flush import flush_all
from genesis.runtime.devices import seen_devices
from genesis.tracing.state import thread_state


@pytest.fixture(autouse=True)
def on_the_cpu_alone():
    flush_all()
    seen, multi_device = {*seen_devices}, thread_state.multi_device
    seen_devices.clear()
    thread_state.multi_device, thread_state.trace = False, None
    yield
    flush_all()
    seen_devices.update(seen)
    thread_state.multi_device, thread_state.trace = multi_device or thread_state.multi_device, None
