"""More names of `torch`: the process's state, storages by dtype, memory-mapped files, tags, old spellings."""

from __future__ import annotations

import enum
import os
from functools import partial
from typing import Any

import genesis
from genesis.as_torch.names import version as _version
from genesis.as_torch.stand_ins import cpu
from genesis.as_torch.stand_ins.settings import no, nothing
from genesis.as_torch.stand_ins.tensor_types import legacy_tensor
from genesis.autograd import anomaly
from genesis.functions.methods.rarer_names import REMOVED, removed
from genesis.functions.methods.storage import CUDA_STORAGES, STORAGES, TypedStorage, UntypedStorage, of_file  # noqa: F401
from genesis.ir.dtypes import DType, bfloat16, float16
from genesis.random import state_bytes
from genesis.runtime.rng import default_generator
from genesis.tensor.handle import Tensor
from genesis.tracing.state import thread_state
from genesis.utils.data.workers import thread_safe_generator  # noqa: F401

PRIVATE_OPS = ("unique_dim",)
eig, lstsq, symeig = (REMOVED[name] for name in ("eig", "lstsq", "symeig"))
matrix_rank = removed("matrix_rank", "linalg.matrix_rank")
is_autocast_xla_enabled = is_autocast_ipu_enabled = cudnn_is_acceptable = no
set_autocast_xla_enabled = set_autocast_ipu_enabled = prepare_multiprocessing_environment = nothing


class TorchVersion(str):
    """A version, compared numerically with another, a tuple or a string.

    >>> TorchVersion("2.10.1") > "2.9", TorchVersion("2.10.1") >= (2, 10)
    (True, True)
    """

    __slots__ = ()

    def _numbers(self, other: Any) -> list[tuple[Any, ...]]:
        """The numbers of both versions, padded to one length; a build for a platform ("+cpu") is above the plain one."""
        parts = [(given.partition("+")[0].split("."), "+" in given) if isinstance(given, str) else (given, False)
                 for given in (str(self), other)]
        numbers = [tuple(int(part) for part in split if str(part).isdigit()) for split, _ in parts]
        most = max(map(len, numbers))
        return [(*n, *(0,) * (most - len(n)), local) for n, (_, local) in zip(numbers, parts, strict=True)]

    def __lt__(self, other: Any) -> bool:
        mine, theirs = self._numbers(other)
        return mine < theirs

    def __le__(self, other: Any) -> bool:
        mine, theirs = self._numbers(other)
        return mine <= theirs

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        mine, theirs = self._numbers(other)
        return mine == theirs

    __hash__ = str.__hash__


__version__ = TorchVersion(_version())


class Tag(enum.Enum):
    """Tags of operations in users' libraries; without effect."""

    core, pointwise, view_copy, inplace_view, generated, nondeterministic_seeded, data_dependent_output, flexible_layout, \
        pt2_compliant_tag, needs_exact_strides, needs_fixed_stride_order, dynamic_output_shape, cudagraph_unsafe = range(13)


# ---- random numbers ----
def manual_seed(seed: int) -> genesis.Generator:
    """`genesis.manual_seed`; returns the generator."""
    genesis.manual_seed(seed)
    return default_generator


def get_rng_state(device: object = None) -> Tensor:
    """The generator's state, as bytes."""
    return state_bytes(default_generator)


# ---- files in memory ----
def from_file(
    filename: str | os.PathLike[str], shared: bool | None = None, size: int | None = 0, *, dtype: DType | None = None,
    layout: object = None, device: object = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Tensor:
    """`size` elements of a file as a tensor: a copy or, with `shared`, the file's memory; the file is created if missing."""
    return of_file(filename, shared, size or 0, dtype or genesis.get_default_dtype()).requires_grad_(requires_grad)


# ---- questions and settings ----
is_anomaly_enabled = is_anomaly_check_nan_enabled = anomaly.is_anomaly_enabled  # without a check there is nothing to enable
set_anomaly_enabled = genesis.autograd.set_detect_anomaly


_low: dict[str, DType] = {"cpu": bfloat16, "cuda": float16}


def get_autocast_dtype(device_type: str) -> DType:
    """The default dtype of autocast."""
    return _low[device_type]


get_autocast_cpu_dtype, get_autocast_gpu_dtype = lambda: _low["cpu"], lambda: _low["cuda"]


def set_autocast_dtype(device_type: str, dtype: DType) -> None:
    """Set the dtype that `set_autocast_enabled` casts to."""
    _low[device_type] = dtype


def set_autocast_enabled(*arguments: Any) -> None:
    """Switch autocast on or off in this thread, for a device type if given; regions of `autocast` take precedence."""
    *device, enabled = arguments
    thread_state.autocast = _low[device[0] if device else "cuda" if genesis.cuda.is_available() else "cpu"] if enabled else None


set_autocast_cpu_enabled = set_autocast_enabled
set_autocast_cpu_dtype, set_autocast_gpu_dtype = partial(set_autocast_dtype, "cpu"), partial(set_autocast_dtype, "cuda")


def get_device_module(device: Any = None) -> Any:
    """The module of a kind of device."""
    kind = genesis.device(device).type if device is not None else "cuda" if genesis.cuda.is_available() else "cpu"
    return genesis.cuda if kind == "cuda" else cpu


def to_dlpack(tensor: Tensor) -> Any:
    """The tensor's capsule, for `from_dlpack`."""
    return tensor.detach().__dlpack__()


legacy = legacy_tensor


NOT_REPLAYABLE = ("manual_seed", "get_autocast_dtype", "<lambda>", "set_autocast_dtype", "set_autocast_enabled")
