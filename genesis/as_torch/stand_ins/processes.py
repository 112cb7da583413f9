"""Names of `torch.distributed` that genesis does not need, and `torch.accelerator`: the GPUs that genesis sees."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, NoReturn

import genesis
from genesis.as_torch.stand_ins.settings import no
from genesis.distributed.gpus import ENGINES
from genesis.distributed.process_group import is_available, is_nccl_available
from genesis.ir.annotations import AnyFunction
from genesis.runtime.devices import Device

is_torchelastic_launched = is_ucc_available = is_xccl_available = no


def is_backend_available(backend: str) -> bool:
    """Whether `init_process_group` accepts this backend."""
    name = backend.lower()
    return is_available() and name in ENGINES and (name != "nccl" or is_nccl_available())


def _require_initialized(func: AnyFunction) -> AnyFunction:
    """A function of remote procedure calls: they cannot be initialized here, so that it raises RuntimeError when called."""

    @functools.wraps(func)
    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")

    return refused


class Backend(str):
    """The name of a backend, in lower case."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]

    def __new__(cls, name: str) -> str:  # type: ignore[misc]
        """The name itself, as PyTorch's."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()


class Accelerator:
    """The names of `torch.accelerator`."""

    @staticmethod
    def is_available() -> bool:
        """Whether there is a GPU."""
        return genesis.cuda.is_available()

    @staticmethod
    def device_count() -> int:
        """The number of GPUs."""
        return genesis.cuda.device_count()

    @staticmethod
    def current_accelerator(check_available: bool = False) -> Device | None:
        """The GPU, as a device; None if there is none."""
        return Device("cuda") if genesis.cuda.is_available() else None

    @staticmethod
    def current_device_index() -> int:
        """The number of the GPU that "cuda" means."""
        return genesis.cuda.current_device()

    @staticmethod
    def set_device_index(device: Any) -> None:
        """Set the GPU that "cuda" means, by number."""
        genesis.cuda.set_device(device)

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Wait for the GPU, if there is one."""
        if genesis.cuda.is_available():
            genesis.cuda.synchronize(device)

    @staticmethod
    def empty_cache() -> None:
        """Free the memory in the GPU's pool."""
        if genesis.cuda.is_available():
            genesis.cuda.empty_cache()

    current_device_idx = current_device_index
    set_device_idx = set_device_index
