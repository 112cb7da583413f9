"""Devices: where a tensor's memory is. There is one so far, the CPU."""

from __future__ import annotations

from typing import Any

__all__ = ["Device", "device_of"]


class Device:
    """A place for tensors, by its name: "cpu".

    Raises ValueError for a device that does not exist here.

    >>> import genesis
    >>> genesis.device("cpu")
    device(type='cpu')
    >>> genesis.zeros(2).device == "cpu"
    True
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, device: str | Device, index: int | None = None) -> None:
        name = device.type if isinstance(device, Device) else device
        if not isinstance(name, str):
            raise TypeError(f"device: wants a name such as 'cpu', got {type(device).__name__} {device!r}")
        kind, _, number = name.partition(":")
        if kind != "cpu" or number not in ("", "0") or index not in (None, 0):
            raise ValueError(f"device: {name!r} is not available; this build has 'cpu'")
        self.type = kind
        self.index = index

    def __repr__(self) -> str:
        return f"device(type={self.type!r})"

    def __str__(self) -> str:
        return self.type

    def __eq__(self, other: object) -> bool:
        return str(other) == self.type if isinstance(other, Device | str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.type)

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.type,)


_CPU = Device("cpu")


def device_of(device: Any = None) -> Device:
    """The device that an argument `device=` names; the CPU for None."""
    return _CPU if device is None else Device(device)
