"""Single names by which public code detects PyTorch's features: other devices, groups, quantised dtypes."""

from __future__ import annotations

from typing import Any

import genesis
from genesis.ao import observers
from genesis.ao.nn import quantized
from genesis.as_torch.stand_ins import types
from genesis.as_torch.stand_ins.settings import always, no, nothing
from genesis.autograd.custom import Context
from genesis.distributed import process_group
from genesis.distributed.tensor.dtensor import DTensor
from genesis.runtime.devices import CPU


class _Groups(type):
    @property
    def WORLD(cls) -> Any:
        """The group of all ranks; None before `init_process_group`."""
        return process_group.world() if process_group.is_initialized() else None


class group(metaclass=_Groups):
    """`group.WORLD` is the group of all ranks."""


class GroupMember(metaclass=_Groups):
    """As `group`, and the value for a group without this rank."""

    NON_GROUP_MEMBER = process_group.NON_GROUP_MEMBER


class TracerWarning(Warning):
    """A warning of PyTorch's tracer; never raised."""

    ignore_lib_warnings = staticmethod(nothing)


NAMES: dict[str, Any] = {
    "torch.autograd.function.FunctionCtx": Context,
    **{f"torch.distributed{path}.{kind.__name__}": kind for path in ("", ".distributed_c10d") for kind in (group, GroupMember)},
    "torch.distributed._tensor.DTensor": DTensor,
    "torch.legacy_contiguous_format": types.contiguous_format,
    "torch.backends.cuda.is_built": no,
    "torch._C._get_accelerator": lambda: CPU,
    "torch.jit.TracerWarning": TracerWarning,
    "torch._inductor.cudagraph_mark_step_begin": nothing,
    "torch.xpu.device_count": always(0),
    **{f"torch.xpu.{name}": nothing for name in ("empty_cache", "synchronize", "manual_seed", "manual_seed_all")},
    "torch.quint8": genesis.uint8,
    "torch.qint32": genesis.int32,
    "torch.qscheme": observers.qscheme,
    **{f"torch.{name}": getattr(observers, name) for name in (
        "fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine", "per_channel_affine", "per_channel_symmetric",
        "per_tensor_affine", "per_tensor_symmetric")},
    **{f"torch{path}.FloatFunctional": quantized.FloatFunctional for path in (
        ".nn.quantized", ".ao.nn.quantized", ".nn.quantized.modules.functional_modules")},
}
