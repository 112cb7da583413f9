"""Names of `torch.distributed` that are PyTorch's alone: backends by name, levels of checks, older spellings."""

from __future__ import annotations

import contextlib
import enum
import functools
import os
import pdb
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NewType, NoReturn

import genesis
from genesis.as_torch.stand_ins.settings import no
from genesis.distributed.collectives import ReduceOp
from genesis.distributed.gpus import ENGINES
from genesis.distributed.initialization import is_available, is_nccl_available
from genesis.distributed.process_group import NON_GROUP_MEMBER, get_backend, is_initialized, world
from genesis.ir.annotations import AnyFunction
from genesis.ir.errors import ArgumentError
from genesis.runtime.groups import GROUPS, CollectiveError

GroupName = NewType("GroupName", str)
DistBackendError = CollectiveError
is_torchelastic_launched = is_ucc_available = is_xccl_available = no


def is_backend_available(backend: str) -> bool:
    """Whether `init_process_group` takes this backend."""
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
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}
    backend_capability: ClassVar[dict[str, list[str]]] = {
        GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"],
        FAKE: ["cpu", "cuda", "hpu", "xpu"],
    }

    def __new__(cls, name: str) -> str:  # type: ignore[misc]
        """The name itself, as PyTorch's."""
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()


class BackendConfig:
    """The backend of each kind of device, read from "gloo", "nccl" or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend: str) -> None:
        name = str(backend).lower()
        pairs = [tuple(pair.split(":")) for pair in name.split(",")]
        if name == Backend.UNDEFINED:
            device = "cuda" if genesis.cuda.is_available() else "cpu"
            pairs = [(device, Backend.default_device_backend_map[device])]
        elif ":" not in name:
            pairs = [(device, name) for device in Backend.backend_capability.get(name, ("cpu", "cuda", "xpu"))]
        self.device_backend_map = dict(pair for pair in pairs if len(pair) == 2)
        if len(self.device_backend_map) < len(pairs):
            raise ValueError(f"The custom backend string argument is invalid: {backend}; want '<device type>:<backend>,..'")

    def __repr__(self) -> str:
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend of each kind of device."""
        return self.device_backend_map


def get_backend_config(group: Any = None) -> str:
    """The backend of each kind of device in a group."""
    name = get_backend(group)
    return name if ":" in name else f"{ENGINES[name]}:{name}"


def get_default_backend_for_device(device: Any) -> str:
    """The backend that `init_process_group` takes for a kind of device."""
    kind = genesis.device(device).type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def supports_complex(reduceOp: Any) -> bool:
    """Whether complex numbers are reduced so: by sums and means."""
    return reduceOp in ("sum", "avg")


class _Deprecated(type):
    """The class of `reduce_op`, whose members warn."""

    def __getattr__(cls, name: str) -> ReduceOp:
        if name not in ("SUM", "PRODUCT", "MIN", "MAX"):
            raise AttributeError(name)
        warnings.warn("torch.distributed.reduce_op is deprecated, please use torch.distributed.ReduceOp instead", FutureWarning,
                      stacklevel=2)
        return ReduceOp[name]


class reduce_op(metaclass=_Deprecated):
    """An older name of `ReduceOp`."""


def shrink_group(
    ranks_to_exclude: Sequence[int], group: Any = None, shrink_flags: int = 0, pg_options: object = None
) -> NoReturn:
    """Raises TypeError, as PyTorch's for all backends but NCCL: `new_group` makes a group of the ranks that remain."""
    raise TypeError(f"shrink_group: {get_backend(group)} cannot shrink a group; want new_group of the remaining ranks")


@contextlib.contextmanager
def record_comm(name: str) -> Iterator[None]:
    """A context that the profiler shows under a name."""
    with genesis.profiler.record_function(name):
        yield


# ---- what is checked: ranks always compare what they communicate, at every level ----
class DebugLevel(enum.IntEnum):
    """The level of checks, from the variable TORCH_DISTRIBUTED_DEBUG."""

    OFF, INFO, DETAIL = range(3)


_levels: list[DebugLevel] = []  # the one that was set, if any


def get_debug_level() -> DebugLevel:
    """The level that was set, or the environment's."""
    return _levels[-1] if _levels else _level_of_environment()


def set_debug_level(level: DebugLevel) -> None:
    """Remember a level."""
    _levels[:] = [DebugLevel(level)]


def set_debug_level_from_env() -> None:
    """Remember the environment's level. Raises ValueError for one that there is not."""
    set_debug_level(_level_of_environment())


def _level_of_environment() -> DebugLevel:
    said = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if said not in DebugLevel.__members__:
        raise ArgumentError(f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, got {said}.")
    return DebugLevel[said]


_passed: Counter[tuple[str, int]] = Counter()  # how often `breakpoint` was called at a line


def breakpoint(rank: int = 0, skip: int = 0, timeout_s: float | None = 3600) -> None:
    """Open Python's debugger on one rank, while the others wait; after `skip` calls at the same line."""
    frame = sys._getframe(1)
    at = frame.f_code.co_filename, frame.f_lineno
    _passed[at] += 1
    if _passed[at] <= skip:
        return
    if timeout_s is not None:
        for group in GROUPS.values():
            group.timeout = timeout_s
    if genesis.distributed.get_rank() == rank:
        pdb.Pdb().set_trace(frame)
    genesis.distributed.barrier()


class _Groups(type):
    @property
    def WORLD(cls) -> Any:
        """The group of all ranks; None before `init_process_group`."""
        return world() if is_initialized() else None


class group(metaclass=_Groups):
    """`group.WORLD` is the group of all ranks."""


class GroupMember(metaclass=_Groups):
    """As `group`, and the value for a group without this rank."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER
