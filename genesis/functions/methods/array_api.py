"""Methods that lead libraries from an array to the functions of the array API standard."""

from __future__ import annotations

import sys
from types import ModuleType

from genesis.runtime.devices import DeviceLike
from genesis.tensor.handle import Tensor, method

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


@method
def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """The array API's functions for this array. Raises ValueError for an unsupported version."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"__array_namespace__: api_version {api_version!r}; want one of {', '.join(_VERSIONS)}")
    return sys.modules["genesis"].array_api  # type: ignore[no-any-return]


@method
def to_device(self: Tensor, device: DeviceLike, /, *, stream: object = None) -> Tensor:
    """The tensor on `device`; itself if it is there already."""
    return self.to(device)
