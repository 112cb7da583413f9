"""The device that tests marked `device` compute on: what `pytest --device` names."""

import genesis
from genesis.runtime import cuda

DEVICE = "cpu"


def tensor(data, **settings):
    """A tensor on the device under test."""
    return genesis.tensor(data, device=DEVICE, **settings)


def reason_for_none():
    """Why there is no such device; empty if there is one."""
    try:
        genesis.empty(0, device=DEVICE)
    except (ValueError, RuntimeError) as refused:
        return cuda.reason_for_none() or str(refused)
    return ""
