"""Guards of modes, of the thread's state and of devices, as instructions."""

from __future__ import annotations

from collections.abc import Iterable

from genesis.capture.record.records import Mode
from genesis.execution.flush import FLUSH_HOOKS, has_pending_collectives, is_held_up
from genesis.execution.native_flush import require_settings
from genesis.ir.dtypes import default_dtype
from genesis.runtime.devices import Device, get_current_gpu, get_default_device, seen_devices
from genesis.runtime.groups import GROUPS
from genesis.runtime.instructions import Constant, Instructions, Register
from genesis.tensor.call_modes import REPLACING
from genesis.tracing.state import thread_state
from genesis.tracing.trace import BUSY, critical


def require_plain_thread(code: Instructions, modes: Mode, is_locked: bool) -> None:
    """The checks of `Compiled.__call__` before it looks at entries. If `is_locked`, the replay itself checks for handlers."""
    for container in (REPLACING, FLUSH_HOOKS):
        code.require_size(container, 0)
    require_settings(code)
    if not is_locked:
        code.require_attribute(critical, "running", False)
    state = code.attribute(code.constant(thread_state), "__dict__")
    is_enabled, autocast, dtype, _, _, _ = modes
    plain = {"recorder": None, "eager": False, "deferred": False, "grad_enabled": is_enabled, "left": (), "observers": ()}
    with code.unless_passed(state):
        for name, value in plain.items():
            code.emit("IS", code.item(state, name), Constant(value))
    code.emit("IS", code.attribute(code.constant(thread_state), "autocast"), Constant(autocast))
    code.emit("IS", code.item(code.constant(default_dtype), 0), Constant(dtype))
    opened = code.item(state, "trace")
    skip = code.emit("SKIP_IS", opened, None, 0)
    if GROUPS:  # pending collectives must run first
        code.emit("FALSE", code.call(has_pending_collectives))
    else:
        code.require_size(GROUPS, 0)
    if not is_locked:
        code.emit("IS_NOT", code.attribute(opened, "closed"), Constant(BUSY))  # BUSY: a handler interrupts a flush
    code.skip_from(skip)
    skip = code.emit("SKIP_IS", code.item(state, "multi_device"), Constant(False), 0)
    code.emit("FALSE", code.call(is_held_up))
    code.skip_from(skip)


def require_device(code: Instructions, modes: Mode, device: Device, arrays: Iterable[Register]) -> None:
    """Require that arrays are on `device`, and the device modes unchanged. Skipped as long as the process has used no device
    but the CPU."""
    looked = code.register()
    skip = code.skip_if_empty(seen_devices)
    for array in dict.fromkeys(arrays):
        code.attribute(array, "memory", looked)
        for name in ("buffer", "device"):
            code.attribute(looked, name, looked)
        code.emit("IS", looked, device)
    default, gpu = modes[3]
    code.emit("IS", code.call(get_default_device), default)
    code.emit("EQUAL", code.call(get_current_gpu), Constant(gpu))
    code.skip_from(skip)
