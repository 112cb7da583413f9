"""The library's functions that `genesis.compile` may replay: all their effects follow from guarded values or are recorded.

Such a function's result depends only on its arguments, on tensors, on guarded values (modes, attributes by the names in the
caller's code) and on values reported by hooks (see `tracing/recording_hooks.py`); it has no other effects. User code that calls
other functions of the library is not replayed. A module's `NOT_REPLAYABLE` names the exceptions in it, with all within them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any

PACKAGES = {  # whole, but for modules that start processes, read files, take times, or keep state
    "genesis.ao": "quantization",
    "genesis.array_api": "",
    "genesis.as_torch.stand_ins":
        "autograd backends benchmark benchmark_compare datapipes distributed distributed_run eval_frame export flop_counter "
        "hub masked multiprocessing serialization tensorboard torch weak",
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
FUNCTIONS = {  # single ones, and all within
    "genesis": "__getattr__",
    "genesis.autograd.saved_tensors": "passed_back",
    "genesis.capture.compiled": "Compiled.__call__ Compiled.__get__",
    "genesis.capture.record.handlers": "handlers_in_other_traces.<locals>.in_other_traces",
    "genesis.cuda.gpus":
        "current_device device_count get_device_capability get_device_name is_available is_bf16_supported is_tf32_supported",
    "genesis.distributed.process_group":
        "get_backend get_global_rank get_group_rank get_node_local_rank get_process_group_ranks get_rank get_world_size",
    "genesis.optim.state": "Hooked.__getstate__",
    "genesis.profiler.session": "record_function.__enter__ record_function.__exit__",
    "genesis.runtime.deferred": "LazyNames",
    "genesis.runtime.determinism":
        "are_deterministic_algorithms_enabled get_deterministic_debug_mode is_deterministic_algorithms_warn_only_enabled "
        "planned_threads",
    "genesis.runtime.number_of_threads": "get_num_threads",
}
_NAMES = {f"{package}.{name}" for package, names in MODULES.items() for name in names.split()}
_WITHIN = tuple([f"{package}." for package in PACKAGES])
_BUT = tuple([f"{package}.{name}." for package, names in PACKAGES.items() for name in names.split()])
_SINGLE = {module: tuple([f"{name}." for name in names.split()]) for module, names in FUNCTIONS.items()}


def is_replayable(code: CodeType, names: Mapping[str, Any]) -> bool:
    """Whether a function with this code, whose globals are `names`, may be replayed."""
    module, function = str(names.get("__name__")), code.co_qualname
    if f"{function}.".startswith(_SINGLE.get(module, ())):
        return True
    is_one = module in _NAMES or (f"{module}.".startswith(_WITHIN) and not f"{module}.".startswith(_BUT))
    return is_one and {*function.split(".")}.isdisjoint(names.get("NOT_REPLAYABLE", ()))
