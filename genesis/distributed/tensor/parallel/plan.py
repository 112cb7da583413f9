"""Parallelization plans: module paths to styles."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from genesis.distributed.device_mesh import DeviceMesh, init_device_mesh
from genesis.distributed.process_group import world
from genesis.distributed.tensor.parallel.style import ParallelStyle
from genesis.ir.errors import ArgumentError
from genesis.nn.module import Module


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None, *, src_data_rank: int | None = 0,
) -> Module:
    """Shard the layers of `module` over a mesh of one axis; returns it. Create optimizers afterwards.

    Args:
        device_mesh: the ranks; by default all.
        parallelize_plan: a style for `module` itself, or a dict from submodule paths, where `*` matches any name, to styles.
        src_data_rank: the rank whose parameters are used; None if all ranks have the same.

    Raises ValueError for a mesh of more axes, and for a path without a module.

    >>> genesis.distributed.init_process_group()
    >>> from genesis.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    >>> network = genesis.nn.Sequential(genesis.nn.Linear(2, 8), genesis.nn.ReLU(), genesis.nn.Linear(8, 2))
    >>> network = parallelize_module(network, None, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    >>> network(genesis.ones(3, 2)).shape
    (3, 2)
    >>> genesis.distributed.destroy_process_group()
    """
    mesh = device_mesh or init_device_mesh("cpu", (world().size(),))
    if mesh.ndim != 1:
        raise ArgumentError(f"parallelize_module: {mesh}; want a mesh of one axis, such as mesh['tensor']")
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.apply(module, mesh, src_data_rank)
        return module
    for path, style in (parallelize_plan or {}).items():
        found = [below for name, below in module.named_modules() if _matches(name, path)]
        if not found:
            raise ArgumentError(f"parallelize_module: there is no module {path!r} in {type(module).__name__}")
        for below in found:
            style.apply(below, mesh, src_data_rank)
    return module


def _matches(name: str, path: str) -> bool:
    names, parts = name.split("."), path.split(".")
    return len(names) == len(parts) and all(map(fnmatchcase, names, parts))
