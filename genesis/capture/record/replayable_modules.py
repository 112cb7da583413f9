"""The modules whose functions `genesis.compile` may replay (`ir/replayable.py`), but for those in a module's `NOT_REPLAYABLE`.

They are marked where a recording meets a function that is not: most of the library is imported before, some of it later.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import CodeType
from typing import Any

from genesis.ir.replayable import functions_of, is_marked, mark

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
_marked: set[str] = set()  # modules
_imported = [0]  # how many modules there were when they were marked


def is_replayable(code: CodeType) -> bool:
    """Whether the function of this code is marked."""
    if not is_marked(code) and len(sys.modules) != _imported[0]:
        mark_imported()
    return is_marked(code)


def mark_imported() -> None:
    """Mark the functions and methods of modules that were imported since the last time."""
    modules = [*sys.modules.items()]  # at once: other threads may import
    for name, module in modules:
        is_one = name in _NAMES or (f"{name}.".startswith(_WITHIN) and not f"{name}.".startswith(_BUT))
        if is_one and name not in _marked and not getattr(module.__spec__, "_initializing", False):
            _mark(vars(module), getattr(module, "NOT_REPLAYABLE", ()))
            _marked.add(name)
    _imported[0] = len(modules)


def _mark(names: dict[str, Any], but: Collection[str]) -> None:
    """Mark the functions of a module that it defines: not those it imports, nor those that others attach to its classes."""
    for name, member in [*names.items()]:
        for function in functions_of(member, but) if name not in but else ():
            original = getattr(function, "__wrapped__", None)
            if function.__globals__ is names or getattr(original, "__globals__", None) is names:
                mark(function.__code__)
