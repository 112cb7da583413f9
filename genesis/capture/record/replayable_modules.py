"""The modules whose functions `genesis.compile` may replay (`ir/replayable.py`), but for those that a module names in its
`NOT_REPLAYABLE`; a class or function there stands for all within.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any

from genesis.ir.replayable import is_marked

PACKAGES = {  # whole, but for modules that start processes, read files, take times, or keep state
    "genesis.ao": "quantization",
    "genesis.array_api": "",
    "genesis.as_torch.stand_ins":
        "backends benchmark benchmark_compare datapipes distributed distributed_run eval_frame export hub masked "
        "multiprocessing tensorboard torch",
    "genesis.distributions": "",
    "genesis.func": "",
    "genesis.functions": "draw_programs printing sequential_draws sequential_rejection",
    "genesis.nested": "",
    "genesis.nn": "getattr_bases lazy members other_states",
    "genesis.optim": "lr_scheduler update_rule",
    "genesis.sparse": "",
}
MODULES = {
    "genesis": "fft function linalg masked oneflow pytree random special",
    "genesis.as_torch": "classes constructor finder",
    "genesis.autograd":
        "after_backward backward_pass custom data_parallel function functional gradients graph_view pullback",
    "genesis.distributed":
        "collectives communication_hooks data_parallel device_mesh flat fsdp fully_sharded futures nn.functional optim "
        "pipelining.link pipelining.schedules pipelining.stage sync_batch_norm tensor.parallel.style tensor.redistribution "
        "work",
    "genesis.execution": "synchronization",
    "genesis.ir": "dtypes named_layouts shapes",
    "genesis.ops": "size_average",
    "genesis.runtime": "devices",
    "genesis.signal": "windows",
    "genesis.tensor":
        "complex_views composite from_python handle in_memory in_place modes out owned_memory process_sharing size "
        "traced_number transfer users_attributes versions views writes_in_memory",
    "genesis.tracing": "scopes",
    "genesis.utils": "checkpoint",
}
_NAMES = {f"{package}.{name}" for package, names in MODULES.items() for name in names.split()}
_WITHIN = tuple([f"{package}." for package in PACKAGES])
_BUT = tuple([f"{package}.{name}." for package, names in PACKAGES.items() for name in names.split()])


def is_replayable(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Whether a function with this code, whose globals are `names`, may be replayed."""
    module = f"{names.get('__name__')}."
    is_one = module[:-1] in _NAMES or (module.startswith(_WITHIN) and not module.startswith(_BUT))
    return is_marked(code) or (is_one and not {*code.co_qualname.split(".")} & {*names.get("NOT_REPLAYABLE", ())})
