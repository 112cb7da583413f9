"""More names of `torch.autograd` and `torch.autograd.graph`: settings of PyTorch's engine, without effect."""

from __future__ import annotations

import enum

from genesis.as_torch.stand_ins.overrides import TorchDispatchMode  # noqa: F401
from genesis.as_torch.stand_ins.settings import no, no_effect, nothing
from genesis.profiler import ProfilerActivity as ProfilerActivity

is_view_replay_enabled = kineto_available = no
enforce_grad_layout_policy = region_activation_memory_budget = no_effect
set_override_stale_capture_stream = set_warn_on_accumulate_grad_stream_mismatch = nothing
_multithreading = [True]


def is_multithreading_enabled() -> bool:
    """The stored setting; backward is a program, which always uses the library's threads."""
    return _multithreading[0]


class set_multithreading_enabled:
    """Sets the result of `is_multithreading_enabled`; as a context, until its end."""

    def __init__(self, mode: bool) -> None:
        self._before, _multithreading[0] = _multithreading[0], mode

    def __enter__(self) -> None: pass
    def __exit__(self, *problem: object) -> None: _multithreading[0] = self._before


class ProfilerState(enum.Enum):
    """The kinds of profilers."""

    Disabled, CPU, CUDA, NVTX, ITT, PRIVATEUSE1, KINETO, KINETO_GPU_FALLBACK, KINETO_PRIVATEUSE1_FALLBACK = range(9)
