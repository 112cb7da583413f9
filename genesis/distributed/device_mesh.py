"""A mesh of ranks: each axis is a way to divide work; each line along an axis is a process group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from genesis.distributed.initialization import init_process_group
from genesis.distributed.process_group import ProcessGroup, group_of, is_initialized, world
from genesis.distributed.subgroups import new_groups
from genesis.functions.from_data import tensor as tensor_from
from genesis.ir.annotations import Arguments
from genesis.ir.errors import ArgumentError
from genesis.tensor.handle import Tensor


def init_device_mesh(device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None) -> DeviceMesh:
    """All ranks in a mesh of a shape, in row-major order. All ranks must call it.

    It calls `init_process_group` if necessary, with "nccl" for "cuda". Raises ValueError for a device without communication,
    and for a shape with another number of ranks.

    >>> mesh = genesis.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "tensor"))
    >>> mesh["tensor"].size(), mesh.get_coordinate()
    (1, [0, 0])
    """
    if not is_initialized():
        init_process_group("nccl" if device_type == "cuda" else None)
    shape, size = tuple(mesh_shape), world().size()
    if not shape or min(shape) < 1 or math.prod(shape) != size:
        raise ArgumentError(f"init_device_mesh: shape {shape} has {math.prod(shape)} ranks; want {size}, all of the job")
    return DeviceMesh(device_type, np.arange(size).reshape(shape), mesh_dim_names=mesh_dim_names)


class DeviceMesh:
    """A grid of ranks with a group per axis. All ranks of the job must create it.

    Args:
        device_type: "cpu", or "cuda" if the ranks' GPUs communicate (see `init_process_group`).
        mesh: the ranks, as nested lists or a tensor of integers, each once.
        mesh_dim_names: names of the axes; `mesh["name"]` is this rank's line along one.

    Raises ValueError for another device, invalid ranks, and unless there is one name per axis.
    """

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None) -> None:
        ranks = np.asarray(mesh.numpy() if isinstance(mesh, Tensor) else mesh)
        size = world().size()
        if device_type != "cpu" and not (device_type == "cuda" and (size == 1 or world().handle.gpu is not None)):
            hint = "; GPUs communicate after init_process_group('nccl')" * (device_type == "cuda")
            raise ArgumentError(f"DeviceMesh: device_type is {device_type!r}; want 'cpu'{hint}")
        if ranks.ndim == 0 or ranks.dtype.kind not in "iu" or len({*ranks.flat}) < ranks.size or not (
                ranks.min(initial=size) >= 0 and ranks.max(initial=-1) < size):
            raise ArgumentError(f"DeviceMesh: {ranks.tolist()}; want different ranks of 0 to {size - 1} along one axis or more")
        names = tuple(mesh_dim_names) if mesh_dim_names else None
        if names is not None and (len(names) != ranks.ndim or len({*names}) < len(names)):
            raise ArgumentError(f"DeviceMesh: mesh_dim_names {names}; want {ranks.ndim} different names, one for each axis")
        lines = [np.moveaxis(ranks, axis, -1).reshape(-1, ranks.shape[axis]).tolist() for axis in range(ranks.ndim)]
        self._begin(device_type, ranks, names, [new_groups(parts) for parts in lines])

    def _begin(self, device_type: str, ranks: np.ndarray, names: tuple[str, ...] | None, groups: list[Any]) -> None:
        self.device_type, self.mesh_dim_names = device_type, names
        self._ranks, self._groups, self._root = ranks, groups, self
        found = np.argwhere(ranks == world().rank())
        self._coordinate: list[int] | None = found[0].tolist() if len(found) else None

    @property
    def mesh(self) -> Tensor:
        """The ranks, as a tensor."""
        return tensor_from(self._ranks)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the axes."""
        return self._ranks.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._ranks.ndim

    def size(self, mesh_dim: int | str | None = None) -> int:
        """The extent of an axis, by number or name; by default the number of ranks."""
        return self._ranks.size if mesh_dim is None else self._ranks.shape[self._axis("size", mesh_dim)]

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """This rank's submesh along the named axes, which shares the groups. Raises KeyError for an unknown name."""
        wanted = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        known = self.mesh_dim_names or ()
        if not wanted or any(name not in known for name in wanted) or len({*wanted}) < len(wanted):
            raise KeyError(f"DeviceMesh: {mesh_dim_names!r} of a mesh whose axes are {known}; want one of these, or several")
        axes = [known.index(name) for name in wanted]
        if self._coordinate is None:
            raise RuntimeError(f"DeviceMesh: rank {world().rank()} is not in the mesh {self._ranks.tolist()}")
        rest = [slice(None) if axis in axes else self._coordinate[axis] for axis in range(self.ndim)]
        part = self._ranks[tuple(rest)].transpose(np.argsort(np.argsort(axes)))
        made = object.__new__(DeviceMesh)
        made._begin(self.device_type, part, wanted, [self._groups[axis] for axis in axes])
        made._root = self._root
        return made

    @staticmethod
    def from_group(group: ProcessGroup, device_type: str, *, mesh_dim_names: Sequence[str] | None = None) -> DeviceMesh:
        """The mesh of one axis whose group is `group`."""
        made = object.__new__(DeviceMesh)
        made._begin(device_type, np.asarray(group.ranks), tuple(mesh_dim_names) if mesh_dim_names else None, [group])
        return made

    def beside(self, other: DeviceMesh) -> DeviceMesh:
        """The mesh with the axes of both, parts of one mesh. Raises ValueError for others."""
        if self._root is not other._root:
            raise ArgumentError(f"{self} and {other} are not parts of one mesh; want mesh['a'] and mesh['b'] of one")
        return self._root[(*(self.mesh_dim_names or ()), *(other.mesh_dim_names or ()))]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """This rank's group along an axis, which may be omitted for a mesh of one axis."""
        return group_of(self._groups[self._axis("get_group", mesh_dim)])

    def get_all_groups(self) -> list[ProcessGroup]:
        """This rank's groups, one for each axis."""
        return [group_of(group) for group in self._groups]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's coordinate along an axis, which may be omitted for a mesh of one axis."""
        return self.get_group(mesh_dim).rank()

    def get_rank(self) -> int:
        """This process's global rank."""
        return world().rank()

    def get_coordinate(self) -> list[int] | None:
        """This rank's coordinate along each axis; None if it is not in the mesh."""
        return self._coordinate

    def _axis(self, name: str, mesh_dim: int | str | None) -> int:
        known = self.mesh_dim_names or ()
        if mesh_dim is None and self.ndim == 1:
            return 0
        axis = known.index(mesh_dim) if isinstance(mesh_dim, str) and mesh_dim in known else mesh_dim
        if not isinstance(axis, int) or not -self.ndim <= axis < self.ndim:
            raise ArgumentError(f"{name}: axis {mesh_dim!r} of a mesh {self.shape}, names {known}; want one of its axes")
        return axis % self.ndim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self.mesh_dim_names == other.mesh_dim_names and np.array_equal(
            self._ranks, other._ranks)

    def __hash__(self) -> int:
        return hash((self.mesh_dim_names, self._ranks.tobytes()))

    def __reduce__(self) -> Arguments:
        """All its ranks load it, and so create it anew."""
        return _mesh_of, (self.device_type, self._ranks.tolist(), self.mesh_dim_names)

    def __repr__(self) -> str:
        named = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh('{self.device_type}', {self._ranks.tolist()}{named})"


def _mesh_of(device_type: str, ranks: list[Any], names: tuple[str, ...] | None) -> DeviceMesh:
    return DeviceMesh(device_type, ranks, mesh_dim_names=names)


NOT_REPLAYABLE = ("init_device_mesh", "__init__", "_begin")
